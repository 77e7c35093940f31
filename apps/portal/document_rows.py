"""A document as a row shows it: state in words, progress, why it is not ready, and the next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.common.actor import Actor
from apps.ingestion.selectors import live_runs, stall_verdicts
from apps.knowledge import reasons
from apps.knowledge.models import IN_FLIGHT, Document, ParseStatus, Tag
from apps.knowledge.reasons import Reason
from apps.llm.failures import FAILURES
from apps.portal import links
from apps.portal.sources import origin_marks

ICONS = {
    "pdf": "document", "docx": "document", "doc": "document", "epub": "book", "html": "globe", "htm": "globe", "mhtml": "globe",
    "csv": "table-file", "xlsx": "table-file", "xls": "table-file", "pptx": "presentation", "ppt": "presentation", "png": "image",
    "jpg": "image", "jpeg": "image", "gif": "image", "json": "file-code", "eml": "mail", "manual": "edit", "md": "file", "txt": "file",
}  # fmt: skip
TYPE_NAMES = {"manual": gettext_lazy("Written here"), "url": gettext_lazy("Web page")}
#: Files whose bytes can be read as another encoding.
TEXT_TYPES = frozenset("txt csv md markdown html htm json".split())
UNITS = {
    "pages": gettext_lazy("Page %(done)s of %(total)s"),
    "sheets": gettext_lazy("Sheet %(done)s of %(total)s"),
    "slides": gettext_lazy("Slide %(done)s of %(total)s"),
    "vectors": gettext_lazy("Vector %(done)s of %(total)s"),
}
#: Warnings that name a part which cannot be found.
LEFT_OUT = {
    "page_damaged": gettext_lazy("Damaged and left out: page %(numbers)s"),
    "page_unreadable": gettext_lazy("Garbled and left out: page %(numbers)s"),
    "slide_damaged": gettext_lazy("Damaged and left out: slide %(numbers)s"),
}
LEFT_OUT_SHOWN = 12
STAGES = {
    "parse": gettext_lazy("Reading"),
    "ocr": gettext_lazy("Reading pictures (OCR)"),
    "embed": gettext_lazy("Making vectors"),
    "embed_remote": gettext_lazy("Making vectors"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """What `portal/_document_row.html` draws. `state` is one of components/status.html, `word` its word."""

    document: Document
    href: str
    icon: str
    type_name: str
    facts: tuple[str, ...]
    state: str
    word: str
    note: str = ""
    reason: Reason | None = None
    run: Mapping[str, Any] | None = None
    stage: str = ""
    done_text: str = ""
    elapsed_s: float | None = None
    step: str = ""
    origin: Mapping[str, Any] | None = None  # the data source it follows: name, icon, href, gone, note

    @property
    def tags(self) -> Sequence[Tag]:
        return list(self.document.tags.all())

    @property
    def passages_text(self) -> str:
        return ngettext("%(count)s passage", "%(count)s passages", self.document.chunk_count) % {"count": self.passages}

    @property
    def passages(self) -> str:
        return f"{self.document.chunk_count:,}"

    @property
    def in_flight(self) -> bool:
        return self.document.parse_status in IN_FLIGHT

    @property
    def reading(self) -> bool:
        """Nothing of it can be found yet, so that a count of passages would be a guess."""
        return self.document.parse_status in (ParseStatus.PENDING, ParseStatus.PROCESSING)


def rows_of(actor: Actor, documents: Sequence[Document], *, show_folder: bool = True) -> list[Row]:
    """Rows of a page of documents, in a constant number of queries."""
    runs = live_runs(actor=actor, documents=documents)
    stalls = stall_verdicts(actor=actor, documents=documents)
    origins = origin_marks(actor, documents)
    return [
        _row(document, runs.get(document.pk), getattr(stalls.get(document.pk), "state", ""), show_folder, origins.get(document.pk))
        for document in documents
    ]


def _row(document: Document, run: Mapping[str, Any] | None, stall: str, show_folder: bool, origin: Mapping[str, Any] | None = None) -> Row:
    kind = type_of(document)
    state, word, reason, note = _state(document, run, stall)
    started: datetime | None = run["started_at"] if run else None
    return Row(
        document=document,
        href=links.document_url(document),
        icon=ICONS.get(kind, "globe" if kind == "url" else "file"),
        type_name=str(TYPE_NAMES.get(kind, kind.upper())),
        facts=tuple(_facts(document, show_folder)),
        state=state,
        word=word,
        note=note,
        reason=reason,
        run=run if state in ("processing", "finalizing") and reason is None else None,
        stage=str(STAGES.get(run["kind"], "")) if run and run["state"] == "running" else "",
        done_text=_done_text(run),
        elapsed_s=max(0.0, (timezone.now() - started).total_seconds()) if started else None,  # clocks of two machines differ
        step=_step(document, reason),
        origin=origin,
    )


def type_of(document: Document) -> str:
    """What the type filter calls it."""
    return document.type if document.type in (Document.Type.MANUAL, Document.Type.URL) else document.file_type


def _state(document: Document, run: Mapping[str, Any] | None, stall: str) -> tuple[str, str, Reason | None, str]:
    """(state of components/status.html, word, reason, one line beneath)."""
    status = document.parse_status
    if status == ParseStatus.FAILED:
        reason = reasons.reason_for(document)
        return ("failed" if reason.tone == "danger" else "stalled"), str(reason.word), reason, str(reason.title)
    if status in IN_FLIGHT:
        if run and run["waits_for_worker"]:
            return ("stalled" if status != ParseStatus.FINALIZING else "finalizing"), *_words(status, reasons.NO_WORKER)
        if run and run["reason"] in FAILURES:
            return str(status), *_words(status, reasons.waiting_for_model(run["reason"]))
        if stall == "stalled":
            return "stalled", *_words(status, reasons.STALLED)
        if stall == "queued":
            return "pending", *_words(status, reasons.QUEUED_LONG)
    if status == ParseStatus.COMPLETED and document.reason:
        reason = reasons.reason_of(document.reason)
        return "completed", _("Ready"), reason, _partial(document, reason)
    if status == ParseStatus.COMPLETED and (left_out := left_out_text(document)):
        return "completed", _("Ready"), None, left_out
    if status == ParseStatus.PROCESSING and run and run["kind"] in ("embed", "embed_remote"):
        return str(status), _("Reading"), None, _("Its words are being put into the search index")
    words = {
        ParseStatus.DRAFT: (_("Draft"), _("Only found after publishing")),
        ParseStatus.PENDING: (_("Waiting"), ""),
        ParseStatus.PROCESSING: (_("Reading"), ""),
        ParseStatus.FINALIZING: (_("Searchable"), _("Vectors follow")),
        ParseStatus.COMPLETED: (_("Ready"), ""),
        ParseStatus.CANCELLED: (_("Stopped"), ""),
        ParseStatus.DELETING: (_("Being deleted"), ""),
    }
    word, note = words[ParseStatus(status)]
    return str(status), word, reasons.REASONS["cancelled"] if status == ParseStatus.CANCELLED else None, note


def left_out_text(document: Document) -> str:
    """What a document that was read lacks all the same: "Damaged and left out: pages 2, 5"; "" when it is whole."""
    found = []
    for code, words in LEFT_OUT.items():
        places = [w.get("position") or {} for w in document.warnings or [] if w.get("code") == code]
        numbers = list(
            dict.fromkeys(str(place.get("page") or place.get("slide")) for place in places if "page" in place or "slide" in place)
        )
        if places:
            shown = ", ".join(numbers[:LEFT_OUT_SHOWN]) + (" …" if len(numbers) > LEFT_OUT_SHOWN else "")
            found.append(str(words) % {"numbers": shown})
    return " · ".join(found)


def _words(status: str, reason: Reason) -> tuple[str, Reason, str]:
    return (_("Searchable") if status == ParseStatus.FINALIZING else str(reason.word)), reason, str(reason.title)


def _partial(document: Document, reason: Reason) -> str:
    """What is missing from a document that was read all the same."""
    pages = sum(int(warning.get("count") or 0) for warning in document.warnings if warning.get("code") == document.reason)
    if document.reason == "needs_ocr" and pages:
        return ngettext("%(count)d page without text", "%(count)d pages without text", pages) % {"count": pages}
    return str(reason.title)


def _facts(document: Document, show_folder: bool) -> list[str]:
    found = []
    if show_folder and document.folder_path:
        found.append(document.folder_path.replace("/", " / "))
    if document.type in (Document.Type.URL, Document.Type.FILE_URL) and document.source:
        found.append(document.source)
    elif document.file_size:
        found.append(filesizeformat(document.file_size).replace("\xa0", " "))
    counts = document.counts or {}
    if counts.get("pages"):
        found.append(ngettext("%(count)s page", "%(count)s pages", counts["pages"]) % {"count": f"{counts['pages']:,}"})
    if counts.get("sheets"):
        found.append(ngettext("%(count)s sheet", "%(count)s sheets", counts["sheets"]) % {"count": f"{counts['sheets']:,}"})
    if counts.get("slides"):
        found.append(ngettext("%(count)s slide", "%(count)s slides", counts["slides"]) % {"count": f"{counts['slides']:,}"})
    if document.encoding and document.encoding.lower().replace("-", "").replace("_", "") not in ("utf8", "ascii", "utf8sig"):
        found.append(_("read as %(encoding)s") % {"encoding": document.encoding.upper()})
    return found


def _done_text(run: Mapping[str, Any] | None) -> str:
    if not run or not run["total"]:
        return ""
    values = {"done": f"{run['done']:,}", "total": f"{run['total']:,}"}
    return str(UNITS.get(run["unit"], gettext_lazy("%(done)s of %(total)s"))) % values


def _step(document: Document, reason: Reason | None) -> str:
    """The one button a row offers by itself."""
    if reason is None or document.parse_status not in (ParseStatus.FAILED, ParseStatus.CANCELLED):
        return ""
    if reason.step == "encoding" and type_of(document) not in TEXT_TYPES:
        return ""
    return reason.step if reason.step != "upload" else ""
