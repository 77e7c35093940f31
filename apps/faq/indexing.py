"""The work of making the passages of every entry anew, in slices; entries whose passages are right already are passed over."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.jobs.claims import Claim, Stop
from apps.common.jobs.models import RunState
from apps.faq.models import FaqEntry, FaqIndexRun
from apps.faq.passages import index_mode, passages_of, question_mode
from apps.faq.services.entries import vectors_follow
from apps.faq.store import draft_of_entry, passages_rewrite
from apps.knowledge.models import Chunk, KnowledgeBase

SLICE = 100


def work_index(claim: Claim) -> None:
    """Raises: DomainError when the base is gone; Stop."""
    run = FaqIndexRun.objects.get(pk=claim.run.pk)
    actor = Actor.system(run.space_id, f"passages of FAQ entries {run.pk}")
    while True:
        base = _base(run)
        entries = FaqEntry.objects.filter(kb=base, document__deleted_at__isnull=True).order_by("pk")
        total, done, last = entries.count(), 0, 0
        while pks := list(entries.filter(pk__gt=last).values_list("pk", flat=True)[:SLICE]):
            claim.check()
            with transaction.atomic():
                claim.hold()
                _rewrite(base, pks)
            done, last = done + len(pks), pks[-1]
            claim.progress(done, max(total, done), "entries")
        with transaction.atomic():
            claim.hold()
            KnowledgeBase.objects.select_for_update(of=("self",)).get(pk=base.pk)
            now = _base(run)
            if (index_mode(now), question_mode(now)) != (index_mode(base), question_mode(base)):
                continue  # the settings were changed again
            if total:
                vectors_follow(actor=actor, base=now)
            if not claim.finish(RunState.DONE):
                raise Stop("lost")
            return


def _base(run: FaqIndexRun) -> KnowledgeBase:
    base = KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=True).first()
    if base is None:
        raise DomainError("the base was deleted", code="deleted")
    return base  # type: ignore[no-any-return]


def _rewrite(base: KnowledgeBase, pks: list[int]) -> None:
    rows = FaqEntry.objects.select_related("document").filter(pk__in=pks).order_by("pk")
    entries = list(rows.select_for_update(of=("self",)))
    have: dict[int, list[Any]] = {}
    chunks = Chunk.objects.filter(document_id__in=[entry.document_id for entry in entries]).order_by("document_id", "chunk_index")
    for document, content, metadata in chunks.values_list("document_id", "content", "metadata"):
        have.setdefault(document, []).append((content, metadata))
    for entry in entries:
        draft = draft_of_entry(entry)
        if have.get(entry.document_id) != passages_of(base, draft):
            passages_rewrite(base, entry, draft)


def end_index(_run: Any) -> None:
    """What was not done yet is found by its old passages; saving the settings, or trying again, goes on with it."""
