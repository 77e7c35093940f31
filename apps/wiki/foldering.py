"""Rows of folders, written in the caller's transaction."""

from __future__ import annotations

import re

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.common.text import clean_line
from apps.wiki.models import WikiFolder

MAX_NAME, MAX_DEPTH = 128, 32
_SEPARATORS = re.compile(r"[/\\|\uff0f\uff3c\uff5c\u2215\u29f8]")


def clean_folder_name(name: str) -> str:
    """Raises: InvalidInput at `name` for a blank one, one with a separator of paths, or one that is too long."""
    line = clean_line(name)
    if not line.strip(". "):
        raise InvalidInput(_("Give the folder a name."), field="name")
    if _SEPARATORS.search(line):
        raise InvalidInput(_("The name of a folder cannot hold / or |."), field="name")
    if len(line) > MAX_NAME:
        raise InvalidInput(_("The name of a folder may have at most %(max)d characters.") % {"max": MAX_NAME}, field="name", max=MAX_NAME)
    return line


def below(kb_id: int, path: str) -> list[WikiFolder]:
    """Every folder inside the one of this path ("": all of a wiki), outermost first."""
    rows = WikiFolder.objects.filter(kb_id=kb_id)
    found = rows.filter(path__startswith=f"{path}/") if path else rows
    # Some databases take no notice of case in a prefix.
    return [row for row in found.order_by("depth", "pk") if not path or row.path.startswith(f"{path}/")]


def folder_made(space_id: int, kb_id: int, path: str, *, made_by_run: bool = False) -> WikiFolder | None:
    """The folder of this path with those above it, made where they are not there; None for an empty path.

    Raises: InvalidInput for a name that cannot be, or a path that is too deep.
    """
    parent: WikiFolder | None = None
    parts = [part for part in path.split("/") if part.strip()]
    if len(parts) > MAX_DEPTH:
        raise InvalidInput(_("Folders may be at most %(max)d deep.") % {"max": MAX_DEPTH}, field="folder", max=MAX_DEPTH)
    for part in parts:
        name = clean_folder_name(part)
        found = WikiFolder.objects.filter(kb_id=kb_id, parent=parent, name=name).first()
        parent = found or WikiFolder.objects.create(
            space_id=space_id,
            kb_id=kb_id,
            parent=parent,
            name=name,
            path=f"{parent.path}/{name}" if parent else name,
            depth=parent.depth + 1 if parent else 1,
            made_by_run=made_by_run,
        )
    return parent
