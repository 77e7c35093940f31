"""Many documents to another base or into one archive: what it takes is said before, what came of it after."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from apps.common.errors import Conflict, InvalidInput, NotFound
from apps.common.jobs.models import RunState
from apps.knowledge.models import Document, KnowledgeBase, MoveRun, ParseStatus
from apps.knowledge.reasons import move_problems
from apps.knowledge.selectors import ARCHIVE_LIMIT, base_get, move_get, move_targets
from apps.knowledge.services import documents_move
from apps.portal import links
from apps.portal.views.bulk import BulkView, documents_text
from apps.portal.web import PageView

MOST_IN_ARCHIVE = 200


class BulkZipView(BulkView):
    """Says what the archive will hold, what it leaves out, and whether it is too much; the button in it fetches the archive."""

    actions = {"GET": "document.download"}
    template = "portal/_bulk_zip.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        held = [document for document in documents if document.storage_path or document.type == Document.Type.MANUAL]
        size = sum(document.file_size for document in held)
        limits = {"documents": len(documents), "max": MOST_IN_ARCHIVE, "size": _size(size), "limit": _size(ARCHIVE_LIMIT)}
        problem = ""
        if len(documents) > MOST_IN_ARCHIVE:
            problem = _("An archive takes at most %(max)d documents; %(documents)d are selected. Choose fewer.") % limits
        elif not held:
            problem = _("None of these documents has an original file.")
        elif size > ARCHIVE_LIMIT:
            problem = _("An archive takes at most %(limit)s; these files are %(size)s. Choose fewer.") % limits
        context: dict[str, Any] = {
            "problem": problem,
            "held_count": len(held),
            "held_size": _size(size),
            "limit_size": _size(ARCHIVE_LIMIT),
            "skipped": len(documents) - len(held),
            "archive_url": links.archive_url(base),
            "archive_ids": json.dumps([str(document.uid) for document in documents]) if not problem else "",
        }
        return self.ask(base, documents, _("Download %(documents)s") % {"documents": documents_text(len(documents))}, **context)


def _size(size: int) -> str:
    return str(filesizeformat(size)).replace("\xa0", " ")


class BulkMoveView(BulkView):
    """Admins choose one of the bases that fit, and whether vectors come along or the documents are parsed there."""

    actions = {"GET": "document.move", "POST": "document.move"}
    template = "portal/_bulk_move.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        return self._form(base, self.chosen(request, base))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        documents = self.chosen(request, base)
        ready = [document for document in documents if document.parse_status == ParseStatus.COMPLETED]
        mode = request.POST.get("mode", "")
        try:
            if not ready:
                raise InvalidInput(_("None of these documents is ready. Only documents that were read can be moved."))
            if mode not in MoveRun.Mode.values:
                raise InvalidInput(_("Choose what becomes of the vectors."), field="mode")
            target = base_get(actor=self.actor, kb_id=request.POST.get("target", ""))
            run = documents_move(actor=self.actor, source=base, target=target, documents=ready, mode=mode)
        except NotFound:
            return self._form(base, documents, error=_("Choose a knowledge base."), status=422)
        except (InvalidInput, Conflict) as error:
            return self._form(base, documents, error=str(error), status=422)
        response = render(request, "portal/_dialog.html", progress_context(base, run, target))
        response["HX-Trigger"] = json.dumps({"kb:selection-done": {}, "kb:changed": {}})
        return response

    def _form(self, base: KnowledgeBase, documents: list[Document], *, error: str = "", status: int = 200) -> HttpResponse:
        unready = [document for document in documents if document.parse_status != ParseStatus.COMPLETED]
        context: dict[str, Any] = {
            "targets": [(str(row.base.uid), row.base.name) for row in move_targets(actor=self.actor, base=base)],
            "target": self.request.POST.get("target", ""),
            "mode": self.request.POST.get("mode", MoveRun.Mode.REUSE),
            "unready": len(unready),
            "tagged": sum(bool(document.tags.all()) for document in documents),
            "error": error,
        }
        title = _("Move %(documents)s to another knowledge base") % {"documents": documents_text(len(documents))}
        return self.ask(base, documents, title, status, **context)


def progress_context(base: KnowledgeBase, run: MoveRun, target: KnowledgeBase | None) -> dict[str, Any]:
    """Context of `portal/_move_progress.html`, alone and inside the dialog."""
    ended = run.state not in (RunState.QUEUED, RunState.RUNNING)
    total = len(run.document_refs)
    done = run.progress_done - run.progress_failed
    values = {"done": done, "total": total, "failed": run.progress_failed}
    if not ended:
        text = _("%(done)d of %(total)d moved") % values
    elif run.state == RunState.DONE and not run.progress_failed:
        text = _("All %(total)d documents moved.") % values
    else:
        text = _("%(done)d of %(total)d documents moved; %(failed)d stayed where they were.") % {**values, "failed": total - done}
    return {
        "base": base,
        "run": run,
        "ended": ended,
        "text": text,
        "problems": move_problems(run.error)[:20] if ended else [],
        "target": target,
        "target_href": links.base_url(target) if target is not None else "",
        "dialog_title": _("Moving documents"),
        "dialog_body": "portal/_move_progress.html",
        "space_id": base.space_id,
    }


class MoveProgressView(PageView):
    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID, task_id: str) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        run = move_get(actor=self.actor, task_id=task_id)
        if run.source_ref != base.pk:
            raise NotFound(_("Task not found."))
        try:
            target: KnowledgeBase | None = base_get(actor=self.actor, kb_id=run.target_uid)
        except NotFound:
            target = None  # deleted meanwhile; the documents stayed
        context = progress_context(base, run, target)
        response = render(request, "portal/_move_progress.html", context)
        if context["ended"]:
            response["HX-Trigger"] = json.dumps({"kb:changed": {}})
        return response
