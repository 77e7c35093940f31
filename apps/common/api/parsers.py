"""Reading JSON bodies: whatever cannot be kept or walked through safely is refused here, once for every route."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from apps.common.errors import InvalidInput

MAX_DEPTH = 64


class StrictJSONParser(JSONParser):
    """JSON that can be kept and given back.

    Raises: ParseError for what is no JSON; InvalidInput naming the field for what is nested too deep or holds half a character.
    """

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        charset = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            codecs.lookup(charset)
            raw = stream.read()
            value = json.loads(raw.decode(charset), parse_constant=_no_constant)
        except (ValueError, LookupError, RecursionError) as error:
            raise ParseError(f"JSON parse error - {type(error).__name__}") from error
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else [("", value)]
        for name, member in members:
            if _too_deep(member, MAX_DEPTH - 1):
                raise InvalidInput(
                    _("%(field)s: nested too deep; at most %(max)d levels are read.") % {"field": _shown(name), "max": MAX_DEPTH},
                    field=_shown(name),
                    code="too_deep",
                )
        # Only an escape can bring half of a surrogate pair into a text; no database and no answer could hold it.
        if b"\\u" in raw.lower():
            for name, member in members:
                if not _can_be_written([name, member]):
                    raise InvalidInput(
                        _("%(field)s: a text with half a character (a lone surrogate). Send whole characters.") % {"field": _shown(name)},
                        field=_shown(name),
                        code="broken_character",
                    )
        return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _shown(name: Any) -> str:
    return str(name)[:100].encode("utf-8", "replace").decode()


def _too_deep(value: Any, levels: int) -> bool:
    """Whether containers are nested in more than `levels`; without recursion, which is what it guards against."""
    layer = [value]
    for _level in range(levels):
        layer = [item for box in layer if isinstance(box, dict | list) for item in (box.values() if isinstance(box, dict) else box)]
        if not layer:
            return False
    return any(isinstance(item, dict | list) for item in layer)


def _can_be_written(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
