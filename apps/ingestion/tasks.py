"""Celery entry points of this context."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.jobs.models import LIVE
from apps.common.scope import space_scope
from apps.ingestion import services
from apps.ingestion.models import IngestionRun, ReindexRun
from apps.knowledge.models import Document, KnowledgeBase, ParseStatus
from apps.llm.failures import FAILURES
from apps.llm.services import known_space
from apps.retrieval.services import spaces_in_use, unsettled_bases, vectors_forget
from apps.spaces.models import Space

log = logging.getLogger(__name__)

RETRIED = frozenset(FAILURES) - {"embedding_refused"}
HEAL_AT_ONCE = 200


@shared_task(name="apps.ingestion.tasks.vectors_upkeep")
def vectors_upkeep() -> dict[str, int]:
    """Forget vectors nobody has used for a while, try again for documents whose model failed, end switches that were broken off.

    Twice changes nothing. What was done, by name.
    """
    done = {"forgotten": 0, "tried_again": 0, "settled": 0}
    for space_id in Space.objects.filter(deleted_at__isnull=True).values_list("pk", flat=True):
        with space_scope(space_id, "upkeep of vectors"):
            done["forgotten"] += forget_vectors(space_id)
            done["tried_again"] += heal_documents()
            done["settled"] += settle_switches(space_id)
    return done


def forget_vectors(space_id: int) -> int:
    """Delete vectors that serve no base and that none is on its way to, once they have been kept long enough."""
    before = timezone.now() - timedelta(days=settings.VECTORS_KEEP_DAYS)
    bases = KnowledgeBase.objects.filter(deleted_at__isnull=True)
    chosen = {known_space(model_id) for model_id in set(bases.values_list("embedding_model_id", flat=True))}
    wanted = set(ReindexRun.objects.filter(state__in=LIVE).values_list("target_space", flat=True))
    gone = vectors_forget(space_id, used=spaces_in_use(space_id) | chosen | wanted, before=before)
    for name, count in gone.items():
        log.info("space %s: %s vectors of %s deleted, no base has used them since %s", space_id, count, name, before.date())
    return sum(gone.values())


def heal_documents() -> int:
    """Try again for documents that had to do without vectors because their model failed then."""
    busy = IngestionRun.objects.filter(state__in=LIVE).values("document_id")
    bare = Document.objects.filter(
        deleted_at__isnull=True, parse_status=ParseStatus.COMPLETED, reason__in=RETRIED, vector_count__lt=F("chunk_count")
    )
    rows = bare.exclude(pk__in=busy).select_related("kb").order_by("pk")[:HEAL_AT_ONCE]
    lacking = Document.objects.filter(
        kb=OuterRef("kb"), type=Document.Type.PAIR, deleted_at__isnull=True, vector_count__lt=F("chunk_count")
    )
    pairs = Document.objects.filter(Exists(lacking), type=Document.Type.FAQ, deleted_at__isnull=True, kb__deleted_at__isnull=True)
    homes = pairs.exclude(pk__in=busy).select_related("kb").order_by("pk")[:HEAL_AT_ONCE]
    return sum(1 for document in (*rows, *homes) if services.embed_start(document, {"trigger": "system"}) is not None)


def settle_switches(space_id: int) -> int:
    """Bring an index that still holds former vectors, with nobody at work on it, the rest of the way."""
    settled = 0
    for kb_id in unsettled_bases(space_id):
        base = KnowledgeBase.objects.filter(pk=kb_id, deleted_at__isnull=True).first()
        if base is None:
            continue
        try:
            services.reindex_start(
                actor=Actor.system(space_id, "a switch of vectors was broken off"), base=base, model_id=base.embedding_model_id
            )
        except (Conflict, InvalidInput):
            continue
        settled += 1
    return settled


@shared_task(name="apps.ingestion.tasks.forget_passwords")
def forget_passwords() -> None:
    """Drop sealed file passwords that outlived their run or their time."""
    from apps.ingestion.passwords import forget_stale

    forget_stale()
