from apps.sources.services.review import Decided, held_delete, held_keep
from apps.sources.services.sources import (
    credentials_check,
    credentials_clear,
    credentials_set,
    resources_preview,
    source_ancestors,
    source_check,
    source_create,
    source_delete,
    source_pause,
    source_resources,
    source_resume,
    source_update,
)
from apps.sources.services.syncing import due_start, log_trim, sync_start, sync_stop

__all__ = [
    "Decided",
    "credentials_check",
    "credentials_clear",
    "credentials_set",
    "due_start",
    "held_delete",
    "held_keep",
    "log_trim",
    "resources_preview",
    "source_ancestors",
    "source_check",
    "source_create",
    "source_delete",
    "source_pause",
    "source_resources",
    "source_resume",
    "source_update",
    "sync_start",
    "sync_stop",
]
