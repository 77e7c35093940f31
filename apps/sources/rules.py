"""What may be stored of a source."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.common.text import clean_line
from apps.knowledge.models import KnowledgeBase
from apps.sources.models import ConflictStrategy, DataSource, DeletionPolicy, SyncMode
from apps.sources.plugins.protocol import Connector, SourceError, connectors
from apps.sources.reasons import sentence
from apps.sources.schedule import clean_schedule, clean_zone

NAME_MAX = 200
VALUE_MAX = 20_000
RESOURCES_MAX = 1000
RETENTION_MAX = 3650


def connector_of(kind: Any) -> Connector:
    """Raises: InvalidInput (unknown_connector)."""
    if not isinstance(kind, str) or kind not in connectors:
        raise InvalidInput(
            _("connector type not found in registry"), code="unknown_connector", field="type", known=connectors.names(), api_code=1000
        )
    return connectors.get(kind)


def check_base(base: KnowledgeBase) -> None:
    if base.type == KnowledgeBase.Type.FAQ:
        raise InvalidInput(_("A FAQ base takes question pairs, not documents. Choose another base."), code="faq_base", api_code=1000)


def clean_source_name(name: Any, connector: Connector) -> str:
    """The name, or that of its kind. Raises: InvalidInput."""
    text = clean_line(str(name or ""))
    if len(text) > NAME_MAX:
        raise InvalidInput(_("The name may have at most %(max)d characters.") % {"max": NAME_MAX}, field="name", max=NAME_MAX)
    return text or str(connector.meta.name)


def clean_credentials(connector: Connector, raw: Any) -> dict[str, str]:
    """Credentials as text by name: empty ones are not kept, and settings that came along go where they belong (`settings_among`).

    Raises: InvalidInput at the input that is no text or far too long.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput(_("Send the credentials as an object of texts."), field="credentials", api_code=1000)
    settings = _names(connector, "settings")
    found: dict[str, str] = {}
    for name, value in raw.items():
        if value is None or value == "" or name in settings:
            continue
        if not isinstance(name, str) or not isinstance(value, str) or len(value) > VALUE_MAX:
            raise InvalidInput(_("This is no text, or it is too long."), field=str(name)[:64], api_code=1000)
        found[name[:64]] = value.strip()
    return found


def settings_among(connector: Connector, credentials: Any) -> dict[str, Any]:
    """Settings that a client sent among the credentials: the connection test of the contract has no other place for them."""
    settings = _names(connector, "settings")
    return {name: value for name, value in credentials.items() if name in settings} if isinstance(credentials, Mapping) else {}


def clean_settings(connector: Connector, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Raises: InvalidInput at the setting at fault."""
    try:
        return connector.clean(raw)
    except SourceError as error:
        raise refusal(error) from error


def check_required(connector: Connector, credentials: Mapping[str, str], settings: Mapping[str, Any]) -> None:
    """Raises: InvalidInput at the first input that must be filled and is not."""
    for each in connector.meta.inputs:
        values: Mapping[str, Any] = credentials if each.where == "credentials" else settings
        if each.required and values.get(each.name) in (None, "", [], {}):
            raise InvalidInput(_("%(label)s: fill this in.") % {"label": each.label}, code="required", field=each.name, api_code=1000)


def clean_resources(raw: Any) -> list[str]:
    if not isinstance(raw, (list, tuple)) or not all(isinstance(each, str) for each in raw) or len(raw) > RESOURCES_MAX:
        raise InvalidInput(_("Choose at most %(max)d parts.") % {"max": RESOURCES_MAX}, field="resource_ids", api_code=1000)
    return list(dict.fromkeys(each[:512] for each in raw if each))


def clean_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of schedule, mode, strategy, policy and retention that were given. Raises: InvalidInput at the one at fault."""
    found: dict[str, Any] = {}
    if values.get("schedule") is not None:
        found["schedule"] = clean_schedule(values["schedule"])
    if values.get("time_zone") is not None:
        found["time_zone"] = clean_zone(values["time_zone"])
    for name, choices, shown in (
        ("sync_mode", SyncMode, "sync_mode"),
        ("conflict_strategy", ConflictStrategy, "conflict_strategy"),
        ("deletion_policy", DeletionPolicy, "deletion_policy"),
    ):
        if values.get(name):
            if values[name] not in choices.values:
                raise InvalidInput(_("Choose one of: %(known)s.") % {"known": ", ".join(choices.values)}, field=shown, api_code=1000)
            found[name] = values[name]
    if (days := values.get("log_retention_days")) is not None:
        if not 1 <= days <= RETENTION_MAX:
            raise InvalidInput(
                _("Keep the history between 1 and %(max)d days.") % {"max": RETENTION_MAX}, field="sync_log_retention_days", api_code=1000
            )
        found["log_retention_days"] = days
    return found


def clean_status(raw: Any) -> str:
    if raw not in (DataSource.Status.ACTIVE, DataSource.Status.PAUSED):
        raise InvalidInput(_("The status is either active or paused."), field="status", api_code=1000)
    return str(raw)


def selection_of(source: DataSource) -> str:
    """A hash of what is selected at the source: a cursor that was made for something else does not say what is new."""
    chosen = {"type": source.type, "settings": source.settings, "resources": sorted(source.resource_ids)}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True, default=str).encode()).hexdigest()


def refusal(error: SourceError) -> InvalidInput:
    """What a source said, as an error for whoever asked it."""
    item = {"item": error.item} if error.item else {}
    text = sentence(error.code, error.detail, error.params)
    return InvalidInput(text, code=error.code, field=error.field or None, api_code=1000, **item)


def _names(connector: Connector, where: str) -> set[str]:
    both = {each.name for each in connector.meta.inputs if each.where == where}
    return both - {each.name for each in connector.meta.inputs if each.where != where}
