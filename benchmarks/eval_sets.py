"""The evaluation sets found through KB_SHARED/eval, and a disk cache of their embeddings."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


def eval_root() -> Path:
    """The folder of evaluation sets: KB_SHARED/eval, or `../shared/eval` beside the repository."""
    shared = os.environ.get("KB_SHARED")
    return Path(shared) / "eval" if shared else Path(__file__).resolve().parents[2] / "shared" / "eval"


def read_jsonl(path: Path) -> list[dict]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


@dataclass(frozen=True)
class EvalSet:
    """One set: documents as (id, passage text), questions as (id, text), judgements as {question: {document: grade}}."""

    name: str
    documents: list[tuple[str, str]]
    questions: list[tuple[str, str]]
    judged: dict[str, dict[str, int]]


def load_set(name: str, root: Path | None = None) -> EvalSet:
    folder = (root or eval_root()) / name
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    rows = read_jsonl(folder / meta.get("corpus", "corpus.jsonl"))
    documents = [(row["id"], f"{row['title']}\n{row['text']}" if row.get("title") else row["text"]) for row in rows]
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "qrels.tsv").open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            question, document, grade = line.rstrip("\n").split("\t")
            judged[question][document] = int(grade)
    questions = [(row["id"], row["text"]) for row in read_jsonl(folder / "queries.jsonl") if row["id"] in judged]
    return EvalSet(name, documents, questions, dict(judged))


def measures(ranked: Sequence[str], grades: dict[str, int]) -> tuple[float, float]:
    """(nDCG@10, recall@1) of one question; gains are the judged grades."""
    good = sorted((g for g in grades.values() if g > 0), reverse=True)
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(good[:10]))
    gained = sum(max(grades.get(d, 0), 0) / math.log2(i + 2) for i, d in enumerate(ranked[:10]))
    first = bool(ranked) and grades.get(ranked[0], 0) > 0
    return (gained / ideal if ideal else 0.0), (first / len(good) if good else 0.0)


class VectorCache:
    """Embeddings of texts by content hash, in one SQLite file, so that a rerun costs nothing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.db = sqlite3.connect(folder / "vectors.sqlite3", timeout=60)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS v (k BLOB PRIMARY KEY, e BLOB) WITHOUT ROWID")

    def get(self, texts: Sequence[str], kind: str, embed: Callable[[list[str]], Matrix], note: str = "") -> Matrix:
        """(len(texts), dimension) float32; what is missing is embedded 32 at a time and kept."""
        keys = [hashlib.sha256(f"{kind}\0{text}".encode()).digest() for text in texts]
        have: dict[bytes, bytes] = {}
        for at in range(0, len(keys), 500):
            part = keys[at : at + 500]
            have.update(self.db.execute(f"SELECT k, e FROM v WHERE k IN ({','.join('?' * len(part))})", part))
        missing = [(k, t) for k, t in dict(zip(keys, texts, strict=True)).items() if k not in have]
        for at in range(0, len(missing), 32):
            part = missing[at : at + 32]
            made = np.asarray(embed([t for _, t in part]), dtype=np.float32)
            rows = [(k, row.tobytes()) for (k, _), row in zip(part, made, strict=True)]
            have.update(rows)
            self.db.executemany("INSERT OR REPLACE INTO v VALUES (?, ?)", rows)
            self.db.commit()
            if note:
                print(f"embedding {note}: {min(at + 32, len(missing))}/{len(missing)}", flush=True)
        return np.stack([np.frombuffer(have[k], dtype=np.float32) for k in keys])
