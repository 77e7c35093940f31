"""Fields several inputs of this context share."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any, ClassVar

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers


class Flag(serializers.BooleanField):
    """A truth value that is really absent when a form or query does not name it (DRF reads absence as False there)."""

    default_empty_html = serializers.empty


class LenientFlag(serializers.CharField):
    """true/1/t/yes is true, everything else false (contract: a bad value counts as false)."""

    def to_internal_value(self, data: Any) -> Any:
        return str(data).strip().lower() in ("1", "t", "true", "yes")


class CommaList(serializers.CharField):
    """`a,b,c` as a list without blanks."""

    def to_internal_value(self, data: Any) -> Any:
        return [part.strip() for part in super().to_internal_value(data).split(",") if part.strip()]


class Moment(serializers.CharField):
    """RFC 3339, `YYYY-MM-DD HH:MM:SS` or `YYYY-MM-DD`, the last two in the server's time; a bare day means its start, or its end."""

    default_error_messages: ClassVar[dict[str, Any]] = {"bad_time": _("Write a time like 2026-01-31 or 2026-01-31T08:00:00Z.")}

    def __init__(self, *, day_end: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.day_end = day_end

    def to_internal_value(self, data: Any) -> Any:
        raw = super().to_internal_value(data).strip()
        try:
            found = parse_datetime(raw) if len(raw) > 10 else None
            day = parse_date(raw) if found is None else None
        except ValueError:
            found = day = None
        if day is not None:
            found = datetime.combine(day, time.max if self.day_end else time.min)
        if found is None:
            self.fail("bad_time")
        return found if timezone.is_aware(found) else timezone.make_aware(found)


class TextList(serializers.ListField):
    """A list of texts."""

    child = serializers.CharField(allow_blank=True)


class NullableTextList(TextList):
    """A list of texts; null counts as empty."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_null=True, **kwargs)
