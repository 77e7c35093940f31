"""Spans of an attempt: what each stage did, when, and how it ended (contract knowledge 4.18)."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from apps.ingestion.models import Span
from apps.knowledge.models import Document
from apps.llm.failures import FAILURES

#: Stage names of the contract, in order, with what each waits for.
STAGES = ("docreader", "chunking", "embedding", "multimodal", "postprocess")
NEEDS = {"chunking": ("docreader",), "embedding": ("chunking",), "multimodal": ("chunking",), "postprocess": ("embedding", "multimodal")}

#: reason of a failed document -> the contract's span error code
ERROR_CODES = {
    "timeout": "DOCREADER_TIMEOUT",
    "stalled": "TASK_STALLED",
    "cancelled": "USER_CANCELLED",
    "internal": "UNKNOWN",
}


def _error_code(reason: str, stage: str) -> str:
    if stage == "multimodal" and reason.startswith("model_"):
        return "MULTIMODAL_VLM_FAILED"
    return "EMBEDDING_PROVIDER_FAIL" if reason in FAILURES else ERROR_CODES.get(reason, "DOCREADER_PARSE_FAILED")


def start(document: Document, attempt: int, name: str, *, kind: str = "stage", parent: str = "", **details: Any) -> None:
    """A stage begins (again, after a take-over: the row is reused)."""
    Span.objects.update_or_create(
        document=document,
        attempt=attempt,
        name=name,
        defaults={
            "space_id": document.space_id,
            "kind": kind,
            "parent_name": parent,
            "status": Span.Status.RUNNING,
            "input": details or None,
            "output": None,
            "error_code": "",
            "error_message": "",
            "started_at": timezone.now(),
            "finished_at": None,
        },
    )


def finish(
    document: Document, attempt: int, name: str, status: str = Span.Status.DONE, *, reason: str = "", error: str = "", **details: Any
) -> None:
    """A stage ended; nothing happens when it never began."""
    Span.objects.filter(document=document, attempt=attempt, name=name).update(
        status=status,
        output=details or None,
        error_code=_error_code(reason, name) if status == Span.Status.FAILED else "",
        error_message=error[:2000],
        finished_at=timezone.now(),
        updated_at=timezone.now(),
    )


def skip(document: Document, attempt: int, name: str, why: str) -> None:
    """A stage that this document does not need."""
    start(document, attempt, name)
    finish(document, attempt, name, Span.Status.SKIPPED, why=why)


def end_open(document: Document, attempt: int, status: str, *, reason: str = "", error: str = "") -> None:
    """End whatever still runs: the attempt failed or was stopped."""
    for name in Span.objects.filter(document=document, attempt=attempt, status=Span.Status.RUNNING).values_list("name", flat=True):
        finish(document, attempt, name, status, reason=reason, error=error)
