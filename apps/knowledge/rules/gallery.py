"""What pictures can be filtered, searched and sorted by (contract knowledge 9.2, 9.3). What cannot be used is ignored, never an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models import DocumentImage

ENABLED = "builtin:is_enabled"
CREATED = "builtin:created_at"


@dataclass(frozen=True, slots=True)
class Attribute:
    """`column`: a lookup on DocumentImage; "" for observed attributes, which stand in `attrs` under their id."""

    id: str
    type: str
    label: Any
    column: str = ""
    values: tuple[tuple[str, Any], ...] = ()
    in_filter: bool = False
    in_search: bool = False
    in_sort: bool = False

    @property
    def source(self) -> str:
        return self.id.split(":", 1)[0]

    @property
    def name(self) -> str:
        return self.id.split(":", 1)[1]


_YES_NO = (("true", _("Yes")), ("false", _("No")))
ATTRIBUTES = (
    Attribute("builtin:caption", "text", _("Description"), "caption", in_search=True, in_sort=True),
    Attribute("builtin:ocr_text", "text", _("Text in the image"), "ocr_text", in_search=True),
    Attribute(CREATED, "date", _("Created"), "created_at", in_sort=True),
    Attribute("builtin:updated_at", "date", _("Changed"), "updated_at", in_sort=True),
    Attribute(ENABLED, "presence", _("Enabled"), "chunk__is_enabled", _YES_NO, in_filter=True),
    Attribute(
        "system:contain.text",
        "extent",
        _("Contains text"),
        values=(("none", _("None")), ("sparse", _("A little")), ("block", _("Blocks of text"))),
        in_filter=True,
    ),
    Attribute("system:contain.data_visual", "presence", _("Contains a chart or diagram"), values=_YES_NO, in_filter=True),
)
BY_ID = {attribute.id: attribute for attribute in ATTRIBUTES}


def search_condition(keyword: str, search_in: str) -> Q:
    """Pictures whose chosen fields contain the keyword; fields that cannot be searched are dropped, none left means all that can."""
    named = [BY_ID[name] for raw in search_in.split(",") if (name := raw.strip()) in BY_ID and BY_ID[name].in_search]
    found = Q()
    for attribute in named or [each for each in ATTRIBUTES if each.in_search]:
        found |= Q(**{f"{attribute.column}__icontains": keyword})
    return found


def order_of(sort_by: str, sort_order: str) -> tuple[str, str]:
    attribute = BY_ID.get(sort_by.strip())
    column = attribute.column if attribute is not None and attribute.in_sort else BY_ID[CREATED].column
    sign = "" if sort_order.strip().lower() == "asc" else "-"
    return f"{sign}{column}", f"{sign}pk"


def filter_condition(attr_filters: str) -> Q:
    """`{id: [values]}`: any of the values of one attribute, all attributes together."""
    found = Q()
    for name, values in _object(attr_filters).items():
        attribute = BY_ID.get(name)
        if attribute is None or not attribute.in_filter or not isinstance(values, list):
            continue
        wanted = [value for raw in values if (value := _text(raw)) in dict(attribute.values)]
        if wanted:
            found &= _any(attribute, wanted)
    return found


def rule_condition(attr_rules: str) -> Q:
    """`{id: {value: "on" | "off"}}`: `off` hides what carries the value unless some `on` claims it."""
    shown, hidden = Q(), Q()
    for name, rules in _object(attr_rules).items():
        attribute = BY_ID.get(name)
        if attribute is None or not attribute.in_filter or not isinstance(rules, dict):
            continue
        for value, rule in rules.items():
            if value in dict(attribute.values) and rule == "on":
                shown |= _any(attribute, [value])
            elif value in dict(attribute.values) and rule == "off":
                hidden |= _any(attribute, [value])
    return Q() if not hidden else (shown | _none(hidden) if shown else _none(hidden))


def _none(hidden: Q) -> Q:
    """Everything `hidden` does not match; a picture without any attributes matches nothing."""
    return ~Q(pk__in=DocumentImage.objects.filter(hidden).values("pk"))


def _any(attribute: Attribute, values: list[str]) -> Q:
    if attribute.column:
        return Q(**{f"{attribute.column}__in": [value == "true" for value in values]})
    found = Q()
    for value in values:
        spelled: list[Any] = [value, value == "true"] if attribute.type == "presence" else [value]
        for each in spelled:
            found |= Q(**{f"attrs__{attribute.id}": each})
    return found


def _text(raw: Any) -> str:
    return {True: "true", False: "false"}.get(raw, "") if isinstance(raw, bool) else raw if isinstance(raw, str) else ""


def _object(raw: str) -> Mapping[str, Any]:
    try:
        loaded = json.loads(raw or "{}")
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
