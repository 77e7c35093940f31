"""Summaries of documents, written by the chat model of their base (contract knowledge 4.10)."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.knowledge.events import SummaryWanted
from apps.knowledge.models import Document
from apps.knowledge.services.asking import MODEL_ERRORS, ask, excerpt, has_chat_model, model_of, passages_of, told

MAX_SUMMARY = 4000
MAX_TOKENS = 700
REQUEST = (
    "Summarise this document in one paragraph of three to six sentences for somebody who decides whether to open it: what it is, what it "
    "covers, the most important facts, names, codes and numbers. No heading, no list, no remark about yourself."
)
WRITTEN = ("none", "")


def summary_regenerate(*, actor: Actor, document: Document) -> Document:
    """The document with a summary written now, where it had none; where it has one it is queued and the old one stays meanwhile.

    Raises: InvalidInput (no_chat_model, no_passages, or what is wrong with the model).
    """
    authorize(actor, "document.update", document)
    try:
        model_of(document.kb)
    except MODEL_ERRORS as error:
        raise told(error) from error
    if not passages_of(document):
        raise InvalidInput(_("There is no text to summarise yet. Wait until the document is parsed."), code="no_passages", api_code=1000)
    if document.summary_status in WRITTEN:
        try:
            text = summary_draft(document)
        except MODEL_ERRORS as error:
            raise told(error) from error
        summary_store(actor=actor, document=document, text=text)
    else:
        with transaction.atomic():
            Document.objects.filter(pk=document.pk).update(summary_status="pending", updated_at=timezone.now())
            publish(SummaryWanted(space_id=document.space_id, document_id=document.pk))
    document.refresh_from_db(fields=["description", "summary_status", "updated_at"])
    return document


def summary_refresh(document: Document) -> None:
    """A summary that is there is queued to be written anew, because what it is made from changed. Runs in the caller's transaction.

    Without a chat model nothing is queued: what stands there stays.
    """
    if document.summary_status in WRITTEN or not has_chat_model(document.kb):
        return
    Document.objects.filter(pk=document.pk).update(summary_status="pending")
    document.summary_status = "pending"
    publish(SummaryWanted(space_id=document.space_id, document_id=document.pk))


def summary_draft(document: Document) -> str:
    """What the model of the base writes about a document now; nothing is stored.

    Raises: InvalidInput (no_chat_model) and what a chat model raises.
    """
    model = model_of(document.kb)
    about = [f"Title: {document.title}", *(f"{name}: {value}" for name, value in (document.custom_metadata or {}).items())]
    shown = "\n".join(about) + "\n\n" + excerpt(passages_of(document))
    return ask(model, REQUEST, shown, max_tokens=MAX_TOKENS)[:MAX_SUMMARY]


def summary_store(*, actor: Actor, document: Document, text: str) -> bool:
    """Keep a summary, unless somebody wrote another one since `document` was read; whether it was kept."""
    authorize(actor, "document.update", document)
    with transaction.atomic():
        rows = Document.objects.filter(pk=document.pk, attempt=document.attempt, deleted_at__isnull=True, description=document.description)
        if not rows.update(description=text, summary_status="completed", updated_at=timezone.now()):
            Document.objects.filter(pk=document.pk, summary_status__in=["pending", "processing"]).update(summary_status="completed")
            return False
        if text != document.description:
            change = {"description": {"before": document.description, "after": text}}
            audit(
                actor,
                "knowledge.updated",
                document,
                target_type="knowledge",
                title=document.title,
                changed_fields=["description"],
                changes=change,
                mode="generated",
            )
    return True


def summary_state_set(*, actor: Actor, document: Document, state: str) -> None:
    """Say where the writing of a summary is (`pending processing failed`); a finished or cleared one is left alone."""
    authorize(actor, "document.update", document)
    rows = Document.objects.filter(pk=document.pk, attempt=document.attempt, deleted_at__isnull=True)
    if state == "pending":
        rows.update(summary_status=state)
    else:
        rows.filter(summary_status__in=["pending", "processing"]).update(summary_status=state)
