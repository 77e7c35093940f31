"""What intake asks of this context: is this file one we can read, judged by its content first."""

from __future__ import annotations

from pathlib import Path

from apps.ingestion.plugins.sniff import sniff
from apps.knowledge.intake import Inspection, register_inspector, register_stall_states
from apps.ingestion.selectors import stall_states


def inspect(path: Path, file_name: str) -> Inspection:
    """Media type and extension by content; `reason` says why it cannot be read at all."""
    found = sniff(path, file_name)
    return Inspection(media_type=found.media_type, extension=found.extension, reason=found.reason, message=found.message)


register_inspector(inspect)
register_stall_states(stall_states)
