"""The summary above the passages of a document: its text, where it is, why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.policy import allowed
from apps.ingestion.selectors import summary_trouble
from apps.knowledge.models import Document
from apps.knowledge.services import has_chat_model
from apps.llm.failures import failure_of


@dataclass(frozen=True, slots=True)
class Summary:
    """`busy`: it is being written; `why`: what is wrong or missing, in one sentence, and `next` what to do about it."""

    text: str
    busy: bool
    may_write: bool
    may_generate: bool
    why: str = ""
    next: str = ""


def summary_of(actor: Actor, document: Document) -> Summary:
    may_write = allowed(actor, "document.update", document)
    has_model = has_chat_model(document.kb)
    why = after = ""
    busy = document.summary_status in ("pending", "processing")
    if document.summary_status == "failed":
        words = failure_of(summary_trouble(actor=actor, document=document) or "model_unavailable")
        why, after = _("The summary could not be written: %(why)s.") % {"why": words.why}, str(words.next)
    elif not has_model and may_write and not document.description:
        why = _("No chat model is chosen for this knowledge base, so no summary is written by itself.")
        after = _("An admin adds one on the page Models and chooses it in the settings of the base. Or write the summary yourself.")
    return Summary(document.description, busy, may_write, may_write and has_model and bool(document.chunk_count), why, after)


def summary_context(actor: Actor, document: Document) -> dict[str, Any]:
    return {"summary": summary_of(actor, document)}
