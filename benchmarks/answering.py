"""How often the built-in answerer says "not found" when it should, and answers when it can, through the real search of a portal.

    python -m benchmarks.answering [--set noanswer-zh] [--engine sqlite] [--cache DIR]

Half of the questions of these sets cannot be answered from their documents. An answer counts as right when it holds the expected words.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from benchmarks.eval_sets import VectorCache, eval_root, load_set, read_jsonl
from benchmarks.portals import ENGINES, on_each, open_portal

SETS = ("noanswer-zh", "noanswer-en")


def _fill(name: str, root: Path, cache: VectorCache | None) -> tuple[Any, Any]:
    """(actor, base) with the documents of a set, indexed by words and vectors as the pipeline does it."""
    from apps.common.scope import space_scope
    from apps.knowledge.models import Chunk, Document
    from apps.knowledge.models.chunk import passage_hash
    from apps.llm.services.embedders import deployment_model_id, embedder
    from apps.retrieval.services import index_documents, meaning_hash, meaning_of, set_serving_space, store_vectors
    from tests.support.kit import make_kit

    kit, data = make_kit(name), load_set(name, root)
    model_id = deployment_model_id()
    model = embedder(model_id)
    assert model is not None
    with space_scope(kit.space.pk):
        texts = [text for _key, text in data.documents]
        vectors = cache.get(texts, "passage", model.passages, name) if cache is not None else model.passages(texts)
        set_serving_space(kit.base.pk, kit.space.pk, model.space, model_id)
        hashes, pks = [], []
        for key, text in data.documents:
            document = Document.objects.create(
                space=kit.space, kb=kit.base, title=key, file_hash=key, enabled=True, parse_status="completed", chunk_count=1, index_rev=1
            )
            place = {"chunk_index": 0, "start_at": 0, "end_at": len(text)}
            chunk = Chunk.objects.create(
                space=kit.space, kb=kit.base, document=document, content=text, content_hash=passage_hash(text), **place
            )
            hashes.append(meaning_hash(meaning_of(chunk)))
            pks.append(document.pk)
        store_vectors(kit.space.pk, model.space, hashes, vectors)
        index_documents(kit.space.pk, pks)
    return kit.actor, kit.base


def measure(name: str, root: Path, cache: VectorCache | None) -> dict[str, Any]:
    """Counts and times of one set."""
    from apps.chat.answerers.evidence import judge
    from apps.chat.answerers.extractive import extract, written
    from apps.chat.turns.lookup import Looked
    from apps.common.scope import space_scope
    from apps.retrieval.selectors import Decision, Scope, search_knowledge_base

    actor, base = _fill(name, root, cache)
    judged = load_set(name, root).judged
    counts = {"answerable": 0, "answered": 0, "right": 0, "unanswerable": 0, "refused": 0}
    spent: list[float] = []
    with space_scope(actor.space):
        for row in read_jsonl(root / name / "queries.jsonl"):
            started = time.perf_counter()
            found = search_knowledge_base(actor=actor, query=row["text"], scope=Scope(kb_uids=(base.uid,)))
            looked = Looked(Decision(True, "default"), hits=found.hits, found=found)
            evidence = judge(row["text"], looked.sources(), looked.compared())
            text = written(extract(row["text"], looked.sources())) if evidence.enough else ""
            spent.append(time.perf_counter() - started)
            can = row["id"] in judged
            counts["answerable" if can else "unanswerable"] += 1
            counts["answered"] += can and bool(text)
            counts["refused"] += not can and not text
            counts["right"] += can and any(answer.strip().lower() in text.lower() for answer in row.get("answers") or ())
    spent.sort()
    return {**counts, "p50_ms": spent[len(spent) // 2] * 1000, "p95_ms": spent[int(len(spent) * 0.95)] * 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", choices=SETS)
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--cache", type=Path, help="folder for embeddings of passages")
    parser.add_argument("--root", type=Path, default=eval_root(), help="folder of the sets")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not args.inside:
        passed = [word for name in args.set or () for word in ("--set", name)]
        passed += ["--root", str(args.root.resolve())]
        passed += ["--cache", str(args.cache.resolve())] if args.cache else []
        print("| set | engine | not found, of unanswerable | answered, of answerable | holding the expected words | p50 ms | p95 ms |")
        print("|---|---|---|---|---|---|---|", flush=True)
        return on_each(args.engine or ["sqlite"], "benchmarks.answering", passed)
    open_portal()
    for name in args.set or SETS:
        row = measure(name, args.root, VectorCache(args.cache) if args.cache else None)
        shares = " | ".join(
            f"{row[part]}/{row[whole]} ({row[part] / row[whole]:.1%})"
            for part, whole in (("refused", "unanswerable"), ("answered", "answerable"), ("right", "answerable"))
        )
        print(f"| {name} | {args.inside} | {shares} | {row['p50_ms']:.0f} | {row['p95_ms']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
