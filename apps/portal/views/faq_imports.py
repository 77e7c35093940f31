"""Importing entries: choose a file, see what it holds, check it, run it, follow it, correct what failed."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.errors import DomainError, InvalidInput
from apps.common.text import display_name
from apps.faq.models import FaqImportRow, FaqImportRun
from apps.faq.selectors import faq_base_get, import_all_failures, import_get, import_live, import_rows
from apps.faq.services import EntryFile, IncomingRow, entries_read, import_cancel, import_start, incoming_again
from apps.knowledge.models import KnowledgeBase
from apps.portal import links
from apps.portal.faq_imports import ENCODINGS, FIELD_WORDS, corrected, failure_row, run_context
from apps.portal.web import DialogView, PageView, is_htmx

SAMPLE_ROWS = 5


class ImportView(DialogView):
    """GET shows the wizard, or the import that is under way; POST checks (`do=check`) or runs the chosen file."""

    actions = {"GET": "faq.import", "POST": "faq.import"}
    template = "portal/_faq_import.html"

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        if (live := import_live(actor=self.actor, base=base)) is not None:
            return shown(self, base, live)
        return self.wizard(base)

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        mode = request.POST.get("mode", "append")
        try:
            found, name = file_of(self, base)
            dry_run = request.POST.get("do") == "check"
            run = import_start(actor=self.actor, base=base, rows=found.rows, mode=mode, dry_run=dry_run, file_name=name)
        except DomainError as error:
            return self.wizard(base, error=str(error), mode=mode, status=422)
        return shown(self, base, run)

    def wizard(self, base: KnowledgeBase, *, error: str = "", mode: str = "append", status: int = 200) -> HttpResponse:
        where = [base.space_id, base.uid]
        context = {
            "base": base,
            "error": error,
            "mode": mode,
            "modes": [
                {"value": "append", "label": _("They stay: new questions are added, known ones are merged")},
                {"value": "replace", "label": _("They are replaced: what is not in the file is deleted")},
            ],
            "encodings": [{"value": "", "label": _("Recognise it")}, *({"value": name, "label": name.upper()} for name in ENCODINGS)],
            "action": reverse("faq-import", args=where),
            "preview_href": reverse("faq-import-preview-page", args=where),
            "space_id": base.space_id,
        }
        return self.show(_("Import entries"), context, status=status, wide=True, back=links.base_url(base))


def file_of(view: PageView, base: KnowledgeBase) -> tuple[EntryFile, str]:
    """(what the chosen file holds, its name). Raises: InvalidInput."""
    upload: Any = view.request.FILES.get("file")
    if upload is None:
        raise InvalidInput(_("Choose a file."), field="file")
    name = display_name(upload.name or "")
    encoding = view.request.POST.get("encoding", "")
    path = Path(upload.temporary_file_path())
    return entries_read(actor=view.actor, base=base, path=path, file_name=name, encoding=encoding), name


def shown(view: DialogView, base: KnowledgeBase, run: FaqImportRun, *, page: int = 1, status: int = 200, **more: Any) -> HttpResponse:
    """The import as a dialog."""
    view.template = "portal/_faq_run.html"
    title = _("Check of a file") if run.dry_run else _("Import of entries")
    context = {**run_context(view.actor, base, run, page=page), **more}
    return view.show(title, context, status=status, wide=True, back=links.base_url(base))


class ImportPreviewView(PageView):
    """What the chosen file holds, beside the chooser: columns, encoding, first rows; nothing is kept."""

    actions = {"POST": "faq.import"}

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        if not request.FILES.get("file"):
            return self.page("portal/_faq_preview.html", {"base": base})
        try:
            found, name = file_of(self, base)
        except DomainError as error:
            return self.page("portal/_faq_preview.html", {"base": base, "error": str(error)})
        context = {
            "base": base,
            "found": found,
            "file_name": name,
            "count": len(found.rows),
            "columns": [{"name": column.name or "–", "word": FIELD_WORDS.get(column.field, "")} for column in found.columns],
            "sample": [_sample(row) for row in found.rows[:SAMPLE_ROWS]],
        }
        return self.page("portal/_faq_preview.html", context)


def _sample(row: IncomingRow) -> dict[str, Any]:
    draft = row.draft
    return {
        "question": draft.standard_question if draft else "",
        "answers": list(draft.answers) if draft else [],
        "similar": len(draft.similar_questions) if draft else 0,
        "negative": len(draft.negative_questions) if draft else 0,
        "tag": draft.tag_name if draft else "",
        "is_off": draft is not None and draft.is_enabled is False,
        "is_bad": draft is None,
    }


class RunView(DialogView):
    """Base of everything about one import of a base."""

    def found(self, kb_id: uuid.UUID, task_id: str) -> tuple[KnowledgeBase, FaqImportRun]:
        base = faq_base_get(actor=self.actor, kb_id=kb_id)
        run = import_get(actor=self.actor, task_id=task_id)
        if run.kb_ref != base.pk:
            raise InvalidInput(_("This import belongs to another base."))
        return base, run


class ImportRunView(RunView):
    """The import as it is now; asked again by the page while it runs."""

    actions = {"GET": "faq.progress"}

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID, faq_task_id: str) -> HttpResponse:
        base, run = self.found(faq_kb_id, faq_task_id)
        raw = request.GET.get("page", "1")
        page = min(100, max(1, int(raw))) if raw.isascii() and raw.isdigit() and len(raw) < 5 else 1
        if is_htmx(request) and request.headers.get("HX-Target") == "faq-run":
            response = self.page("portal/_faq_run.html", run_context(self.actor, base, run, page=page))
            if not run.is_live:
                response["HX-Trigger"] = json.dumps({"kb:changed": {}})
            return response
        return shown(self, base, run, page=page)


class ImportStopView(RunView):
    actions = {"POST": "faq.import"}

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID, faq_task_id: str) -> HttpResponse:
        base, run = self.found(faq_kb_id, faq_task_id)
        import_cancel(actor=self.actor, base=base, run=run)
        run.refresh_from_db()
        return shown(self, base, run)


class ImportStartView(RunView):
    """Run what was only checked: the same rows, in the same way."""

    actions = {"POST": "faq.import"}

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID, faq_task_id: str) -> HttpResponse:
        base, run = self.found(faq_kb_id, faq_task_id)
        rows = incoming_again(actor=self.actor, run=run)
        try:
            started = import_start(actor=self.actor, base=base, rows=rows, mode=run.mode, file_name=run.file_name)
        except DomainError as error:
            return shown(self, base, run, status=422, run_error=str(error))
        return shown(self, base, started)


class ImportRetryView(RunView):
    """Corrected rows are imported again under the same task, added to what is there."""

    actions = {"POST": "faq.import"}

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID, faq_task_id: str) -> HttpResponse:
        base, run = self.found(faq_kb_id, faq_task_id)
        failed = list(import_rows(actor=self.actor, run=run, states=[FaqImportRow.State.FAILED]))
        posted = {name: str(value) for name, value in request.POST.items()}
        try:
            rows = corrected(failed, posted)
            if not rows:
                raise InvalidInput(_("Choose at least one row."))
            started = import_start(
                actor=self.actor, base=base, rows=rows, mode=FaqImportRun.Mode.APPEND, task_id=run.task_id, file_name=run.file_name
            )
        except DomainError as error:
            return shown(self, base, run, status=422, run_error=str(error))
        return shown(self, base, started)


class ImportReasonsView(RunView):
    """Every row that was not taken, with its number and why, as a JSON file."""

    actions = {"GET": "faq.progress"}

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID, faq_task_id: str) -> HttpResponse:
        _base, run = self.found(faq_kb_id, faq_task_id)
        rows = [
            {"rowNumber": row.index + 1, "reasonCode": row.reason, "reason": failure_row(row)["reason"], "entry": row.raw}
            for row in import_all_failures(actor=self.actor, run=run)
        ]
        response = HttpResponse(json.dumps(rows, ensure_ascii=False, indent=2), content_type="application/json; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="faq_import_failures.json"'
        return response
