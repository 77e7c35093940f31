"""Rules that several services share."""

from __future__ import annotations

import hashlib
import json

from apps.sources.models import DataSource


def selection_of(source: DataSource) -> str:
    """A hash of what is selected at the source: a cursor that was made for something else does not say what is new."""
    chosen = {"type": source.type, "settings": source.settings, "resources": sorted(source.resource_ids)}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True, default=str).encode()).hexdigest()
