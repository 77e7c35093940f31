"""What stands around a hit: the passage before and after, and the larger one it was cut from (contract 8.1, appended after the hits)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from apps.common.actor import Actor
from apps.knowledge.models import Chunk
from apps.retrieval.search import Passage

NEIGHBOUR, PARENT = 2, 4
#: Passages that go on in the next one.
RUNNING = (Chunk.Type.TEXT, Chunk.Type.WIKI)


@dataclass(frozen=True, slots=True)
class ContextPassage:
    """A passage that was not found itself; `match_type` says its tie to the hit (2 neighbour, 4 parent), `score` is half the hit's."""

    chunk: Chunk
    match_type: int
    score: float


def context_of(*, actor: Actor, hits: Sequence[Passage]) -> list[ContextPassage]:
    """Parents and neighbours of the hits, each once, in the order of the hits; constant number of queries."""
    seen = {hit.chunk.pk for hit in hits}
    found: list[ContextPassage] = []
    wanted = Q(pk__in=[])
    for hit in hits:
        if hit.chunk.chunk_type in RUNNING:
            around = (hit.chunk.chunk_index - 1, hit.chunk.chunk_index + 1)
            wanted |= Q(document_id=hit.document.pk, chunk_index__in=around, chunk_type=hit.chunk.chunk_type)
    rows = Chunk.objects.visible_to(actor).select_related("document", "document__kb", "parent").filter(wanted, is_enabled=True)
    beside = {(c.document_id, c.chunk_index): c for c in rows}
    for hit in hits:
        if hit.chunk.parent_id and hit.chunk.parent_id not in seen and hit.chunk.parent is not None:
            seen.add(hit.chunk.parent_id)
            found.append(ContextPassage(hit.chunk.parent, PARENT, hit.score / 2))
        if hit.chunk.chunk_type not in RUNNING:
            continue
        for index in (hit.chunk.chunk_index - 1, hit.chunk.chunk_index + 1):
            neighbour = beside.get((hit.document.pk, index))
            if neighbour is not None and neighbour.pk not in seen:
                seen.add(neighbour.pk)
                found.append(ContextPassage(neighbour, NEIGHBOUR, hit.score / 2))
    return found
