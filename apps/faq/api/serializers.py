"""Shapes of question pairs (contract content 3)."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from apps.common.api.views import PageQuery
from apps.common.jobs.models import RunState
from apps.faq.exporting import tag_name_of
from apps.faq.models import FaqEntry, FaqImportRow, FaqImportRun
from apps.faq.passages import index_mode
from apps.faq.reasons import sentence
from apps.faq.results import failed_entry, failures_url

NEVER = "0001-01-01T00:00:00Z"
BIG = 2**63 - 1


class Text(serializers.CharField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_blank=True, trim_whitespace=False, **kwargs)


def texts(**kwargs: Any) -> serializers.ListField:
    return serializers.ListField(child=Text(), allow_null=True, required=kwargs.pop("required", False), **kwargs)


class EntryListQuery(PageQuery):
    tag_ids = serializers.CharField(required=False, allow_blank=True, help_text="Ids of tags, separated by commas; any of them.")
    tag_id = serializers.CharField(required=False, allow_blank=True, help_text="Number of a tag.")
    keyword = serializers.CharField(required=False, allow_blank=True)
    search_field = serializers.CharField(
        required=False, allow_blank=True, help_text="standard_question, similar_questions, answers; else all."
    )
    sort_order = serializers.CharField(required=False, allow_blank=True, help_text="asc, else latest change first.")


class ExportQuery(serializers.Serializer[Any]):
    format = serializers.CharField(required=False, allow_blank=True, help_text="json, xlsx; else CSV.")


class EntryIn(serializers.Serializer[Any]):
    id = serializers.IntegerField(required=False, allow_null=True, max_value=BIG, help_text="Only for migrations: 1 to 99,999,999.")
    standard_question = Text(required=False, allow_null=True)
    similar_questions = texts()
    negative_questions = texts()
    answers = texts()
    answer_strategy = Text(required=False, allow_null=True)
    tag_id = serializers.IntegerField(required=False, allow_null=True, max_value=BIG, min_value=-BIG)
    tag_name = Text(required=False, allow_null=True)
    is_enabled = serializers.BooleanField(required=False, allow_null=True)
    is_recommended = serializers.BooleanField(required=False, allow_null=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return {**attrs, "number": attrs.get("id") or None}


class EntryUpdateIn(EntryIn):
    expected_version = serializers.IntegerField(required=False, allow_null=True, help_text="Version the change is based on.")


class SimilarIn(serializers.Serializer[Any]):
    similar_questions = serializers.ListField(child=Text(), allow_empty=False)


class FieldsIn(serializers.Serializer[Any]):
    is_enabled = serializers.BooleanField(required=False, allow_null=True)
    is_recommended = serializers.BooleanField(required=False, allow_null=True)
    tag_id = serializers.IntegerField(required=False, allow_null=True, max_value=BIG, min_value=-BIG)


class NumberKeyed(serializers.DictField):
    """An object whose keys are numbers."""

    def to_internal_value(self, data: Any) -> Any:
        found = super().to_internal_value(data)
        numbers = {}
        for key, value in found.items():
            text = str(key).strip()
            if not (text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 19):
                raise serializers.ValidationError(_("A key must be a whole number: “%(key)s” is none.") % {"key": text[:40]})
            numbers[int(text)] = value
        return numbers


class BatchFieldsIn(serializers.Serializer[Any]):
    by_id = NumberKeyed(child=FieldsIn(), required=False, allow_null=True)
    by_tag = NumberKeyed(child=FieldsIn(), required=False, allow_null=True)
    exclude_ids = serializers.ListField(child=serializers.IntegerField(), required=False, allow_null=True)


class BatchTagsIn(serializers.Serializer[Any]):
    updates = NumberKeyed(child=serializers.IntegerField(allow_null=True, max_value=BIG, min_value=-BIG), allow_empty=False)


class BatchDeleteIn(serializers.Serializer[Any]):
    ids = serializers.ListField(child=serializers.IntegerField(max_value=BIG, min_value=-BIG), allow_empty=False, max_length=10_000)


class SearchIn(serializers.Serializer[Any]):
    query_text = serializers.CharField(max_length=4000)
    vector_threshold = serializers.FloatField(required=False, allow_null=True, default=0.0)
    match_count = serializers.IntegerField(required=False, allow_null=True, default=0)
    first_priority_tag_ids = serializers.ListField(child=serializers.IntegerField(), required=False, allow_null=True)
    second_priority_tag_ids = serializers.ListField(child=serializers.IntegerField(), required=False, allow_null=True)
    only_recommended = serializers.BooleanField(required=False, allow_null=True, help_text="Accepted, without effect.")


class ImportIn(serializers.Serializer[Any]):
    entries = serializers.ListField(child=serializers.JSONField(allow_null=True), allow_empty=False)
    mode = serializers.CharField()
    knowledge_id = serializers.CharField(required=False, allow_blank=True, allow_null=True, help_text="Ignored.")
    task_id = serializers.CharField(required=False, allow_blank=True, allow_null=True)
    dry_run = serializers.BooleanField(required=False, allow_null=True, default=False)


class FileFields(serializers.Serializer[Any]):
    file = serializers.FileField(allow_empty_file=True)
    encoding = serializers.CharField(required=False, allow_blank=True, help_text="How a text file is read; guessed when left out.")


class ImportFileIn(FileFields):
    mode = serializers.CharField()
    task_id = serializers.CharField(required=False, allow_blank=True)
    dry_run = serializers.BooleanField(required=False, default=False)


class DisplayIn(serializers.Serializer[Any]):
    display_status = serializers.CharField()


class FailuresQuery(serializers.Serializer[Any]):
    limit = serializers.IntegerField(required=False, default=100, min_value=1, max_value=1000)
    offset = serializers.IntegerField(required=False, default=0, min_value=0, max_value=1_000_000)


class EntryOut(serializers.Serializer[FaqEntry]):
    """`similar_questions`, `negative_questions` and `answers` are null when there are none."""

    id = serializers.IntegerField()
    chunk_id = serializers.UUIDField()
    knowledge_id = serializers.UUIDField()
    knowledge_base_id = serializers.UUIDField()
    tag_id = serializers.IntegerField()
    tag_name = serializers.CharField()
    is_enabled = serializers.BooleanField()
    is_recommended = serializers.BooleanField()
    standard_question = serializers.CharField()
    similar_questions = serializers.ListField(child=serializers.CharField(), allow_null=True)
    negative_questions = serializers.ListField(child=serializers.CharField(), allow_null=True)
    answers = serializers.ListField(child=serializers.CharField(), allow_null=True)
    answer_strategy = serializers.CharField()
    index_mode = serializers.CharField()
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    chunk_type = serializers.CharField()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return entry_shape(instance, str(self.context["container"]), self.context["heads"])


def entry_shape(entry: FaqEntry, container: str, heads: dict[int, str]) -> dict[str, Any]:
    """An entry as the contract has it. `heads`: {primary key of its document: id of its first passage}."""
    tags = sorted(entry.document.tags.all(), key=lambda tag: tag.pk)
    moment = serializers.DateTimeField()
    return {
        "id": entry.seq_id,
        "chunk_id": heads.get(entry.document_id, ""),
        "knowledge_id": container,
        "knowledge_base_id": str(entry.kb.uid),
        "tag_id": tags[0].pk if tags else 0,
        "tag_name": tag_name_of(entry),
        "is_enabled": entry.is_enabled,
        "is_recommended": entry.is_recommended,
        "standard_question": entry.standard_question,
        "similar_questions": entry.similar_questions or None,
        "negative_questions": entry.negative_questions or None,
        "answers": entry.answers or None,
        "answer_strategy": entry.answer_strategy,
        "index_mode": index_mode(entry.kb),
        "version": entry.version,
        "created_at": moment.to_representation(entry.created_at),
        "updated_at": moment.to_representation(entry.updated_at),
        "chunk_type": "faq",
    }


class MatchOut(EntryOut):
    """An entry that answers; `match_type` is left out, which clients read as 0. `match_kind`: semantic, keyword or both."""

    score = serializers.FloatField(required=False)
    matched_question = serializers.CharField(required=False)
    match_kind = serializers.CharField()
    vector_score = serializers.FloatField(required=False)
    keyword_score = serializers.FloatField(required=False)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        found = super().to_representation(instance.entry)
        more = {
            "score": round(instance.score, 6),
            "matched_question": instance.question,
            "match_kind": instance.kind,
            "vector_score": instance.vector_score,
            "keyword_score": instance.keyword_score,
        }
        return found | {name: value for name, value in more.items() if value not in (None, "", 0)}


class ImportStartedOut(serializers.Serializer[FaqImportRun]):
    task_id = serializers.CharField()


class ProgressOut(serializers.Serializer[FaqImportRun]):
    """How far an import is (contract content F12); counts of 0 and empty lists are left out where the contract says so."""

    task_id = serializers.CharField()
    kb_id = serializers.CharField()
    knowledge_id = serializers.CharField()
    status = serializers.CharField(help_text="pending processing completed failed")
    progress = serializers.IntegerField()
    total = serializers.IntegerField()
    processed = serializers.IntegerField()
    success_count = serializers.IntegerField()
    failed_count = serializers.IntegerField()
    partial_failed_count = serializers.IntegerField(required=False)
    skipped_count = serializers.IntegerField(required=False)
    merged_count = serializers.IntegerField(required=False)
    added_count = serializers.IntegerField(required=False)
    success_entries = serializers.ListField(child=serializers.DictField(), required=False)
    valid_entry_indices = serializers.ListField(child=serializers.IntegerField(), required=False)
    merge_entry_indices = serializers.ListField(child=serializers.IntegerField(), required=False)
    merge_details = serializers.ListField(child=serializers.DictField(), required=False)
    failed_entries = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="Up to 200, until the import is completed; then `failed_entries_url`."
    )
    failed_entries_url = serializers.CharField(required=False, help_text="CSV of the rows that could not be taken whole.")
    message = serializers.CharField()
    error = serializers.CharField()
    created_at = serializers.IntegerField(help_text="Unix seconds.")
    updated_at = serializers.IntegerField(help_text="Unix seconds.")
    dry_run = serializers.BooleanField(required=False)
    import_mode = serializers.CharField(required=False)
    imported_at = serializers.CharField()
    display_status = serializers.CharField(required=False)
    processing_time = serializers.IntegerField(required=False, help_text="Seconds.")

    def to_representation(self, instance: FaqImportRun) -> dict[str, Any]:
        known = self.context
        shown = progress_shape(instance, known["counts"], known["container"], known.get("rows"), known.get("entries") or {})
        failed = [failed_entry(row) for row in known.get("failed") or ()]
        if failed and instance.state == RunState.DONE:
            return shown | {"failed_entries_url": failures_url(known["prefix"], instance)}
        return shown | ({"failed_entries": failed} if failed else {})


STATUS = {
    RunState.QUEUED: "pending",
    RunState.RUNNING: "processing",
    RunState.DONE: "completed",
    RunState.FAILED: "failed",
    RunState.CANCELLED: "failed",
}


def progress_shape(
    run: FaqImportRun, counts: dict[str, int], container: str, rows: list[FaqImportRow] | None, entries: dict[int, FaqEntry]
) -> dict[str, Any]:
    done = run.state == RunState.DONE
    succeeded = counts["added"] + counts["merged"] - counts["partial"]
    processed = (
        run.progress_total if done else min(run.progress_total, sum(counts[name] for name in ("added", "merged", "skipped", "failed")))
    )
    took = int((run.finished_at - run.started_at).total_seconds()) if run.finished_at and run.started_at else 0
    whole: dict[str, Any] = {
        "task_id": run.task_id,
        "kb_id": str(run.kb_uid),
        "knowledge_id": container,
        "status": STATUS[run.state],  # type: ignore[index]
        "progress": 100 if done else _percent(run, processed),
        "total": run.progress_total,
        "processed": processed,
        "success_count": succeeded,
        "failed_count": counts["failed"],
        "message": "",
        "error": run.error if run.state in (RunState.FAILED, RunState.CANCELLED) else "",
        "created_at": int(run.created_at.timestamp()),
        "updated_at": int(run.updated_at.timestamp()),
        "imported_at": NEVER,
    }
    if done and not run.dry_run and run.finished_at is not None:
        whole["imported_at"] = serializers.DateTimeField().to_representation(run.finished_at)
    optional: dict[str, Any] = {
        "partial_failed_count": counts["partial"],
        "skipped_count": counts["skipped"],
        "merged_count": counts["merged"],
        "added_count": counts["added"],
        "dry_run": run.dry_run,
        "import_mode": run.mode,
        "display_status": run.shown if done and not run.dry_run else "",
        "processing_time": took,
    }
    if rows is not None:
        optional |= _row_lists(run, rows, entries)
    return whole | {name: value for name, value in optional.items() if value}


def _percent(run: FaqImportRun, processed: int) -> int:
    """A tenth for checking the rows, the rest for taking them."""
    total = max(1, run.progress_total)
    if not run.is_checked:
        return min(10, 10 * run.progress_done // total)
    return min(99, 10 + 90 * processed // total)


def _row_lists(run: FaqImportRun, rows: list[FaqImportRow], entries: dict[int, FaqEntry]) -> dict[str, Any]:
    merged = [row for row in rows if row.state == FaqImportRow.State.MERGED]
    taken = [row for row in rows if row.state in (FaqImportRow.State.ADDED, FaqImportRow.State.MERGED)]
    details = [
        {
            "index": row.index,
            "standard_question": (row.draft or {}).get("standard_question", ""),
            "answer_changed": bool(row.facts.get("answer_changed")),
            "new_similar_count": int(row.facts.get("new_similar_count", 0)),
            "new_negative_count": int(row.facts.get("new_negative_count", 0)),
        }
        for row in merged
    ]
    lists: dict[str, Any] = {"merge_entry_indices": [row.index for row in merged], "merge_details": details}
    lists["valid_entry_indices"] = [row.index for row in rows if row.state != FaqImportRow.State.FAILED]
    if not run.dry_run:
        lists["success_entries"] = [_success(row, entries[row.entry_ref]) for row in taken if row.entry_ref in entries]
    return lists


def _success(row: FaqImportRow, entry: FaqEntry) -> dict[str, Any]:
    tags = sorted(entry.document.tags.all(), key=lambda tag: tag.pk)
    found = {"index": row.index, "seq_id": entry.seq_id, "standard_question": entry.standard_question}
    return found | ({"tag_id": tags[0].pk, "tag_name": tags[0].name} if tags else {})


def failure_shape(row: FaqImportRow) -> dict[str, Any]:
    """A row that was not taken, or not whole, as the product's route has it (contract content 12)."""
    return {
        "rowNumber": row.index + 1,
        "reasonCode": row.reason,
        "reason": sentence(row.reason, row.facts),
        "rawEntry": row.raw,
        "isPartialFailure": row.is_partial,
    }


class FailureOut(serializers.Serializer[FaqImportRow]):
    rowNumber = serializers.IntegerField(help_text="From 1.")
    reasonCode = serializers.CharField()
    reason = serializers.CharField(help_text="In the reader's language.")
    rawEntry = serializers.JSONField(help_text="The row as it was sent.")
    isPartialFailure = serializers.BooleanField(help_text="It was taken, without some of its questions.")


class FailuresOut(serializers.Serializer[Any]):
    entries = FailureOut(many=True)
    total = serializers.IntegerField()

    def to_representation(self, instance: dict[str, Any]) -> dict[str, Any]:
        return {"entries": [failure_shape(row) for row in instance["entries"]], "total": instance["total"]}


class PreviewOut(serializers.Serializer[Any]):
    """What a file holds, before anything is imported."""

    kind = serializers.CharField(help_text="csv, json or sheet")
    encoding = serializers.CharField()
    replaced = serializers.IntegerField(help_text="Characters that could not be read.")
    sheet = serializers.CharField()
    columns = serializers.ListField(child=serializers.DictField(), help_text="`name` and the `field` it was taken for, blank: not read.")
    total = serializers.IntegerField()
    entries = serializers.ListField(child=serializers.DictField(allow_null=True), help_text="The first rows as they were understood.")

    def to_representation(self, instance: Any) -> dict[str, Any]:
        first = [row.draft.to_json() if row.draft is not None else None for row in instance.rows[:5]]
        return {
            "kind": instance.kind,
            "encoding": instance.encoding,
            "replaced": instance.replaced,
            "sheet": instance.sheet,
            "columns": [{"name": column.name, "field": column.field} for column in instance.columns],
            "total": len(instance.rows),
            "entries": first,
        }
