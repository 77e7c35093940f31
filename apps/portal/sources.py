"""Data sources as pages show them: state, last result and schedule in words, the history of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy

from apps.common.actor import Actor
from apps.common.jobs.service import has_worker
from apps.common.policy import allowed
from apps.knowledge.models import Document, KnowledgeBase
from apps.portal.forms.sources import DAYS, EVERY, preset_of
from apps.sources.models import DataSource, SourceItem, SyncRun
from apps.sources.plugins.protocol import ConnectorMeta, connectors
from apps.sources.reasons import sentence, words_of
from apps.sources.selectors import SourceRow, last_seen, origins_of, source_list
from apps.sources.words import WORDS as SAID

#: Icons of the sprite that a connector may name; another one is drawn as a feed.
ICONS = frozenset(
    "base book cloud code database document file-code folder folder-open git git-merge globe layers link source split wiki".split()
)
COUNTS: tuple[tuple[str, Any], ...] = (
    ("created", gettext_lazy("new")),
    ("updated", pgettext_lazy("count", "changed")),
    ("renamed", gettext_lazy("renamed")),
    ("deleted", gettext_lazy("deleted")),
    ("held", gettext_lazy("held")),
    ("skipped", gettext_lazy("skipped")),
    ("failed", gettext_lazy("failed")),
    ("unchanged", gettext_lazy("unchanged")),
)
OUTCOMES: dict[str, tuple[str, Any]] = {
    "success": ("completed", gettext_lazy("Succeeded")),
    "partial": ("stalled", gettext_lazy("In part")),
    "failed": ("failed", gettext_lazy("Failed")),
    "canceled": ("cancelled", gettext_lazy("Stopped")),
    "running": ("processing", gettext_lazy("Syncing")),
}


def sources_context(actor: Actor, base: KnowledgeBase) -> dict[str, Any]:
    """Context of `portal/_sources.html`."""
    rows = source_list(actor=actor, base=base)
    served = has_worker("sync") if any(row.live for row in rows) else True
    return {
        "base": base,
        "rows": [row_of(row, served) for row in rows],
        "sources_live": any(row.live for row in rows),
        "may_manage": allowed(actor, "source.write", base),
        "space_id": base.space_id,
    }


def row_of(row: SourceRow, served: bool = True) -> dict[str, Any]:
    """One source: `state` and `word` are what its badge says, `line` what its run is doing."""
    source, live = row.source, row.live
    meta = meta_of(source.type)
    state, word, reason = _state(source, live, served)
    return {
        "row": row,
        "source": source,
        "kind": str(meta.name) if meta else source.type,
        "icon": icon_of(meta),
        "address": address_of(source),
        "state": state,
        "word": word,
        "reason": reason,
        "schedule": schedule_text(source),
        "line": live_line(live, served) if live else "",
        "last": run_of(row.last) if row.last is not None and not row.last.is_live else run_of(row.last_good) if row.last_good else None,
        "is_ready": meta is not None,
        "has_parts": meta is not None and meta.has_resources,
        "menu_id": str(source.pk),
    }


def meta_of(kind: str) -> ConnectorMeta | None:
    return connectors.get(kind).meta if kind in connectors else None


def icon_of(meta: ConnectorMeta | None) -> str:
    return meta.icon if meta is not None and meta.icon in ICONS else "source"


def address_of(source: DataSource) -> str:
    """Where it is, in one line: the first address or folder among its settings."""
    for name in ("feed_urls", "start_urls", "folder", "url", "base_url", "bucket", "address"):
        value = source.settings.get(name)
        if isinstance(value, str) and value.strip():
            lines = value.replace(",", "\n").split()
            return f"{lines[0]} +{len(lines) - 1}" if len(lines) > 1 else lines[0]
    return ""


def _state(source: DataSource, live: SyncRun | None, served: bool) -> tuple[str, str, str]:
    if live is not None:
        if live.state == "queued":
            return ("pending", _("Waiting"), "" if served else _("no worker is running"))
        return ("processing", _("Syncing"), "")
    if source.is_draft:
        return ("draft", _("Not set up yet"), _("its schedule is missing"))
    if source.status == DataSource.Status.PAUSED:
        return ("cancelled", _("Paused"), "")
    if source.status == DataSource.Status.ERROR:
        return ("failed", _("Error"), str(words_of(source.error_code).title))
    return ("completed", _("Active"), "")


def live_line(run: SyncRun, served: bool) -> str:
    if run.state == "queued":
        if run.reason:
            return _("%(title)s%(detail)s. %(next)s") % {
                "title": words_of(run.reason).title,
                "detail": "",
                "next": _("It is tried again by itself."),
            }
        return _("Waiting for its turn") if served else _("Waiting: no worker is running")
    done = ngettext("%(count)s item seen", "%(count)s items seen", run.progress_done) % {"count": f"{run.progress_done:,}"}
    counted = counts_text(run, skip=("unchanged",))
    return f"{done} · {counted}" if counted else done


def counts_of(run: SyncRun) -> list[tuple[str, int, str]]:
    """(name, count, word) of what is not zero."""
    return [(name, getattr(run, name), str(word)) for name, word in COUNTS if getattr(run, name)]


def counts_text(run: SyncRun, *, skip: Iterable[str] = ()) -> str:
    return " · ".join(f"{count:,} {word}" for name, count, word in counts_of(run) if name not in skip)


def run_of(run: SyncRun) -> dict[str, Any]:
    """A run of the history."""
    outcome = run.outcome
    state, word = OUTCOMES[outcome]
    found = words_of(run.reason) if run.reason and outcome in ("failed", "canceled") else None
    return {
        "run": run,
        "state": state,
        "word": word,
        "at": run.finished_at or run.started_at or run.created_at,
        "took_s": (run.finished_at - run.started_at).total_seconds() if run.finished_at and run.started_at else None,
        "counts": counts_of(run),
        "text": counts_text(run) or _("nothing new"),
        "trigger": SyncRun.Trigger(run.trigger).label,
        "is_full": run.mode == "full",
        "why": found,
        "detail": run.error if outcome == "failed" and found is not None and run.error not in ("", run.reason) else "",
        "warnings": [words_of(each["code"], each.get("params")) for each in run.warnings],
        "errors": [_fault(each) for each in run.errors],
        "few_errors": len(run.errors) < 6,
        "more_errors": max(0, run.failed - len(run.errors)),
    }


def _fault(each: dict[str, Any]) -> dict[str, Any]:
    """An item that went wrong. What a source itself said is shown as it said it; the portal's own refusals are in words already."""
    code = each.get("code", "")
    return {
        "title": each.get("title", ""),
        "text": sentence(code, params=each.get("params")),
        "message": each.get("message", "") if code in SAID else "",
    }


def schedule_text(source: DataSource) -> str:
    """How often, in words."""
    if not source.schedule:
        return str(EVERY["manual"][0])
    shown = preset_of(source.schedule)
    if shown["every"] == "daily":
        return _("Every day at %(time)s") % {"time": shown["at"]}
    if shown["every"] == "weekly":
        return _("Every %(day)s at %(time)s") % {"day": dict(DAYS)[shown["day"]], "time": shown["at"]}
    return source.schedule if shown["every"] == "cron" else str(EVERY[shown["every"]][0])


def sources_url(base: KnowledgeBase) -> str:
    return reverse("base-sources", args=[base.space_id, base.uid])


def setup_steps(base: KnowledgeBase, source: DataSource | None, current: int) -> list[dict[str, Any]]:
    """The four steps of setting a source up; those behind it can be gone back to once it exists."""
    addresses = [reverse("source-new", args=[base.space_id, base.uid]), "", "", ""]
    if source is not None:
        addresses = [
            "",
            *(reverse(name, args=[base.space_id, source.uid]) for name in ("source-connection", "source-scope", "source-schedule")),
        ]
    labels = (_("Kind"), _("Connection"), _("What is taken over"), _("Schedule and protection"))
    return [
        {"label": label, "number": at, "href": address if at != current else "", "current": at == current, "done": at < current}
        for at, (label, address) in enumerate(zip(labels, addresses, strict=True), 1)
    ]


def origin_marks(actor: Actor, documents: Sequence[Document]) -> dict[int, dict[str, Any]]:
    """{primary key: what a row says of the source its document follows}, of those that follow one; one query."""
    if not documents or not allowed(actor, "source.read"):
        return {}
    marks = {}
    for document_pk, item in origins_of(actor=actor, documents=documents).items():
        words = _("From the data source “%(name)s”") if item.state == SourceItem.State.LIVE else _("Gone at the data source “%(name)s”")
        marks[document_pk] = {
            "name": item.source.name,
            "icon": icon_of(meta_of(item.source.type)),
            "href": reverse("base-sources", args=[item.space_id, item.source.kb.uid]),
            "words": words % {"name": item.source.name},
            "gone": item.state != SourceItem.State.LIVE,
        }
    return marks


def origin_facts(actor: Actor, document: Document) -> dict[str, Any] | None:
    """The source a document follows: name, when it was last seen there, and the way to the original; None for one that follows nothing."""
    item = origins_of(actor=actor, documents=[document]).get(document.pk)
    if item is None:
        return None
    gone = item.state != SourceItem.State.LIVE
    return {
        "source": item.source,
        "icon": icon_of(meta_of(item.source.type)),
        "href": reverse("base-sources", args=[document.space_id, document.kb.uid]),
        "url": item.url if item.url.startswith(("http://", "https://")) else "",
        "seen_at": last_seen(actor=actor, item=item),
        "synced_at": item.synced_at,
        "gone": gone,
        "note": sentence(item.reason) if item.reason == "kept_local" else "",
    }
