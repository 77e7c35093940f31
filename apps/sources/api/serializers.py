"""Shapes of data sources (contract content 7)."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.common.api.views import ObjectField
from apps.sources.models import DeletionPolicy, SourceItem, SyncRun
from apps.sources.plugins.protocol import ConnectorMeta, Resource
from apps.sources.selectors import SourceRow

MAX_OFFSET = 10_000_000


class ConfigIn(serializers.Serializer[Any]):
    """Members that are not listed are ignored."""

    credentials = ObjectField(required=False, allow_null=True, help_text="By name, see the kinds of sources. Encrypted, never answered.")
    resource_ids = serializers.ListField(
        child=serializers.CharField(allow_blank=True), required=False, allow_null=True, help_text="Empty: everything that may be seen."
    )
    settings = ObjectField(required=False, allow_null=True)


class SourceIn(serializers.Serializer[Any]):
    name = serializers.CharField(required=False, allow_blank=True)
    type = serializers.CharField(required=False, allow_blank=True)
    config = ConfigIn(required=False, allow_null=True)
    sync_schedule = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="Cron of six fields (seconds first) or five; empty: by hand only."
    )
    time_zone = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, help_text="In which the schedule is meant, such as Asia/Shanghai."
    )
    sync_mode = serializers.CharField(required=False, allow_blank=True, help_text="incremental or full.")
    status = serializers.CharField(required=False, allow_blank=True, help_text="active or paused.")
    conflict_strategy = serializers.CharField(
        required=False, allow_blank=True, help_text="overwrite or skip: what happens to a document that was changed here as well."
    )
    sync_deletions = serializers.BooleanField(required=False, allow_null=True, help_text="true is the deletion policy apply.")
    deletion_policy = serializers.CharField(
        required=False, allow_blank=True, help_text="apply, hold (an admin decides) or ignore; wins over sync_deletions."
    )
    sync_log_retention_days = serializers.IntegerField(required=False, allow_null=True)


class SourceCreateIn(SourceIn):
    knowledge_base_id = serializers.CharField()
    type = serializers.CharField()


def values_of(body: dict[str, Any], *, policy: str = "") -> dict[str, Any]:
    """The service's values of a body. `policy`: the one the source has, which `sync_deletions: false` only ends when it was `apply`."""
    config = body.get("config") or {}
    values: dict[str, Any] = {
        name: body.get(name) for name in ("name", "type", "time_zone", "sync_mode", "status", "conflict_strategy", "deletion_policy")
    }
    values |= {name: config.get(name) for name in ("credentials", "resource_ids", "settings")}
    values |= {"schedule": body.get("sync_schedule"), "log_retention_days": body.get("sync_log_retention_days") or None}
    wanted = body.get("sync_deletions")
    if not values["deletion_policy"] and wanted is not None:
        told = DeletionPolicy.APPLY if wanted else DeletionPolicy.IGNORE
        values["deletion_policy"] = policy if policy == DeletionPolicy.HOLD and not wanted else told
    return values


class MetaOut(serializers.Serializer[ConnectorMeta]):
    """A kind of source. `inputs` is what a form asks for, and where in `config` each goes."""

    type = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    icon = serializers.CharField()
    priority = serializers.IntegerField()
    auth_type = serializers.CharField()
    capabilities = serializers.ListField(child=serializers.CharField())
    has_resources = serializers.BooleanField()
    inputs = serializers.SerializerMethodField()

    def get_inputs(self, meta: ConnectorMeta) -> list[dict[str, Any]]:
        return [
            {
                "name": each.name,
                "label": str(each.label),
                "kind": each.kind,
                "where": each.where,
                "required": each.required,
                "hint": str(each.hint),
                "choices": [{"value": value, "label": str(label)} for value, label in each.choices],
                "default": each.default,
            }
            for each in meta.inputs
        ]


class RunOut(serializers.Serializer[SyncRun]):
    """The contract's SyncLog. `items_total` is the sum of what follows it; `items_unchanged` and `items_listed` are ours."""

    id = serializers.CharField(source="uid")
    data_source_id = serializers.CharField(source="source.uid")
    tenant_id = serializers.IntegerField(source="space_id")
    status = serializers.CharField(source="outcome")
    trigger = serializers.CharField()
    sync_mode = serializers.CharField(source="mode")
    started_at = serializers.SerializerMethodField()
    finished_at = serializers.DateTimeField()
    items_total = serializers.SerializerMethodField()
    items_created = serializers.IntegerField(source="created")
    items_updated = serializers.SerializerMethodField()
    items_deleted = serializers.IntegerField(source="deleted")
    items_skipped = serializers.IntegerField(source="skipped")
    items_failed = serializers.IntegerField(source="failed")
    items_held = serializers.IntegerField(source="held")
    items_unchanged = serializers.IntegerField(source="unchanged")
    items_listed = serializers.SerializerMethodField()
    error_message = serializers.CharField(source="error")
    result = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()

    def get_started_at(self, run: SyncRun) -> str:
        return (run.started_at or run.created_at).isoformat()

    def get_items_total(self, run: SyncRun) -> int:
        return run.created + run.updated + run.renamed + run.deleted + run.skipped + run.failed + run.held

    def get_items_updated(self, run: SyncRun) -> int:
        return run.updated + run.renamed

    def get_items_listed(self, run: SyncRun) -> int:
        return max(run.listed, run.progress_done)

    def get_result(self, run: SyncRun) -> dict[str, Any] | None:
        return None if run.is_live else result_of(run)


def result_of(run: SyncRun) -> dict[str, Any]:
    counts = {
        "total": run.created + run.updated + run.renamed + run.deleted + run.skipped + run.failed + run.held,
        "created": run.created,
        "updated": run.updated + run.renamed,
        "deleted": run.deleted,
        "skipped": run.skipped,
        "failed": run.failed,
        "held": run.held,
        "unchanged": run.unchanged,
    }
    if run.deletion_failed:
        counts["deletion_failed"] = run.deletion_failed
    extra = {name: value for name, value in (("errors", run.errors), ("warnings", run.warnings)) if value}
    return {**counts, **extra}


class SourceOut(serializers.Serializer[SourceRow]):
    """A data source. Credentials are never in it: `credentials.credentials.configured` only says that there are some."""

    id = serializers.CharField(source="source.uid")
    tenant_id = serializers.IntegerField(source="source.space_id")
    knowledge_base_id = serializers.CharField(source="source.kb.uid")
    name = serializers.CharField(source="source.name")
    type = serializers.CharField(source="source.type")
    config = serializers.SerializerMethodField()
    sync_schedule = serializers.CharField(source="source.schedule")
    time_zone = serializers.CharField(source="source.time_zone")
    next_sync_at = serializers.DateTimeField(source="source.next_run_at")
    sync_mode = serializers.CharField(source="source.sync_mode")
    status = serializers.CharField(source="source.status")
    conflict_strategy = serializers.CharField(source="source.conflict_strategy")
    sync_deletions = serializers.SerializerMethodField()
    deletion_policy = serializers.CharField(source="source.deletion_policy")
    last_sync_at = serializers.DateTimeField()
    sync_log_retention_days = serializers.IntegerField(source="source.log_retention_days")
    total_items_synced = serializers.IntegerField(source="retained")
    retainedKnowledgeCount = serializers.IntegerField(source="retained")
    held_count = serializers.IntegerField(source="held")
    created_at = serializers.DateTimeField(source="source.created_at")
    updated_at = serializers.DateTimeField(source="source.updated_at")
    credentials = serializers.SerializerMethodField()

    def get_config(self, row: SourceRow) -> dict[str, Any]:
        source = row.source
        shown: dict[str, Any] = {"type": source.type}
        if source.resource_ids:
            shown["resource_ids"] = source.resource_ids
        if source.settings:
            shown["settings"] = source.settings
        return shown

    def get_sync_deletions(self, row: SourceRow) -> bool:
        return row.source.deletion_policy == DeletionPolicy.APPLY

    def get_credentials(self, row: SourceRow) -> dict[str, Any]:
        return {"credentials": {"configured": bool(row.source.sealed)}}

    def to_representation(self, row: SourceRow) -> dict[str, Any]:
        shown = super().to_representation(row)
        if row.source.error_message or row.source.error_code:
            shown["error_message"] = row.source.error_message or row.source.error_code
        if row.source.cursor is not None and self.context.get("with_cursor"):
            shown["last_sync_cursor"] = row.source.cursor
        if row.last_good is not None:
            shown["last_sync_result"] = result_of(row.last_good)
        if self.context.get("with_log") and row.last is not None:
            shown["latest_sync_log"] = RunOut(row.last, context=self.context).data
        return shown


class ResourceOut(serializers.Serializer[Resource]):
    external_id = serializers.CharField()
    name = serializers.CharField()
    type = serializers.CharField()
    description = serializers.CharField()
    url = serializers.CharField()
    modified_at = serializers.DateTimeField()
    parent_id = serializers.CharField()
    has_children = serializers.BooleanField()
    metadata = serializers.DictField(child=serializers.CharField())


class HeldOut(serializers.Serializer[SourceItem]):
    id = serializers.IntegerField(source="pk")
    external_id = serializers.CharField()
    title = serializers.CharField()
    url = serializers.CharField()
    knowledge_id = serializers.SerializerMethodField()
    vanished_at = serializers.DateTimeField()

    def get_knowledge_id(self, item: SourceItem) -> str | None:
        return str(item.document.uid) if item.document is not None else None


class ListQuery(serializers.Serializer[Any]):
    kb_id = serializers.CharField(help_text="The knowledge base.")


class LogQuery(serializers.Serializer[Any]):
    limit = serializers.IntegerField(required=False, default=10, min_value=1, max_value=100)
    offset = serializers.IntegerField(required=False, default=0, min_value=0, max_value=MAX_OFFSET)


class ResourceQuery(serializers.Serializer[Any]):
    parent_id = serializers.CharField(required=False, allow_blank=True, default="", help_text="Empty: the outermost level.")


class AncestorsIn(serializers.Serializer[Any]):
    resource_ids = serializers.ListField(child=serializers.CharField(allow_blank=True))


class CheckIn(serializers.Serializer[Any]):
    type = serializers.CharField()
    credentials = ObjectField(help_text="Settings a test needs may stand among them, such as feed_urls.")
    settings = ObjectField(required=False)


class SourceCredentialsIn(serializers.Serializer[Any]):
    credentials = ObjectField()


class SyncIn(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(
        choices=["incremental", "full"], required=False, allow_blank=True,
        help_text="full fetches everything again and brings back what was deleted here; left out: as the source says.",
    )  # fmt: skip


class HeldIn(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(choices=["delete", "keep"])
    ids = serializers.ListField(child=serializers.IntegerField(), required=False, help_text="Left out: all that wait.")


class StatusOut(serializers.Serializer[Any]):
    status = serializers.CharField(help_text="connected, paused or active.")


class StoppedOut(serializers.Serializer[Any]):
    stopped = serializers.BooleanField(help_text="false: there was no run to stop.")


class AncestorsOut(serializers.Serializer[Any]):
    ancestors = serializers.ListField(child=serializers.CharField())


class StaysOut(serializers.Serializer[Any]):
    title = serializers.CharField()
    why = serializers.CharField()


class DecidedOut(serializers.Serializer[Any]):
    deleted = serializers.IntegerField()
    kept = serializers.IntegerField()
    stays = StaysOut(many=True, help_text="Those that could not be deleted now, with the reason.")
