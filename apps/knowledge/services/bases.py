"""Making, changing and removing knowledge bases."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.events import publish
from apps.common.jobs.service import enqueue
from apps.common.policy import authorize
from apps.knowledge.events import BaseChanged, BaseDeleted
from apps.knowledge.models import BaseVisit, CleanupRun, Document, KnowledgeBase, Pin
from apps.knowledge.rules.configs import (
    OPTION_MEMBERS,
    check_chat_model,
    check_embedding_model,
    clean_chunking,
    clean_description,
    clean_name,
    clean_option,
    clean_retrieval,
    clean_strategy,
)
from apps.knowledge.rules.trash import purge_time, tombstone
from apps.knowledge.selectors import as_uuid, has_documents

CLEANUP = "cleanup"


def base_create(*, actor: Actor, values: dict[str, Any]) -> KnowledgeBase:
    """A new base of the actor's space. `values` has the contract's names (knowledge 3.1); a client's own `id` is kept.

    Raises: InvalidInput at the field at fault; Conflict when the id is taken.
    """
    authorize(actor, "base.create")
    uid = uuid.uuid4()
    if values.get("id"):
        uid = as_uuid(values["id"]) or uid
        if str(uid).replace("-", "") != str(values["id"]).replace("-", "").lower():
            raise InvalidInput(_("An id must be a UUID."), field="id")
    options = {name: clean_option(name, values[name]) for name in OPTION_MEMBERS if values.get(name)}
    kind = values.get("type") or KnowledgeBase.Type.DOCUMENT
    base = KnowledgeBase(
        space_id=actor.space,
        uid=uid,
        name=clean_name(values.get("name", "")),
        description=clean_description(values.get("description", "")),
        type=kind,
        is_temporary=bool(values.get("is_temporary")),
        creator_id=actor.user_id,
        chunking_config=clean_chunking(values.get("chunking_config") or {}),
        indexing_strategy=clean_strategy(
            values.get("indexing_strategy"), graph=bool(options.get("extract_config", {}).get("enabled")), creating=True
        ),
        options=options,
        embedding_model_id=check_embedding_model(values.get("embedding_model_id") or ""),
        summary_model_id=check_chat_model(values.get("summary_model_id") or ""),
    )
    try:
        with transaction.atomic():
            base.save(force_insert=True)
            audit(actor, "kb.created", base, target_type="knowledge_base", title=base.name, type=base.type)
    except IntegrityError:
        raise Conflict(_("This id is taken. Leave it out, or choose another."), code="id_taken", field="id") from None
    return base


def base_update(
    *, actor: Actor, base: KnowledgeBase, name: str, description: str = "", config: dict[str, Any] | None = None
) -> KnowledgeBase:
    """The base with its new name, description and, when `config` is given, configuration (contract knowledge 3.6).

    Inside `config`, `chunking_config` is replaced whole; other members that are left out stay as they are.

    Raises: InvalidInput at the field at fault.
    """
    authorize(actor, "base.update", base)
    with transaction.atomic():
        base = KnowledgeBase.objects.visible_to(actor).select_for_update(of=("self",)).get(pk=base.pk)
        before = _snapshot(base)
        base.name = clean_name(name)
        base.description = clean_description(description)
        if config is not None:
            base.chunking_config = clean_chunking(config.get("chunking_config") or {})
            for option in ("image_processing_config", "faq_config", "wiki_config", "auto_tag_config", "profile_config"):
                if option in config and config[option] is not None:
                    base.options = {**base.options, option: clean_option(option, config[option])}
            if config.get("indexing_strategy") is not None:
                graph = bool(base.options.get("extract_config", {}).get("enabled"))
                base.indexing_strategy = clean_strategy(config["indexing_strategy"], graph=graph, creating=False)
        _save_changes(actor, base, before)
    return base


def base_settings_update(*, actor: Actor, base: KnowledgeBase, values: dict[str, Any]) -> KnowledgeBase:
    """The base with new models, splitting and enrichment settings (contract knowledge 3.10); what is left out stays.

    Raises: InvalidInput when a model is unknown, or the embedding model changes while there are documents.
    """
    authorize(actor, "base.update", base)
    with transaction.atomic():
        base = KnowledgeBase.objects.visible_to(actor).select_for_update(of=("self",)).get(pk=base.pk)
        before = _snapshot(base)
        if values.get("llmModelId") is not None:
            base.summary_model_id = check_chat_model(values["llmModelId"], field="llmModelId")
        model = values.get("embeddingModelId")
        if model is not None and model != base.embedding_model_id:
            check_embedding_model(model, field="embeddingModelId")
            if has_documents(actor=actor, base=base):
                raise InvalidInput(
                    _("The base has documents, so its model changes by a re-index: new vectors are made while the old ones serve."),
                    code="embedding_locked",
                    field="embeddingModelId",
                    reindex=f"/api/v1/knowledge-bases/{base.uid}/reindex",
                )
            base.embedding_model_id = model
        if (splitting := values.get("documentSplitting")) is not None:
            base.chunking_config = clean_chunking({**base.chunking_config, **splitting})
        if (retrieval := values.get("retrieval")) is not None:
            base.retrieval_config = {**base.retrieval_config, **clean_retrieval(retrieval)}
        for option, value in values.get("options", {}).items():
            base.options = {**base.options, option: clean_option(option, value)}
        graph = bool(base.options.get("extract_config", {}).get("enabled"))
        base.indexing_strategy = clean_strategy(base.indexing_strategy, graph=graph, creating=True)
        _save_changes(actor, base, before)
    return base


def base_delete(*, actor: Actor, base: KnowledgeBase, keep: bool = True) -> None:
    """Make a base and everything in it a tombstone: invisible at once, and gone from the index. Twice changes nothing.

    For as many days as the trash keeps it, it can be brought back; without a trash, or unless to `keep`, rows and files follow soon.
    """
    authorize(actor, "base.delete", base)
    now = timezone.now()
    purge_at = purge_time(now, keep=keep)
    with transaction.atomic():
        rows = KnowledgeBase.objects.filter(pk=base.pk, deleted_at__isnull=True)
        if not rows.update(deleted_at=now, purge_at=purge_at, updated_at=now):
            return
        documents = Document.objects.filter(kb=base)
        gone = documents.filter(deleted_at__isnull=True).update(**tombstone(now, purge_at))
        if purge_at is None:
            documents.update(purge_at=None)
        Pin.objects.filter(kb=base).delete()
        BaseVisit.objects.filter(kb=base).delete()
        audit(actor, "kb.deleted", base, target_type="knowledge_base", title=base.name, count=gone)
        publish(BaseDeleted(space_id=base.space_id, kb_id=base.pk))
        if purge_at is None:
            enqueue(CleanupRun.objects.create(space_id=base.space_id, kind=CLEANUP, kb_ref=base.pk))


def base_clear(*, actor: Actor, base: KnowledgeBase) -> int:
    """Delete every document of a base; how many there were (contract knowledge 3.12)."""
    from apps.knowledge.services.documents import documents_delete

    authorize(actor, "base.clear", base)
    documents = list(Document.objects.visible_to(actor).filter(kb=base).exclude(type=Document.Type.FAQ).select_related("kb").order_by("pk"))
    return documents_delete(actor=actor, base=base, documents=documents).count if documents else 0


def base_pin_toggle(*, actor: Actor, base: KnowledgeBase) -> bool:
    """Pin or unpin a base for the person; whether it is pinned now."""
    authorize(actor, "base.pin", base)
    with transaction.atomic():
        deleted, _by_model = Pin.objects.visible_to(actor).filter(user_id=actor.user_id, kb=base).delete()
        if deleted:
            return False
        Pin.objects.get_or_create(user_id=actor.user_id, kb=base, defaults={"space_id": base.space_id})
    return True


def base_visit(*, actor: Actor, base: KnowledgeBase) -> None:
    """Remember that the person opened the base now; keys leave no trace."""
    authorize(actor, "base.read", base)
    if actor.user_id is None:
        return
    now = timezone.now()
    BaseVisit.objects.update_or_create(user_id=actor.user_id, kb=base, defaults={"visited_at": now, "space_id": base.space_id})


_WATCHED = (
    "name",
    "description",
    "chunking_config",
    "indexing_strategy",
    "retrieval_config",
    "options",
    "embedding_model_id",
    "summary_model_id",
)


def _snapshot(base: KnowledgeBase) -> dict[str, Any]:
    return {field: getattr(base, field) for field in _WATCHED}


def _save_changes(actor: Actor, base: KnowledgeBase, before: dict[str, Any]) -> None:
    changed = tuple(field for field in _WATCHED if getattr(base, field) != before[field])
    if not changed:
        return
    base.save(update_fields=[*changed, "updated_at"])
    changes = {field: {"before": before[field], "after": getattr(base, field)} for field in changed}
    audit(actor, "kb.updated", base, target_type="knowledge_base", title=base.name, changed_fields=list(changed), changes=changes)
    publish(BaseChanged(space_id=base.space_id, kb_id=base.pk, changed=changed))
