"""What every engine does alike before it writes: check vectors, cut the work into short transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from apps.common.errors import InvalidInput
from apps.retrieval.plugins.protocol import Filing, IndexDocument, Vector

BATCH_DOCUMENTS = 50
BATCH_CHUNKS = 1000
DELETE_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Flags:
    """What filters see of a document; None leaves it as it is."""

    enabled: bool | None = None
    folder_id: int | None = None
    tag_ids: Sequence[int] | None = None
    kb_id: int | None = None


def grouped(documents: Iterable[IndexDocument]) -> Iterator[list[IndexDocument]]:
    """The documents in groups that make one short transaction each."""
    batch: list[IndexDocument] = []
    chunks = 0
    for document in documents:
        batch.append(document)
        chunks += len(document.chunks)
        if len(batch) >= BATCH_DOCUMENTS or chunks >= BATCH_CHUNKS:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def to_refile(filings: Sequence[Filing], held: Mapping[int, int]) -> tuple[list[Filing], list[int]]:
    """(filings of documents held in the revision before theirs, ids of documents held in an older one or not at all)."""
    due = [filing for filing in filings if held.get(filing.id) == filing.rev - 1]
    left = [filing.id for filing in filings if filing.id not in held or held[filing.id] < filing.rev - 1]
    return due, left


def checked_vectors(vectors: Mapping[int, Vector]) -> dict[int, Vector]:
    """The same as float32 arrays of one size. Raises: InvalidInput for another shape, mixed sizes, or values that are not finite."""
    made = {key: np.asarray(value, dtype=np.float32) for key, value in vectors.items()}
    if any(v.ndim != 1 or not len(v) for v in made.values()) or len({v.shape for v in made.values()}) > 1:
        raise InvalidInput("vectors of one document must be one-dimensional and of one size", field="vectors", code="vector_shape")
    if not all(np.isfinite(v).all() for v in made.values()):
        raise InvalidInput("a vector holds a value that is not finite", field="vectors", code="vector_not_finite")
    return made


def vectors_of(document: IndexDocument) -> tuple[list[Vector | None], int]:
    """(a vector or None for each passage, their dimension or 0). Raises: InvalidInput as `checked_vectors`, or when they have no space."""
    made = checked_vectors({at: c.vector for at, c in enumerate(document.chunks) if c.vector is not None})
    if made and not document.vector_space:
        raise InvalidInput("vectors need the name of their space", field="vector_space", code="vector_shape")
    return [made.get(at) for at in range(len(document.chunks))], len(next(iter(made.values()))) if made else 0


def foreign_document() -> InvalidInput:
    return InvalidInput("the document belongs to another space", field="id", code="foreign_document")


def wrong_dimension(name: str, held: int, got: int) -> InvalidInput:
    return InvalidInput(f"vectors of {name} have {held} values, these have {got}", field="vectors", code="vector_shape")
