"""Rules of what comes with a document: titles, custom metadata, Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput

MAX_KEYS = 20
MAX_TITLE = 1024
_SCRIPTISH = re.compile(r"<\s*/?\s*(script|iframe|object|embed|style)\b|javascript:|\bon\w+\s*=", re.I)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(`[^`\n]+`)")
_ACTIVE = re.compile(r"<\s{0,9}(/?)\s{0,9}(script|iframe|object|embed|style|base|form)\b[^<>]{0,4000}>", re.I)
_TAG = re.compile(r"<[a-z][^<>]{0,4000}>", re.I)
_HANDLER = re.compile(r"(?<=[\s\"'/])on\w+\s{0,9}=\s{0,9}(?:\"[^\"]*\"|'[^']*'|[^\s>]+)", re.I)
_LINK = re.compile(r"(\]\(\s{0,9}|(?:href|src)\s{0,9}=\s{0,9}[\"']?\s{0,9})(?:javascript|vbscript|data:text/html)[^)\"'>\s]*", re.I)


def with_overrides(metadata: dict[str, Any] | None, overrides: dict[str, Any] | None) -> dict[str, Any] | None:
    """Metadata that carries these processing wishes; None keeps the ones it has."""
    if overrides is None:
        return metadata
    kept = {key: value for key, value in (metadata or {}).items() if key != "process_overrides"}
    if overrides:
        kept["process_overrides"] = overrides
    return kept or None


def clean_custom_metadata(values: Any) -> dict[str, Any]:
    """At most 20 keys of text, number, truth value or null (contract knowledge 4.10). Raises: InvalidInput with the key in `details`."""
    if not isinstance(values, dict):
        raise InvalidInput(_("Custom metadata must be a JSON object."), field="custom_metadata")
    if len(values) > MAX_KEYS:
        raise InvalidInput(_("At most %(max)d items of custom metadata.") % {"max": MAX_KEYS}, field="custom_metadata", max=MAX_KEYS)
    for key, value in values.items():
        if not key.strip() or len(key.encode("utf-8", "surrogatepass")) > 64:
            raise InvalidInput(_("A key of custom metadata must have 1 to 64 bytes."), field="custom_metadata", key=key[:64])
        if not (value is None or isinstance(value, (str, int, float, bool))):
            raise InvalidInput(
                _("A value of custom metadata must be text, a number, true, false or null."), field="custom_metadata", key=key
            )
        if isinstance(value, str) and len(value.encode("utf-8", "surrogatepass")) > 1000:
            raise InvalidInput(_("A text of custom metadata may have at most 1000 bytes."), field="custom_metadata", key=key)
    return values


def clean_title(title: str) -> str:
    """Raises: InvalidInput on control characters, script-like markup, or more than 1024 characters."""
    title = title.strip()
    if len(title) > MAX_TITLE:
        raise InvalidInput(_("The title may have at most %(max)d characters.") % {"max": MAX_TITLE}, field="title", max=MAX_TITLE)
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in title) or _SCRIPTISH.search(title):
        raise InvalidInput(_("The title contains characters or markup that are not allowed."), code="illegal_title", field="title")
    return title


def clean_markdown(text: str) -> str:
    """Markdown without elements and addresses that run code; what stands in code spans and fences is text and stays.

    Every step is linear in the text: it comes from anybody who may write.
    """
    return "".join(part if is_code else _clean_prose(part) for is_code, part in _by_fences(text))


def _by_fences(text: str) -> Iterator[tuple[bool, str]]:
    """(is it a fenced code block, lines) in order."""
    fence = ""
    kept: list[str] = []
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if not fence and found:
            yield False, "".join(kept)
            kept, fence = [line], found[1]
        elif fence and found and found[1].startswith(fence) and line.strip() == found[1]:
            yield True, "".join([*kept, line])
            kept, fence = [], ""
        else:
            kept.append(line)
    yield bool(fence), "".join(kept)


def _clean_prose(text: str) -> str:
    text = _without_active_elements(text)
    parts = _CODE_SPAN.split(text)
    for index in range(0, len(parts), 2):
        part = _TAG.sub(lambda tag: _HANDLER.sub("", tag[0]), parts[index])
        parts[index] = _LINK.sub(r"\1", part)
    return "".join(parts)


def _without_active_elements(text: str) -> str:
    """Scripts, frames and the like go with what is in them; inside a code span they stay."""
    spans = [span.span() for span in _CODE_SPAN.finditer(text)]
    out: list[str] = []
    at = span = 0
    unclosed: set[str] = set()
    for tag in _ACTIVE.finditer(text):
        while span < len(spans) and spans[span][1] <= tag.start():
            span += 1
        if tag.start() < at or (span < len(spans) and spans[span][0] <= tag.start()):
            continue
        out.append(text[at : tag.start()])
        at = tag.end()
        name = tag[2].lower()
        if not tag[1] and name not in unclosed:
            end = re.compile(rf"</\s{{0,9}}{name}\b[^>]{{0,4000}}>", re.I).search(text, at)
            if end is None:
                unclosed.add(name)
            else:
                at = end.end()
    return "".join([*out, text[at:]])
