from apps.faq.drafts import MAX_TEXT, Draft, IncomingRow, clean_text, draft_of
from apps.faq.files import EntryFile, cell_of, entries_read, field_of, texts_of
from apps.faq.services.batches import entries_delete, entries_tag, entries_update, field_changes
from apps.faq.services.entries import entries_reindex, entry_create, entry_extend, entry_update, tag_named
from apps.faq.services.imports import import_cancel, import_show, import_start, incoming_again

__all__ = [
    "MAX_TEXT",
    "Draft",
    "EntryFile",
    "cell_of",
    "clean_text",
    "draft_of",
    "entries_read",
    "field_of",
    "texts_of",
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
    "incoming_again",
    "tag_named",
]
