"""What intake asks of this context: can this file be read, judged by its content first, and is work on a document stuck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from apps.common.actor import Actor
from apps.ingestion.plugins.sniff import EXTENSIONS, sniff
from apps.ingestion.selectors import stall_verdicts
from apps.knowledge.intake import Inspection, StallState, register_inspector, register_stall_probe, unsupported
from apps.knowledge.models import Document


def inspect(path: Path, file_name: str) -> Inspection:
    """Media type and extension by content; `reason` says why it cannot be read at all."""
    found = sniff(path, file_name)
    if not found.family:
        return Inspection(found.media_type, found.extension, "unsupported_type", unsupported(found.extension))
    return Inspection(found.media_type, found.extension, mismatch=found.mismatch)


def probe(actor: Actor, documents: Sequence[Document]) -> Mapping[int, StallState]:
    return stall_verdicts(actor=actor, documents=documents)


register_inspector(inspect, EXTENSIONS)
register_stall_probe(probe)
