"""What intake asks of this context: can this file be read, judged by its content first, and is work on a document stuck."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.ingestion.plugins.protocol import BUILTIN, ENGINES
from apps.ingestion.plugins.sniff import BY_EXTENSION, EXTENSIONS, sniff
from apps.ingestion.selectors import stall_verdicts
from apps.knowledge.intake import Inspection, StallState, register_engines, register_inspector, register_stall_probe, unsupported
from apps.knowledge.models import Document

SMALL_PDF = 100_000
NO_PAGES = _("The PDF is empty: it has no pages. Export it again from the program that made it and upload that.")
_NO_PAGES = re.compile(rb"/Count\s+0\b")
_PAGE = re.compile(rb"/Type\s*/Page\b")


def inspect(path: Path, file_name: str) -> Inspection:
    """Media type and extension by content; `reason` says why it cannot be read at all."""
    found = sniff(path, file_name)
    if not found.family:
        return Inspection(found.media_type, found.extension, "unsupported_type", unsupported(found.extension))
    if found.family == "pdf" and _has_no_pages(path):
        return Inspection(found.media_type, found.extension, "empty", NO_PAGES)
    return Inspection(found.media_type, found.extension, mismatch=found.mismatch)


def _has_no_pages(path: Path) -> bool:
    """Whether a small PDF says in plain text that it has no pages; the parser finds out about all others."""
    if path.stat().st_size > SMALL_PDF:
        return False
    data = path.read_bytes()
    return bool(_NO_PAGES.search(data)) and not _PAGE.search(data) and b"/ObjStm" not in data


def probe(actor: Actor, documents: Sequence[Document]) -> Mapping[int, StallState]:
    return stall_verdicts(actor=actor, documents=documents)


def engines() -> dict[str, list[str]]:
    """{engine: extensions it takes}."""
    takes = {name: [ext for ext, kind in BY_EXTENSION.items() if kind.family in families] for name, families in ENGINES.items()}
    return {BUILTIN: list(EXTENSIONS), **takes}


register_inspector(inspect, EXTENSIONS)
register_engines(engines())
register_stall_probe(probe)
