"""Positions of passages in words: "Page 12", "Sheet1 A3:D9", "Slide 4", "Lines 21–30"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

Place = Mapping[str, Any]


def place_text(positions: Sequence[Place] | None) -> str:
    """Where a passage stands in its original, short enough for a chip; "" when the format has no places."""
    found = [position for position in positions or () if position]
    if not found:
        return ""
    first, last = found[0], found[-1]
    if "page" in first:
        return _range(_("Page %(from)s"), _("Pages %(from)s–%(to)s"), first["page"], last.get("page", first["page"]))
    if "slide" in first:
        return _range(_("Slide %(from)s"), _("Slides %(from)s–%(to)s"), first["slide"], last.get("slide", first["slide"]))
    if "sheet" in first:
        return _sheets(found)
    if "line" in first:
        lines = _range(
            _("Line %(from)s"), _("Lines %(from)s–%(to)s"), first["line"], last.get("line_end") or last.get("line") or first["line"]
        )
        return f"{first['part']} · {lines}" if first.get("part") else lines
    return str(first.get("part", ""))


def _range(one: str, many: str, start: Any, end: Any) -> str:
    return one % {"from": start} if start == end else many % {"from": start, "to": end}


def _sheets(positions: Sequence[Place]) -> str:
    """ "Sheet “Prices” A3:D9", and how many further places follow."""
    cells = [str(position["cells"]) for position in positions if position.get("cells")]
    text = _("Sheet %(name)s") % {"name": positions[0]["sheet"]}
    if cells:
        text = f"{text} {cells[0]}"
    return f"{text} +{len(cells) - 1}" if len(cells) > 1 else text
