"""Making, changing, trying and removing data sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.sources import linking, rules
from apps.sources.endings import runs_cancel
from apps.sources.models import DataSource
from apps.sources.plugins.protocol import Connector, Resource, SourceError
from apps.sources.schedule import next_run

Status = DataSource.Status
WATCHED = (
    "name", "settings", "resource_ids", "schedule", "time_zone", "sync_mode", "status", "conflict_strategy", "deletion_policy",
    "log_retention_days", "is_draft",
)  # fmt: skip


def source_create(*, actor: Actor, base: KnowledgeBase, values: Mapping[str, Any]) -> DataSource:
    """A new source of a base, after it has answered with these credentials and settings. `values` has the names of the model's fields.

    Nothing is taken over yet: that begins with its schedule, or when somebody asks.

    Raises: InvalidInput at the input at fault, or with what the source said; then nothing is stored.
    """
    authorize(actor, "source.write", base)
    rules.check_base(base)
    connector = rules.connector_of(values.get("type"))
    given = values.get("credentials") or {}
    credentials = rules.clean_credentials(connector, given)
    settings = rules.clean_settings(connector, {**rules.settings_among(connector, given), **(values.get("settings") or {})})
    rules.check_required(connector, credentials, settings)
    source = DataSource(
        space_id=base.space_id,
        kb=base,
        type=connector.meta.type,
        name=rules.clean_source_name(values.get("name"), connector),
        sealed=linking.sealed(credentials),
        settings=settings,
        resource_ids=rules.clean_resources(values.get("resource_ids") or []),
        status=rules.clean_status(values.get("status") or Status.ACTIVE),
        is_draft=bool(values.get("is_draft")),
        creator_id=actor.user_id,
        **rules.clean_options(values),
    )
    _try(connector, credentials, settings)
    _plan(source)
    with transaction.atomic():
        if not KnowledgeBase.objects.filter(pk=base.pk, deleted_at__isnull=True).exists():
            raise InvalidInput(_("This knowledge base was deleted in the meantime."), code="base_deleted", api_code=1000)
        source.save(force_insert=True)
        audit(actor, "source.created", source, target_type="datasource", title=source.name, type=source.type)
    return source


def source_update(*, actor: Actor, source: DataSource, values: Mapping[str, Any]) -> DataSource:
    """The source with what is given changed; what is left out stays. Credentials are changed by `credentials_set` alone.

    After a change of settings it is asked whether it answers. Raises: InvalidInput at the input at fault; nothing is changed then.
    """
    authorize(actor, "source.write", source)
    connector = rules.connector_of(source.type)
    if values.get("type") and values["type"] != source.type:
        raise InvalidInput(_("A source keeps its type. Add another one."), code="type_fixed", field="type", api_code=1000)
    found = rules.clean_options(values)
    if values.get("name"):
        found["name"] = rules.clean_source_name(values["name"], connector)
    if values.get("status") and not (values["status"] == Status.ERROR == source.status):
        found["status"] = rules.clean_status(values["status"])
    if values.get("is_draft") is not None:
        found["is_draft"] = bool(values["is_draft"])
    if values.get("resource_ids") is not None:
        found["resource_ids"] = rules.clean_resources(values["resource_ids"])
    if values.get("settings") is not None:
        found["settings"] = rules.clean_settings(connector, values["settings"])
        credentials = linking.credentials_of(source)
        rules.check_required(connector, credentials, found["settings"])
        if found["settings"] != source.settings:
            _try(connector, credentials, found["settings"])
    with transaction.atomic():
        row = _locked(source)
        before = {name: getattr(row, name) for name in WATCHED}
        for name, value in found.items():
            setattr(row, name, value)
        changed = [name for name in WATCHED if getattr(row, name) != before[name]]
        if changed:
            if {"schedule", "time_zone", "status"} & set(changed):
                _plan(row)
            row.save(update_fields=[*changed, "next_run_at", "updated_at"])
            changes = {name: {"before": before[name], "after": getattr(row, name)} for name in changed}
            audit(
                actor, "source.updated", row, target_type="datasource", title=row.name, changed_fields=changed, changes=changes
            )  # fmt: skip
    return row


def credentials_set(*, actor: Actor, source: DataSource, credentials: Any) -> DataSource:
    """The source with other credentials in the place of all it had, once it answers to them. Raises: InvalidInput."""
    authorize(actor, "source.write", source)
    connector = rules.connector_of(source.type)
    found = rules.clean_credentials(connector, credentials)
    if not found:
        raise InvalidInput(_("Send at least one credential."), code="required", field="credentials", api_code=1000)
    rules.check_required(connector, found, source.settings)
    _try(connector, found, source.settings)
    return _put_credentials(actor, source, found)


def credentials_clear(*, actor: Actor, source: DataSource) -> DataSource:
    """The source without credentials; one that needs them fails from now on, and says so."""
    authorize(actor, "source.write", source)
    return _put_credentials(actor, source, {})


def _put_credentials(actor: Actor, source: DataSource, found: dict[str, str]) -> DataSource:
    with transaction.atomic():
        row = _locked(source)
        row.sealed = linking.sealed(found)
        if found and row.status == Status.ERROR:
            row.status, row.error_code, row.error_message = Status.ACTIVE, "", ""
        row.save(update_fields=["sealed", "status", "error_code", "error_message", "updated_at"])
        action = "source.credentials_changed" if found else "source.credentials_removed"
        audit(actor, action, row, target_type="datasource", title=row.name)
    return row


def credentials_check(*, actor: Actor, kind: str, credentials: Any, settings: Mapping[str, Any] | None = None) -> None:
    """Return when a source answers to these values; nothing is stored. Raises: InvalidInput with what it said."""
    authorize(actor, "source.write")
    connector = rules.connector_of(kind)
    found = rules.clean_credentials(connector, credentials)
    wanted = rules.clean_settings(connector, {**rules.settings_among(connector, credentials), **(settings or {})})
    rules.check_required(connector, found, wanted)
    _try(connector, found, wanted)


def resources_preview(*, actor: Actor, kind: str, credentials: Any, settings: Mapping[str, Any], parent_id: str = "") -> list[Resource]:
    """The parts of a source that is not stored yet, for choosing among them. Raises: InvalidInput with what it said."""
    authorize(actor, "source.write")
    connector = rules.connector_of(kind)
    found = rules.clean_credentials(connector, credentials)
    try:
        with linking.link_with(found, rules.clean_settings(connector, settings)) as link:
            return connector.resources(link, parent_id)
    except SourceError as error:
        raise rules.refusal(error) from error


def source_check(*, actor: Actor, source: DataSource) -> DataSource:
    """The source, active again, when it answers; else it says `error` and why. Raises: InvalidInput with what it said."""
    authorize(actor, "source.write", source)
    connector = rules.connector_of(source.type)
    try:
        with linking.link_to(source) as link:
            connector.check(link)
    except SourceError as error:
        rows = DataSource.objects.filter(pk=source.pk, deleted_at__isnull=True)
        rows.update(error_code=error.code[:32], error_message=error.detail[:2000])
        rows.exclude(status=Status.PAUSED).update(status=Status.ERROR)
        raise rules.refusal(error) from error
    with transaction.atomic():
        row = _locked(source)
        if row.status == Status.ERROR or row.error_code:
            row.status = Status.ACTIVE if row.status == Status.ERROR else row.status
            row.error_code = row.error_message = ""
            row.save(update_fields=["status", "error_code", "error_message", "updated_at"])
    return row


def source_resources(*, actor: Actor, source: DataSource, parent_id: str = "") -> list[Resource]:
    """One level of what can be selected. Raises: InvalidInput with what the source said."""
    authorize(actor, "source.write", source)
    try:
        with linking.link_to(source) as link:
            return rules.connector_of(source.type).resources(link, parent_id)
    except SourceError as error:
        raise rules.refusal(error) from error


def source_ancestors(*, actor: Actor, source: DataSource, resource_ids: Any) -> list[str]:
    """What must be opened for these to be seen. Raises: InvalidInput with what the source said."""
    authorize(actor, "source.write", source)
    wanted = rules.clean_resources(resource_ids)
    try:
        with linking.link_to(source) as link:
            return list(rules.connector_of(source.type).ancestors(link, tuple(wanted)))
    except SourceError as error:
        raise rules.refusal(error) from error


def source_pause(*, actor: Actor, source: DataSource) -> DataSource:
    """The source, looked at only when somebody asks; a run that is under way ends as it would. Twice changes nothing."""
    return _set_status(actor, source, Status.PAUSED, "source.paused")


def source_resume(*, actor: Actor, source: DataSource) -> DataSource:
    """The source back on its schedule; what was missed meanwhile is made up by the next run. Twice changes nothing."""
    return _set_status(actor, source, Status.ACTIVE, "source.resumed")


def _set_status(actor: Actor, source: DataSource, status: str, action: str) -> DataSource:
    authorize(actor, "source.write", source)
    with transaction.atomic():
        row = _locked(source)
        if row.status != status:
            row.status = status
            if status == Status.ACTIVE:
                row.error_code = row.error_message = ""
            _plan(row)
            row.save(update_fields=["status", "error_code", "error_message", "next_run_at", "updated_at"])
            audit(actor, action, row, target_type="datasource", title=row.name)
    return row


def source_delete(*, actor: Actor, source: DataSource, retained: int | None = None) -> None:
    """Remove the source with its credentials; what it brought stays. A run under way ends. Twice changes nothing.

    `retained`: how many documents stay, for the record.
    """
    authorize(actor, "source.write", source)
    with transaction.atomic():
        rows = DataSource.objects.filter(pk=source.pk, deleted_at__isnull=True)
        if rows.update(deleted_at=timezone.now(), next_run_at=None, sealed="", cursor=None):
            runs_cancel(source.pk, why="data source deleted")
            audit(actor, "source.deleted", source, target_type="datasource", title=source.name, type=source.type, retained=retained)


def _try(connector: Connector, credentials: Mapping[str, str], settings: Mapping[str, Any]) -> None:
    try:
        with linking.link_with(credentials, settings) as link:
            connector.check(link)
    except SourceError as error:
        raise rules.refusal(error) from error


def _plan(source: DataSource) -> None:
    """When it is looked at next."""
    paused = source.status == Status.PAUSED
    source.next_run_at = None if paused else next_run(source.schedule, source.time_zone, source.uid, timezone.now())


def _locked(source: DataSource) -> DataSource:
    rows = DataSource.objects.select_related("kb", "creator").select_for_update(of=("self",))
    return rows.get(pk=source.pk, deleted_at__isnull=True)  # type: ignore[no-any-return]
