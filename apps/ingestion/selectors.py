"""Reading runs and traces: the contract's `/stages` and the verdict on rows that are silent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max
from django.utils import timezone

from apps.common.actor import Actor
from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.service import has_worker, served_queues
from apps.common.policy import authorize
from apps.ingestion.chunking.service import DEFAULTS as CHUNKING_DEFAULTS
from apps.ingestion.chunking.service import passages_cut, preview
from apps.ingestion.models import IngestionRun, Span
from apps.ingestion.parsed import read_parsed
from apps.ingestion.tables import TableRead, table_read
from apps.ingestion.trace import NEEDS, STAGES
from apps.ingestion.vector_state import ReindexPlan, VectorState, reindex_plan, run_facts, stale_bases, vector_state
from apps.ingestion.versions import VersionDiff, version_diff
from apps.knowledge.intake import StallState
from apps.knowledge.models import Document, ParseStatus
from apps.knowledge.models.document import IN_FLIGHT

__all__ = [
    "CHUNKING_DEFAULTS",
    "ReindexPlan",
    "TableRead",
    "table_read",
    "VectorState",
    "VersionDiff",
    "version_diff",
    "chunk_preview",
    "document_trace",
    "live_runs",
    "passages_cut",
    "read_parsed",
    "reindex_plan",
    "run_facts",
    "stale_bases",
    "stall_verdicts",
    "vector_state",
]

SILENCE = timedelta(minutes=20)  # contract knowledge 4.8
ROOT = "knowledge_processing"
STATUS_OF = {
    ParseStatus.COMPLETED: Span.Status.DONE,
    ParseStatus.FAILED: Span.Status.FAILED,
    ParseStatus.CANCELLED: Span.Status.CANCELLED,
    ParseStatus.PROCESSING: Span.Status.RUNNING,
    ParseStatus.FINALIZING: Span.Status.RUNNING,
}


def stall_verdicts(*, actor: Actor, documents: Iterable[Document]) -> dict[int, StallState]:
    """{document pk: when anything last happened, and "queued" or "stalled" after 20 minutes of silence} for those in flight.

    Source: contract knowledge 4.8.
    """
    authorize(actor, "document.read")
    flying = {d.pk: d for d in documents if d.parse_status in IN_FLIGHT}
    if not flying:
        return {}
    touched = dict(Span.objects.filter(document_id__in=flying).order_by().values_list("document_id").annotate(Max("updated_at")))
    live = set(IngestionRun.objects.filter(document_id__in=flying, state__in=LIVE).values_list("document_id", flat=True))
    verdicts: dict[int, StallState] = {}
    for pk, document in flying.items():
        last = max(document.updated_at, touched.get(pk, document.updated_at))
        silent = timezone.now() - last >= SILENCE
        verdicts[pk] = StallState(("queued" if pk in live else "stalled") if silent else "", last)
    return verdicts


def live_runs(*, actor: Actor, documents: Iterable[Document]) -> dict[int, dict[str, Any]]:
    """{document pk: what its live pass is doing}: kind, state, done, total, unit, started_at, waits_for_worker, and the reason it waits;
    for rows of a list.
    """
    authorize(actor, "run.read")
    pks = [d.pk for d in documents if d.parse_status in IN_FLIGHT]
    if not pks:
        return {}
    served = served_queues()
    found: dict[int, dict[str, Any]] = {}
    for run in IngestionRun.objects.filter(document_id__in=pks, state__in=LIVE).order_by("pk"):
        found[run.document_id] = {
            "kind": run.kind,
            "state": run.state,
            "done": run.progress_done,
            "total": run.progress_total,
            "unit": run.progress_unit,
            "started_at": run.started_at,
            "reason": run.reason if run.state == RunState.QUEUED else "",
            "waits_for_worker": run.state == RunState.QUEUED and not has_worker(run.kind, served),
        }
    return found


def document_trace(*, actor: Actor, document: Document, attempt: int | None = None) -> dict[str, Any]:
    """The contract's trace of one attempt (knowledge 4.18); a missing or unknown attempt means the latest."""
    authorize(actor, "run.read", document)
    latest = Span.objects.filter(document=document).aggregate(n=Max("attempt"))["n"] or 0
    chosen = attempt if attempt and 0 < attempt <= latest else latest
    spans = list(Span.objects.filter(document=document, attempt=chosen).order_by("started_at", "pk"))
    trace: dict[str, Any] = {
        "knowledge_id": str(document.uid),
        "attempt": chosen,
        "latest_attempt": latest,
        "current_attempt": latest,
        "parse_status": document.parse_status,
        "current_stage": next((s.name for s in reversed(spans) if s.status == "running" and s.name in STAGES), ""),
        "trace": _tree(document, chosen, spans, is_latest=chosen == latest),
    }
    if error := _last_error(document, spans, is_latest=chosen == latest):
        trace["last_error"] = error
    if run := live_runs(actor=actor, documents=[document]).get(document.pk):
        trace["progress"] = {"stage": run["kind"], "done": run["done"], "total": run["total"], "unit": run["unit"]}
    if verdict := stall_verdicts(actor=actor, documents=[document]).get(document.pk):
        trace["last_activity_at"] = verdict.last_activity_at
        if verdict.state:
            trace["stall_state"] = verdict.state
    return trace


def _tree(document: Document, attempt: int, spans: list[Span], *, is_latest: bool) -> dict[str, Any]:
    by_name = {span.name: span for span in spans}
    status = STATUS_OF.get(ParseStatus(document.parse_status), Span.Status.PENDING) if is_latest else Span.Status.DONE
    root = _node(document, attempt, by_name.get(ROOT), ROOT, "root", status)
    children = [_node(document, attempt, s, s.name, s.kind, s.status) for s in spans if s.name in STAGES]
    have = {child["name"]: child["status"] for child in children}
    for name in STAGES:
        if name not in have:
            have[name] = _missing(name, have, document)
            children.append(_node(document, attempt, None, name, "stage", have[name]))
    root["children"] = sorted(children, key=lambda child: STAGES.index(child["name"]))
    return root


def _missing(name: str, have: dict[str, str], document: Document) -> str:
    """The status of a stage without a row, from its neighbours and the document."""
    failed = [stage for stage, status in have.items() if status in ("failed", "cancelled") and stage in STAGES]
    if failed:
        before = STAGES.index(name) < min(STAGES.index(stage) for stage in failed)
        return Span.Status.SKIPPED if before else Span.Status.CANCELLED
    if document.parse_status == ParseStatus.COMPLETED:
        return Span.Status.DONE
    if document.parse_status == ParseStatus.CANCELLED:
        return Span.Status.CANCELLED
    if document.parse_status == ParseStatus.FAILED:
        return Span.Status.CANCELLED if NEEDS.get(name) else Span.Status.FAILED
    return Span.Status.PENDING


def _node(document: Document, attempt: int, span: Span | None, name: str, kind: str, status: str) -> dict[str, Any]:
    node: dict[str, Any] = {
        "knowledge_id": str(document.uid),
        "attempt": attempt,
        "span_id": f"{document.uid}:{attempt}:{name}",
        "name": name,
        "kind": kind,
        "status": span.status if span else status,
        "created_at": span.created_at if span else document.created_at,
        "updated_at": span.updated_at if span else document.updated_at,
    }
    if kind != "root":
        node["parent_span_id"] = f"{document.uid}:{attempt}:{ROOT}"
    if span is None:
        return node
    node["started_at"] = span.started_at
    optional = {"input": span.input, "output": span.output, "error_code": span.error_code, "error_message": span.error_message}
    node |= {key: value for key, value in optional.items() if value}
    if span.finished_at:
        node["finished_at"] = span.finished_at
        if duration := _milliseconds(span.started_at, span.finished_at):
            node["duration_ms"] = duration
    return node


def _milliseconds(start: datetime, end: datetime) -> int:
    return round((end - start).total_seconds() * 1000)


def _last_error(document: Document, spans: list[Span], *, is_latest: bool) -> dict[str, Any] | None:
    failed = [s for s in spans if s.status == Span.Status.FAILED and s.name != ROOT]
    if failed:
        worst = next((s for s in failed if s.error_code == "TASK_STALLED"), max(failed, key=lambda s: s.finished_at or s.started_at))
        return _error(worst.name, worst.error_code or "UNKNOWN", worst.error_message, worst.finished_at)
    if is_latest and document.parse_status == ParseStatus.FAILED and document.error_message:
        return _error(ROOT, "UNKNOWN", document.error_message, document.processed_at)
    return None


def _error(stage: str, code: str, message: str, when: datetime | None) -> dict[str, Any]:
    error = {"stage": stage, "code": code, "message": message, "name": stage, "error_code": code, "error_message": message}
    return error | {"finished_at": when}


def chunk_preview(*, actor: Actor, text: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """How a text would be cut with these settings, and why (contract knowledge 11); nothing is stored.

    Raises: InvalidInput, PayloadTooLarge or Unavailable(timeout) as `chunking.service.preview` says.
    """
    authorize(actor, "chunk.preview")
    return preview(text, config)


def summary_trouble(*, actor: Actor, document: Document) -> str:
    """Code of why the last summary of a document could not be written; "" when none was tried."""
    authorize(actor, "run.read", document)
    runs = IngestionRun.objects.filter(document=document, kind="enrich", document_attempt=document.attempt, state=RunState.FAILED)
    return runs.order_by("-pk").values_list("reason", flat=True).first() or ""
