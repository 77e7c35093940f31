"""Routes of question pairs (contract content 3, F1 to F13) and what the product adds: files, previews, failures, stopping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from apps.common.api.parsers import StrictJSONParser
from apps.common.api.views import ApiView, Empty, Op
from apps.common.errors import InvalidInput, NotFound
from apps.faq.api import serializers as shapes
from apps.faq.drafts import draft_of
from apps.faq.exporting import Export, entries_export
from apps.faq.files import MAX_BYTES, entries_read, row_of_object, too_large
from apps.faq.matching import entries_match
from apps.faq.models import FaqEntry, FaqImportRow, FaqImportRun
from apps.faq.results import failures_csv
from apps.faq.selectors.entries import (
    EntryFilters,
    container_uid,
    entries_by_pk,
    entry_get,
    entry_list,
    entry_to_change,
    faq_base_get,
    heads_of,
    import_all_failures,
    import_base,
    import_counts,
    import_failures,
    import_get,
    import_rows,
    tag_exists,
)
from apps.faq.services import (
    entries_delete,
    entries_tag,
    entries_update,
    entry_create,
    entry_extend,
    entry_update,
    field_changes,
    import_cancel,
    import_show,
    import_start,
)
from apps.knowledge.models import KnowledgeBase

TAGS = ("faq",)
WRITE_ERRORS = (400, 401, 403, 404, 409)
ROOM_FOR_FIELDS = 64 * 1024
FAILED_INLINE = 200
EXAMPLE = {
    "standard_question": "How do I reset my password?",
    "similar_questions": ["I forgot my password"],
    "negative_questions": ["How do I reset the router?"],
    "answers": ["Choose “Forgot password” on the sign-in page."],
}


def _download(export: Export) -> HttpResponse:
    response = HttpResponse(export.data, content_type=export.media_type)
    response["Content-Disposition"] = f'attachment; filename="{export.name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


class FaqView(ApiView):
    """Answers entries in the contract's shape."""

    def base(self, kb_id: str) -> KnowledgeBase:
        return faq_base_get(actor=self.actor, kb_id=kb_id)

    def shaped(self, base: KnowledgeBase, entries: list[FaqEntry]) -> None:
        heads = heads_of(actor=self.actor, entries=entries)
        self.render_context = {"container": container_uid(actor=self.actor, base=base), "heads": heads}

    def entry(self, base: KnowledgeBase, entry: FaqEntry) -> Response:
        """The entry as it is now."""
        fresh = entry_get(actor=self.actor, base=base, entry_id=entry.seq_id)
        self.shaped(base, [fresh])
        return self.render(fresh)


class EntryListView(FaqView):
    operations = {
        "GET": Op(
            "faq.read",
            "List the entries of an FAQ base",
            query=shapes.EntryListQuery,
            reply=shapes.EntryOut,
            shape="nested_page",
            invalid_code=1000,
            tags=TAGS,
        ),
        "POST": Op(
            "faq.import",
            "Import entries in the background",
            body=shapes.ImportIn,
            reply=shapes.ImportStartedOut,
            invalid_code=1000,
            description="At most 5,000 entries. `dry_run` only checks them. A `task_id` that has ended is used again for corrected rows.",
            examples={"append": {"mode": "append", "entries": [EXAMPLE]}},
            tags=TAGS,
        ),
        "DELETE": Op(
            "faq.write",
            "Delete entries",
            body=shapes.BatchDeleteIn,
            shape="message",
            invalid_code=1000,
            description="All of them or, when one cannot go, none.",
            tags=TAGS,
        ),
    }

    def get(self, request: Any, faq_kb_id: str) -> Response:
        asked = self.asked()
        base = self.base(faq_kb_id)
        rows = entry_list(actor=self.actor, base=base, filters=self._filters(base, asked))
        total, start = rows.count(), (asked["page"] - 1) * asked["page_size"]
        page = list(rows[start : start + asked["page_size"]])
        self.shaped(base, page)
        return self.render(page, total=total, page=asked["page"], page_size=asked["page_size"])

    def _filters(self, base: KnowledgeBase, asked: dict[str, Any]) -> EntryFilters:
        uids = [part for part in asked.get("tag_ids", "").split(",") if part.strip()]
        number = asked.get("tag_id", "").strip() or "0"
        if not (number.isascii() and number.lstrip("-").isdigit() and len(number) < 19):
            raise InvalidInput(_("A whole number is needed."), field="tag_id", api_code=1000)
        if not uids and int(number) > 0 and container_uid(actor=self.actor, base=base):
            if not tag_exists(actor=self.actor, base=base, number=int(number)):
                raise NotFound(_("Tag not found."))
        return EntryFilters(
            keyword=" ".join(asked.get("keyword", "").split()),
            search_field=asked.get("search_field", ""),
            tag_uids=uids or None,
            tag_pk=max(0, int(number)),
            sort_order=asked.get("sort_order", "").lower(),
        )

    def post(self, request: Any, faq_kb_id: str) -> Response:
        body = self.read()
        base = self.base(faq_kb_id)
        rows = [row_of_object(each) for each in body["entries"]]
        wanted = {"mode": body["mode"], "dry_run": bool(body.get("dry_run")), "task_id": body.get("task_id") or ""}
        return self.render(import_start(actor=self.actor, base=base, rows=rows, **wanted))

    def delete(self, request: Any, faq_kb_id: str) -> Response:
        entries_delete(actor=self.actor, base=self.base(faq_kb_id), numbers=self.read()["ids"])
        return self.render(None)


class EntryExportView(FaqView):
    operations = {
        "GET": Op(
            "faq.read",
            "Export the entries of an FAQ base",
            query=shapes.ExportQuery,
            shape="file",
            invalid_code=1000,
            description="CSV (UTF-8 with a mark), JSON or XLSX; importing the file gives the same entries.",
            tags=TAGS,
        )
    }

    # `format` is a parameter of this route, not DRF's choice of a renderer.
    def perform_content_negotiation(self, request: Any, force: bool = False) -> Any:
        renderer = self.get_renderers()[0]
        return renderer, renderer.media_type

    def get(self, request: Any, faq_kb_id: str) -> HttpResponse:
        base = self.base(faq_kb_id)
        return _download(entries_export(actor=self.actor, base=base, kind=self.asked().get("format", "")))


class EntryView(FaqView):
    operations = {
        "GET": Op("faq.read", "Read an entry", reply=shapes.EntryOut, invalid_code=1000, tags=TAGS),
        "PUT": Op(
            "faq.write",
            "Replace an entry",
            body=shapes.EntryUpdateIn,
            reply=shapes.EntryOut,
            errors=WRITE_ERRORS,
            invalid_code=1000,
            description="All texts are replaced; without a `tag_id` the tag is taken away; flags that are left out stay.",
            examples={"entry": EXAMPLE},
            tags=TAGS,
        ),
    }

    def get(self, request: Any, faq_kb_id: str, entry_id: str) -> Response:
        base = self.base(faq_kb_id)
        return self.entry(base, entry_get(actor=self.actor, base=base, entry_id=entry_id))

    def put(self, request: Any, faq_kb_id: str, entry_id: str) -> Response:
        base = self.base(faq_kb_id)
        entry = entry_to_change(actor=self.actor, base=base, entry_id=entry_id)
        body = self.read()
        draft, version = draft_of({**body, "number": entry.number}), body.get("expected_version")
        return self.entry(base, entry_update(actor=self.actor, base=base, entry=entry, draft=draft, expected_version=version))


class EntryCreateView(FaqView):
    operations = {
        "POST": Op(
            "faq.write",
            "Create an entry",
            body=shapes.EntryIn,
            reply=shapes.EntryOut,
            errors=WRITE_ERRORS,
            invalid_code=1000,
            description="A question that an entry of the base has already, in whatever case, width or script, is refused.",
            examples={"entry": EXAMPLE},
            tags=TAGS,
        )
    }

    def post(self, request: Any, faq_kb_id: str) -> Response:
        base = self.base(faq_kb_id)
        body = self.read()
        recommended = True if body.get("is_recommended") is None else body["is_recommended"]
        return self.entry(base, entry_create(actor=self.actor, base=base, draft=draft_of({**body, "is_recommended": recommended})))


class EntrySimilarView(FaqView):
    operations = {
        "POST": Op(
            "faq.write",
            "Add similar questions to an entry",
            body=shapes.SimilarIn,
            reply=shapes.EntryOut,
            errors=WRITE_ERRORS,
            invalid_code=1000,
            tags=TAGS,
        )
    }

    def post(self, request: Any, faq_kb_id: str, entry_id: str) -> Response:
        base = self.base(faq_kb_id)
        entry = entry_to_change(actor=self.actor, base=base, entry_id=entry_id)
        return self.entry(base, entry_extend(actor=self.actor, base=base, entry=entry, similar=self.read()["similar_questions"]))


class EntryFieldsView(FaqView):
    operations = {
        "PUT": Op(
            "faq.write",
            "Change flags and tags of many entries",
            body=shapes.BatchFieldsIn,
            shape="message",
            invalid_code=1000,
            description="`by_tag` first, without `exclude_ids`, then `by_id`. Entries that are not in the base are passed over.",
            examples={"recommend one": {"by_id": {"100000001": {"is_recommended": True}}}},
            tags=TAGS,
        )
    }

    def put(self, request: Any, faq_kb_id: str) -> Response:
        base = self.base(faq_kb_id)
        body = self.read()
        by_id, by_tag, left_out = body.get("by_id") or {}, body.get("by_tag") or {}, body.get("exclude_ids") or ()
        changes = field_changes(actor=self.actor, base=base, by_id=by_id, by_tag=by_tag, excluded=left_out)
        entries_update(actor=self.actor, base=base, changes=changes)
        return self.render(None)


class EntryTagsView(FaqView):
    operations = {
        "PUT": Op(
            "faq.write",
            "Set the tag of many entries",
            body=shapes.BatchTagsIn,
            shape="message",
            invalid_code=1000,
            examples={"tag one, untag another": {"updates": {"100000001": 7, "100000002": None}}},
            tags=TAGS,
        )
    }

    def put(self, request: Any, faq_kb_id: str) -> Response:
        base = self.base(faq_kb_id)
        entries_tag(actor=self.actor, base=base, updates=self.read()["updates"])
        return self.render(None)


class FaqSearchView(FaqView):
    operations = {
        "POST": Op(
            "faq.read",
            "Find the entries that answer a question",
            body=shapes.SearchIn,
            reply=shapes.MatchOut,
            shape="list",
            invalid_code=1000,
            description="By meaning above `vector_threshold` (0.7) and by words. An entry is left out when a negative question of it "
            "is closer to what was asked than any of its own.",
            examples={"a question": {"query_text": "forgot my password", "match_count": 5}},
            tags=TAGS,
        )
    }

    def post(self, request: Any, faq_kb_id: str) -> Response:
        base = self.base(faq_kb_id)
        body = self.read()
        matches = entries_match(
            actor=self.actor,
            base=base,
            query=body["query_text"],
            threshold=body["vector_threshold"] or 0.0,
            count=body["match_count"] or 0,
            first_tags=body.get("first_priority_tag_ids") or (),
            second_tags=body.get("second_priority_tag_ids") or (),
        )
        self.shaped(base, [match.entry for match in matches.found])
        return self.render(matches.found)


class FileView(FaqView):
    """Reads an uploaded file of entries."""

    parser_classes = [MultiPartParser, StrictJSONParser]

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_BYTES + ROOM_FOR_FIELDS:
            raise too_large()

    def file_of(self, base: KnowledgeBase, body: dict[str, Any]) -> Any:
        upload = body["file"]
        path = Path(upload.temporary_file_path())
        return entries_read(actor=self.actor, base=base, path=path, file_name=upload.name, encoding=body.get("encoding", ""))


class ImportFileView(FileView):
    operations = {
        "POST": Op(
            "faq.import",
            "Import a file of entries in the background",
            body=shapes.ImportFileIn,
            reply=shapes.ImportStartedOut,
            invalid_code=1000,
            multipart=True,
            description="JSON, CSV, TSV, XLSX or XLS (first sheet); at most 10 MB and 5,000 rows.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, faq_kb_id: str) -> Response:
        base = self.base(faq_kb_id)
        body = self.read()
        found = self.file_of(base, body)
        run = import_start(
            actor=self.actor,
            base=base,
            rows=found.rows,
            mode=body["mode"],
            dry_run=body["dry_run"],
            task_id=body.get("task_id", ""),
            file_name=body["file"].name,
        )
        return self.render(run)


class ImportPreviewView(FileView):
    operations = {
        "POST": Op(
            "faq.import",
            "See what a file of entries holds",
            body=shapes.FileFields,
            reply=shapes.PreviewOut,
            invalid_code=1000,
            multipart=True,
            description="Columns and what they were taken for, encoding, the first rows; nothing is kept.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, faq_kb_id: str) -> Response:
        base = self.base(faq_kb_id)
        return self.render(self.file_of(base, self.read()))


class TaskView(FaqView):
    """What is asked about one import by its task id."""

    def run(self, task_id: str) -> tuple[FaqImportRun, KnowledgeBase]:
        run = import_get(actor=self.actor, task_id=task_id)
        base = import_base(run)
        if base is None:
            raise NotFound(_("Import not found: task not found."))
        return run, base

    def progress(self, run: FaqImportRun, base: KnowledgeBase) -> Response:
        rows: list[FaqImportRow] | None = None
        entries: dict[int, FaqEntry] = {}
        if run.state == "done":
            states = [state for state in FaqImportRow.State.values if state != FaqImportRow.State.WAITING]
            rows = list(import_rows(actor=self.actor, run=run, states=states))
            entries = entries_by_pk(actor=self.actor, base=base, pks=[row.entry_ref for row in rows if row.entry_ref])
        counts = import_counts(actor=self.actor, run=run)
        home = container_uid(actor=self.actor, base=base)
        failed, _total = import_failures(actor=self.actor, run=run, limit=1 if run.state == "done" else FAILED_INLINE)
        prefix = self.request.path.rsplit("/faq/import/", 1)[0]
        self.render_context = {
            "container": home, "counts": counts, "rows": rows, "entries": entries, "failed": failed, "prefix": prefix,
        }  # fmt: skip
        return self.render(run)


class ImportProgressView(TaskView):
    operations = {"GET": Op("faq.progress", "Follow an import", reply=shapes.ProgressOut, invalid_code=1000, tags=TAGS)}

    def get(self, request: Any, faq_task_id: str) -> Response:
        return self.progress(*self.run(faq_task_id))


class ImportFailuresView(TaskView):
    operations = {
        "GET": Op(
            "faq.progress",
            "List the rows an import could not take",
            query=shapes.FailuresQuery,
            reply=shapes.FailuresOut,
            shape="bare",
            invalid_code=1000,
            tags=TAGS,
        )
    }

    def get(self, request: Any, faq_task_id: str) -> Response:
        asked = self.asked()
        run, _base = self.run(faq_task_id)
        rows, total = import_failures(actor=self.actor, run=run, offset=asked["offset"], limit=asked["limit"])
        return self.render({"entries": rows, "total": total})


class ImportFailuresFileView(TaskView):
    operations = {
        "GET": Op(
            "faq.progress",
            "Download the rows an import could not take",
            shape="file",
            invalid_code=1000,
            description="CSV: the reason, then the first seven columns of an export. Corrected, the file can be imported again.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, faq_task_id: str) -> HttpResponse:
        run, _base = self.run(faq_task_id)
        return _download(failures_csv(import_all_failures(actor=self.actor, run=run)))


class ImportCancelView(TaskView):
    operations = {
        "POST": Op(
            "faq.import",
            "Stop an import",
            body=Empty,
            reply=shapes.ProgressOut,
            invalid_code=1000,
            description="What is in the base by then stays. One that has ended stays as it is.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, faq_task_id: str) -> Response:
        run, base = self.run(faq_task_id)
        import_cancel(actor=self.actor, base=base, run=run)
        return self.progress(*self.run(faq_task_id))


class ImportDisplayView(FaqView):
    operations = {
        "PUT": Op(
            "faq.write", "Show or put away the last import's result", body=shapes.DisplayIn, shape="message", invalid_code=1000, tags=TAGS
        )
    }

    def put(self, request: Any, faq_kb_id: str) -> Response:
        base = self.base(faq_kb_id)
        import_show(actor=self.actor, base=base, shown=self.read()["display_status"])
        return self.render(None)
