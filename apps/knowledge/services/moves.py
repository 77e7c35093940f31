"""Moving documents between bases of a space."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.jobs.service import enqueue
from apps.common.policy import authorize
from apps.knowledge.models import Document, KnowledgeBase, MoveRun, ParseStatus
from apps.knowledge.rules.locks import check_not_moving

MOVE = "move"


def documents_move(*, actor: Actor, source: KnowledgeBase, target: KnowledgeBase, documents: Sequence[Document], mode: str) -> MoveRun:
    """Start moving completed documents to another base; ids stay, tags go, folders stay (contract knowledge 4.15).

    Raises: InvalidInput when the bases do not fit or a document is not completed; Conflict while one is being moved already.
    """
    authorize(actor, "document.move", source)
    authorize(actor, "document.move", target)
    if source.pk == target.pk:
        raise InvalidInput(_("Choose another base than the one they are in."), field="target_kb_id", api_code=1000)
    if source.type != target.type:
        raise InvalidInput(_("Both bases must be of the same type."), field="target_kb_id", api_code=1000)
    if source.embedding_model_id != target.embedding_model_id:
        raise InvalidInput(_("Both bases must use the same embedding model."), field="target_kb_id", api_code=1000)
    if pages := [str(document.uid) for document in documents if document.type == Document.Type.PAGE]:
        raise InvalidInput(_("Pages of the wiki stay in their base."), field="knowledge_ids", ids=pages, code="wiki_page", api_code=1000)
    unready = [str(document.uid) for document in documents if document.parse_status != ParseStatus.COMPLETED]
    if unready:
        raise InvalidInput(
            _("Only completed documents can be moved."), field="knowledge_ids", ids=unready, code="not_completed", api_code=1000
        )
    now = timezone.now()
    with transaction.atomic():
        ids = [document.pk for document in documents]
        check_not_moving(source, ids)
        run = MoveRun.objects.create(
            space_id=source.space_id,
            kind=MOVE,
            task_id=f"kg_move_{source.space_id}_{int(now.timestamp() * 1000)}_{secrets.token_hex(4)}_{source.uid}",
            source_ref=source.pk,
            target_ref=target.pk,
            source_uid=source.uid,
            target_uid=target.uid,
            document_refs=ids,
            mode=mode,
            starter_id=actor.user_id,
            progress_total=len(ids),
            progress_unit="documents",
        )
        for base in (source, target):
            audit(
                actor,
                "knowledge.move_started",
                base,
                outcome="accepted",
                target_type="knowledge_base",
                task_id=run.task_id,
                source_kb_id=str(source.uid),
                target_kb_id=str(target.uid),
                count=len(ids),
                mode=mode,
                titles=[document.title for document in documents][:50],
            )
        enqueue(run)
    return run
