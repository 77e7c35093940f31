from apps.faq.services.batches import entries_delete, entries_tag, entries_update, field_changes
from apps.faq.services.entries import entries_reindex, entry_create, entry_extend, entry_update, tag_named
from apps.faq.services.imports import IncomingRow, import_cancel, import_show, import_start

__all__ = [
    "IncomingRow",
    "entries_delete",
    "entries_reindex",
    "entries_tag",
    "entries_update",
    "entry_create",
    "entry_extend",
    "entry_update",
    "field_changes",
    "import_cancel",
    "import_show",
    "import_start",
    "tag_named",
]
