"""Tags that the chat model of a base chooses for a document, among those the base has (contract knowledge 3.1, `auto_tag_config`)."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.events import publish
from apps.common.policy import authorize
from apps.knowledge.events import DocumentsRefiled
from apps.knowledge.models import Document, DocumentTag, KnowledgeBase, Tag
from apps.knowledge.services.asking import ask, excerpt, model_named, passages_of
from apps.knowledge.services.tags import UNCATEGORIZED

MOST_CANDIDATES = 300
SHOWN = 6_000


def tagging_wanted(*, actor: Actor, document: Document) -> bool:
    """Whether the base wants tags proposed for this document, and could have them: there are tags, and a model."""
    authorize(actor, "document.update", document)
    config = _config(document.kb)
    if not config.get("enabled") or model_named(_model_id(document.kb)) is None:
        return False
    if config.get("skip_if_tagged", True) and DocumentTag.objects.filter(document=document).exists():
        return False
    return bool(_candidates(document.kb))


def tags_propose(*, actor: Actor, document: Document) -> list[Tag]:
    """The tags the model chose and the document was given, at most as many as the base says; none it does not have, none made up.

    Raises: as a chat model.
    """
    if not tagging_wanted(actor=actor, document=document):
        return []
    model = model_named(_model_id(document.kb))
    assert model is not None
    candidates = _candidates(document.kb)
    most = int(_config(document.kb).get("max_tags") or 3)
    request = (
        f"Choose the tags that fit this document, at most {most}, the best first; none where none fits. Choose only from this list: "
        f"{json.dumps(list(candidates), ensure_ascii=False)}. Answer with a JSON array of strings."
    )
    said = ask(model, request, f"Title: {document.title}\n\n{excerpt(passages_of(document), SHOWN)}", max_tokens=300)
    chosen = _chosen(said, candidates)[:most]
    return chosen if chosen and _give(actor, document, chosen) else []


def _config(base: KnowledgeBase) -> dict[str, Any]:
    found = base.options.get("auto_tag_config")
    return found if isinstance(found, dict) else {}


def _model_id(base: KnowledgeBase) -> str:
    return str(_config(base).get("model_id") or base.summary_model_id)


def _candidates(base: KnowledgeBase) -> dict[str, Tag]:
    rows = Tag.objects.filter(kb=base).exclude(name=UNCATEGORIZED).order_by("sort_order", "pk")
    return {tag.name: tag for tag in rows[:MOST_CANDIDATES]}


def _chosen(said: str, candidates: dict[str, Tag]) -> list[Tag]:
    start, end = said.find("["), said.rfind("]")
    try:
        named = json.loads(said[start : end + 1]) if 0 <= start < end else []
    except ValueError:
        named = []
    by_name = {name.casefold(): tag for name, tag in candidates.items()}
    found = [by_name.get(name.strip().casefold()) for name in named if isinstance(name, str)] if isinstance(named, list) else []
    return list(dict.fromkeys(tag for tag in found if tag is not None))


def _give(actor: Actor, document: Document, tags: list[Tag]) -> bool:
    with transaction.atomic():
        row = Document.objects.select_for_update(of=("self",)).filter(pk=document.pk, deleted_at__isnull=True, kb_id=document.kb_id).first()
        live = list(Tag.objects.filter(pk__in=[tag.pk for tag in tags], kb_id=document.kb_id))
        if row is None or not live:
            return False
        DocumentTag.objects.bulk_create([DocumentTag(space_id=row.space_id, document=row, tag=tag) for tag in live], ignore_conflicts=True)
        Document.objects.filter(pk=row.pk).update(index_rev=F("index_rev") + 1, updated_at=timezone.now())
        audit(
            actor,
            "knowledge.updated",
            document,
            target_type="knowledge",
            title=document.title,
            changed_fields=["tags"],
            mode="generated",
            count=len(live),
        )
        publish(DocumentsRefiled(space_id=row.space_id, document_ids=(row.pk,)))
    return True
