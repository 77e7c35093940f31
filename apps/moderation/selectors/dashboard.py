"""The admin's front page: what is wrong now, what to do about it, and a few figures. Every number is counted from rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.accounts.models import User
from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import Document, ParseStatus
from apps.knowledge.reasons import reason_of
from apps.moderation.charts import Bars, bars_of_days
from apps.moderation.selectors.disk import Disk, disk
from apps.moderation.selectors.runs import Queue, failures_by_reason, queues
from apps.moderation.selectors.storage import Holding, last_report, totals
from apps.moderation.words import KINDS, size_text
from apps.retrieval.models import RetrievalLog
from apps.retrieval.selectors import SearchFigures, search_figures, searches_by_day
from apps.spaces.models import Space

DAYS = 14
LAGGING = timedelta(minutes=20)  # silence after which a document in flight is called stalled
MISS_SHARE = 0.25
SLOW_MS = 300.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something to look at. `tone`: "bad" when people are hindered now, "warn" when they soon may be."""

    tone: str
    title: str
    step: str
    href: str
    link: str


def dashboard(*, actor: Actor) -> dict[str, Any]:
    """Context of moderation/dashboard.html."""
    authorize(actor, "figures.read")
    now = timezone.now()
    since = now - timedelta(days=1)
    found = queues(actor=actor)
    room = disk()
    held = totals(actor=actor)
    recent = RetrievalLog.objects.filter(created_at__gte=since)
    searches = search_figures(recent)
    failed = _failed_documents(since)
    troubles = [
        *_queue_troubles(found),
        *_disk_troubles(room),
        *_run_troubles(actor, since),
        *_index_troubles(actor, held, now),
        *_search_troubles(searches),
    ]
    return {
        "title": _("Overview"),
        "troubles": sorted(troubles, key=lambda each: each.tone != "bad"),
        "failed_documents": failed,
        "failed_total": sum(row["count"] for row in failed),
        "queues": found,
        "figures": _figures(held, searches, room),
        "chart": _chart(),
        "now": now,
    }


def _failed_documents(since: datetime) -> list[dict[str, Any]]:
    rows = Document.objects.filter(deleted_at__isnull=True, parse_status=ParseStatus.FAILED, processed_at__gte=since).order_by()
    counted = sorted(rows.values_list("reason").annotate(count=Count("pk")), key=lambda row: (-row[1], row[0]))
    address = reverse("admin:knowledge_document_changelist")
    return [
        {
            "count": count,
            "reason": reason_of(reason).title,
            "step": reason_of(reason).next,
            "href": f"{address}?{urlencode({'state': 'failed', 'reason': reason})}",
        }
        for reason, count in counted
    ]


def _queue_troubles(found: list[Queue]) -> Iterator[Trouble]:
    for queue in found:
        if queue.unserved and queue.queued:
            waiting = ngettext("%(count)d piece of work waits.", "%(count)d pieces of work wait.", queue.queued) % {"count": queue.queued}
            yield Trouble(
                "bad",
                _("No worker serves the queue %(queue)s.") % {"queue": queue.name} + f" {waiting}",
                _("Start a worker with this queue in KB_WORKER_QUEUES; what waits goes on by itself."),
                f"{reverse('admin:runs')}?state=waiting",
                _("What waits"),
            )
        elif queue.unserved:
            yield Trouble(
                "warn",
                _("No worker serves the queue %(queue)s.") % {"queue": queue.name},
                _("Nothing waits in it yet. Start a worker with this queue in KB_WORKER_QUEUES."),
                reverse("admin:runs"),
                _("Queues and workers"),
            )
        elif queue.oldest and timezone.now() - queue.oldest > timedelta(hours=1):
            yield Trouble(
                "warn",
                _("Work has been waiting in %(queue)s for %(time)s.") % {"queue": queue.name, "time": timesince(queue.oldest)},
                _("It is served, but slowly. Add a worker for this queue if it stays so."),
                f"{reverse('admin:runs')}?state=queued",
                _("What waits"),
            )


def _disk_troubles(room: Disk) -> Iterator[Trouble]:
    if room.line == "refuse":
        title = _("Only %(free)s are free: new files are refused below %(line)s.")
        yield Trouble(
            "bad",
            title % {"free": size_text(room.free_bytes), "line": size_text(room.refuse_bytes)},
            _("Make room on the disk of the data folder; uploads are taken again at once."),
            reverse("admin:storage"),
            _("What takes room"),
        )
    elif room.line == "warn":
        title = _("%(free)s are free, less than the %(line)s at which people are warned.")
        yield Trouble(
            "warn",
            title % {"free": size_text(room.free_bytes), "line": size_text(room.warn_bytes)},
            _("Make room before it reaches %(line)s: below that, new files are refused.") % {"line": size_text(room.refuse_bytes)},
            reverse("admin:storage"),
            _("What takes room"),
        )


def _run_troubles(actor: Actor, since: datetime) -> Iterator[Trouble]:
    for kind, reason, count in failures_by_reason(actor=actor, since=since):
        if kind in ("parse", "ocr") and reason not in ("internal", "stalled", "crashed"):
            continue  # the document says it in its own words
        title = ngettext("%(kind)s failed once in 24 hours.", "%(kind)s failed %(count)d times in 24 hours.", count)
        what = title % {"kind": KINDS.get(kind, kind), "count": count}
        yield Trouble(
            "bad" if reason in ("internal", "stalled") else "warn",
            _("%(what)s Reason: %(reason)s.") % {"what": what, "reason": reason_of(reason).title} if reason else what,
            _("Open one to see its error, and try it again."),
            f"{reverse('admin:runs')}?{urlencode({'state': 'failed', 'kind': kind, 'reason': reason, 'hours': 48})}",
            _("Show them"),
        )


def _index_troubles(actor: Actor, held: Holding, now: datetime) -> Iterator[Trouble]:
    flying = Document.objects.filter(deleted_at__isnull=True, parse_status__in=[ParseStatus.PROCESSING, ParseStatus.FINALIZING])
    stuck = flying.filter(updated_at__lt=now - LAGGING).count()
    if stuck:
        yield Trouble(
            "warn",
            ngettext("%(count)d document has been silent for 20 minutes.", "%(count)d documents have been silent for 20 minutes.", stuck)
            % {"count": stuck},
            _("Its run says what it waits for; vectors of long documents do take time."),
            f"{reverse('admin:knowledge_document_changelist')}?state=processing",
            _("Show them"),
        )
    report = last_report(actor=actor)
    if report is not None and (report.stale_documents or report.missing_files or report.idle_documents):
        parts = [
            ngettext(
                "%(n)d document is not in the index as it is in the database",
                "%(n)d documents are not in the index as they are in the database",
                report.stale_documents,
            )
            % {"n": report.stale_documents}
            if report.stale_documents
            else "",
            ngettext("%(n)d file is missing from the store", "%(n)d files are missing from the store", report.missing_files)
            % {"n": report.missing_files}
            if report.missing_files
            else "",
            ngettext(
                "%(n)d document is in flight with nobody working on it",
                "%(n)d documents are in flight with nobody working on them",
                report.idle_documents,
            )
            % {"n": report.idle_documents}
            if report.idle_documents
            else "",
        ]
        yield Trouble(
            "warn",
            _("When last compared: %(what)s.") % {"what": "; ".join(part for part in parts if part)},
            _("Run manage.py reconcile; it repairs what can be repaired and names the rest."),
            reverse("admin:storage"),
            _("Storage"),
        )


def _search_troubles(searches: SearchFigures) -> Iterator[Trouble]:
    address = reverse("admin:retrieval_retrievallog_changelist")
    if searches.error:
        yield Trouble(
            "bad",
            ngettext("%(count)d search failed in 24 hours.", "%(count)d searches failed in 24 hours.", searches.error)
            % {"count": searches.error},
            _("The log says which part failed; the health page says whether it still does."),
            f"{address}?outcome=error",
            _("Show them"),
        )
    if searches.failed_leg > searches.error:
        count = searches.failed_leg - searches.error
        yield Trouble(
            "warn",
            ngettext("%(count)d search was answered by one leg alone.", "%(count)d searches were answered by one leg alone.", count)
            % {"count": count},
            _("The embedding model did not answer, or vectors of another model are being made. Words go on finding."),
            f"{address}?leg=failed",
            _("Show them"),
        )
    if searches.asked >= 20 and searches.miss / searches.asked >= MISS_SHARE:
        yield Trouble(
            "warn",
            _("%(miss)d of %(asked)d searches found nothing in 24 hours.") % {"miss": searches.miss, "asked": searches.asked},
            _("People ask for what is not there. Tell the admins of the spaces concerned."),
            f"{address}?outcome=miss",
            _("Show them"),
        )
    if searches.p95_ms is not None and searches.p95_ms > SLOW_MS and searches.total >= 20:
        yield Trouble(
            "warn",
            _("Every twentieth search takes longer than %(ms)d ms.") % {"ms": searches.p95_ms},
            _("The log shows which part is slow: the model that reads the question, or the index."),
            f"{address}?slow=300",
            _("Show them"),
        )


def _figures(held: Holding, searches: SearchFigures, room: Disk) -> list[dict[str, Any]]:
    live_spaces = Space.objects.filter(deleted_at__isnull=True).count()
    people = User.objects.filter(is_active=True).count()
    coverage = _("%(count)s with vectors") % {"count": f"{held.vectors:,}"}
    speed = (
        _("half within %(p50)d ms, 95%% within %(p95)d ms") % {"p50": round(searches.p50_ms), "p95": round(searches.p95_ms)}
        if searches.p50_ms is not None and searches.p95_ms is not None
        else _("none yet")
    )
    return [
        {"label": _("People"), "value": f"{people:,}", "note": _("active accounts"), "href": reverse("admin:accounts_user_changelist")},
        {"label": _("Spaces"), "value": f"{live_spaces:,}", "note": "", "href": reverse("admin:spaces_space_changelist")},
        {
            "label": _("Documents"),
            "value": f"{held.documents:,}",
            "note": size_text(held.originals_bytes),
            "href": reverse("admin:knowledge_document_changelist"),
        },
        {"label": _("Passages"), "value": f"{held.passages:,}", "note": coverage, "href": ""},
        {
            "label": _("Searches in 24 hours"),
            "value": f"{searches.total:,}",
            "note": speed,
            "href": reverse("admin:retrieval_retrievallog_changelist"),
        },
        {"label": _("Free on the disk"), "value": size_text(room.free_bytes), "note": "", "href": reverse("admin:storage")},
    ]


def _chart() -> Bars:
    return bars_of_days(searches_by_day(RetrievalLog.objects.all(), DAYS))
