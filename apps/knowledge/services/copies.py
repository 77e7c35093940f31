"""Copying bases: their settings at once, their contents as background work."""

from __future__ import annotations

import secrets
import uuid

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.events import publish
from apps.common.jobs.service import cancel_run, enqueue
from apps.common.policy import authorize
from apps.knowledge.events import CopyStarted
from apps.knowledge.models import CopyRun, Document, KnowledgeBase
from apps.knowledge.rules.configs import clean_name
from apps.knowledge.selectors.copies import copy_hindrance

COPY = "copy"
MAX_NAME = 200  # UTF-16 units
MAX_TASK_ID = 160
SETTINGS = (
    "description", "type", "chunking_config", "indexing_strategy", "retrieval_config", "options", "embedding_model_id", "summary_model_id",
)  # fmt: skip


def base_duplicate(*, actor: Actor, base: KnowledgeBase, name: str = "") -> KnowledgeBase:
    """A new base with the settings of another and nothing in it; it is the actor's own (contract knowledge 3.8).

    Without a name it gets the source's with a suffix in the actor's language, and a number when that is taken.
    """
    authorize(actor, "base.copy", base)
    with transaction.atomic():
        copy = _twin(actor, base, clean_name(name) if name.strip() else copy_name(actor=actor, base=base))
        copy.save(force_insert=True)
        for one in (base, copy):
            audit(
                actor, "kb.duplicated", one, target_type="knowledge_base", title=copy.name,
                source_kb_id=str(base.uid), target_kb_id=str(copy.uid),
            )  # fmt: skip
    return copy


def copy_name(*, actor: Actor, base: KnowledgeBase) -> str:
    """A name for a copy that no base of the space has yet."""
    taken = set(KnowledgeBase.objects.filter(space_id=base.space_id, deleted_at__isnull=True).values_list("name", flat=True))
    suffix = pgettext("suffix of a copied base", " Copy")
    number, ending = 1, suffix
    while (name := _shortened(base.name, ending)) in taken:
        number += 1
        ending = f"{suffix} {number}"
    return name


def _shortened(name: str, ending: str) -> str:
    while len(f"{name}{ending}".encode("utf-16-le")) // 2 > MAX_NAME:
        name = name[:-1]
    return f"{name}{ending}"


def _twin(actor: Actor, base: KnowledgeBase, name: str) -> KnowledgeBase:
    return KnowledgeBase(
        space_id=base.space_id, uid=uuid.uuid4(), name=name, creator_id=actor.user_id, **{field: getattr(base, field) for field in SETTINGS}
    )


def base_copy(*, actor: Actor, source: KnowledgeBase, target: KnowledgeBase | None = None, task_id: str = "", name: str = "") -> CopyRun:
    """Start copying a base with its contents: into a new base of the same name (or `name`), which nobody sees before it is whole, or onto
    an existing one, which becomes a mirror of it: what the source does not have is deleted there (contract knowledge 3.9).

    Raises: InvalidInput when the target does not fit; Conflict while something else is copied there, or the task id is taken.
    """
    authorize(actor, "base.copy", source)
    if len(task_id) > MAX_TASK_ID:
        raise InvalidInput(_("A task id has at most %(max)d characters.") % {"max": MAX_TASK_ID}, field="task_id", api_code=1000)
    if target is not None:
        authorize(actor, "base.copy", target)
        if problem := copy_hindrance(source, target):
            raise InvalidInput(problem, field="target_id", api_code=1000)
    try:
        with transaction.atomic():
            return _start(actor, source, target, task_id, name)
    except IntegrityError:
        if task_id and CopyRun.objects.filter(task_id=task_id).exists():
            raise Conflict(_("This task id is taken. Leave it out, and one is made."), code="task_taken", field="task_id") from None
        raise Conflict(
            _("Something is being copied into this knowledge base already. Try again when that is done."),
            code="copy_running",
            field="target_id",
        ) from None


def _start(actor: Actor, source: KnowledgeBase, target: KnowledgeBase | None, task_id: str, name: str) -> CopyRun:
    is_new = target is None
    if target is None:
        target = _twin(actor, source, clean_name(name) if name.strip() else source.name)
        target.is_hidden = True
        target.save(force_insert=True)
    made = f"kb_clone_{source.space_id}_{int(timezone.now().timestamp() * 1000)}_{secrets.token_hex(4)}_{source.uid}"
    run = CopyRun.objects.create(
        space_id=source.space_id,
        kind=COPY,
        task_id=task_id or made,
        source_ref=source.pk,
        target_ref=target.pk,
        source_uid=source.uid,
        target_uid=target.uid,
        name=target.name,
        is_new=is_new,
        starter_id=actor.user_id,
        progress_total=source.documents.filter(deleted_at__isnull=True).exclude(type=Document.Type.FAQ).count(),
        progress_unit="documents",
    )
    for base in (source, target):
        audit(
            actor, "kb.clone_started", base, outcome="accepted", target_type="knowledge_base", title=source.name, task_id=run.task_id,
            source_kb_id=str(source.uid), target_kb_id=str(target.uid), count=run.progress_total,
            mode="new" if is_new else "mirror",
        )  # fmt: skip
    publish(CopyStarted(space_id=source.space_id, source_kb_id=source.pk, target_kb_id=target.pk))
    enqueue(run)
    return run


def copy_cancel(*, actor: Actor, run: CopyRun) -> bool:
    """Stop a copy: a new base made for it goes, a mirrored one keeps what came so far. False when it had ended already."""
    authorize(actor, "base.copy")
    from apps.knowledge.copying import end_copy

    with transaction.atomic():
        if not run.is_live:
            return False
        was_queued = run.state == "queued"
        cancel_run(run)
        if was_queued and run.state == "cancelled":
            end_copy(run, actor)
    return True
