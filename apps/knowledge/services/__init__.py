from apps.knowledge.services.asking import has_chat_model
from apps.knowledge.services.bases import (
    base_clear,
    base_create,
    base_delete,
    base_pin_toggle,
    base_settings_update,
    base_update,
    base_visit,
)
from apps.knowledge.services.chunks import chunk_revert, chunk_update, chunks_delete, document_indexed
from apps.knowledge.services.copies import base_copy, base_duplicate, copy_cancel, copy_name
from apps.knowledge.services.documents import (
    Deleted,
    Refiled,
    document_cancel,
    document_reparse,
    document_update,
    documents_delete,
    documents_into_folder,
    documents_reparse,
    folder_drop,
    folder_rename,
    tags_replace,
)
from apps.knowledge.services.fetching import document_fetch_source
from apps.knowledge.services.following import document_follow
from apps.knowledge.services.images import image_info_update
from apps.knowledge.services.intake import Arrival, Stored, document_import_url, document_rewrite, document_upload, document_write
from apps.knowledge.services.moves import documents_move
from apps.knowledge.services.questions import question_delete, question_put, questions_draft, questions_of, questions_regenerate
from apps.knowledge.services.summaries import summary_draft, summary_regenerate, summary_state_set, summary_store
from apps.knowledge.services.tags import Detached, tag_create, tag_delete, tag_detach_delete, tag_update
from apps.knowledge.services.trash import Restored, base_purge, base_restore, documents_purge, documents_restore, trash_expire
from apps.knowledge.services.versions import document_receive, document_version_add, document_version_restore

__all__ = [
    "Arrival",
    "Deleted",
    "Detached",
    "Refiled",
    "Restored",
    "Stored",
    "base_clear",
    "base_copy",
    "base_create",
    "base_delete",
    "base_duplicate",
    "base_pin_toggle",
    "base_purge",
    "base_restore",
    "base_settings_update",
    "base_update",
    "base_visit",
    "chunk_revert",
    "chunk_update",
    "chunks_delete",
    "copy_cancel",
    "copy_name",
    "document_cancel",
    "document_fetch_source",
    "document_follow",
    "document_import_url",
    "document_indexed",
    "document_receive",
    "document_reparse",
    "document_rewrite",
    "document_update",
    "document_upload",
    "document_version_add",
    "document_version_restore",
    "document_write",
    "documents_delete",
    "documents_into_folder",
    "documents_move",
    "documents_purge",
    "documents_reparse",
    "folder_drop",
    "documents_restore",
    "folder_rename",
    "has_chat_model",
    "question_delete",
    "question_put",
    "questions_draft",
    "questions_of",
    "questions_regenerate",
    "summary_draft",
    "summary_regenerate",
    "summary_state_set",
    "summary_store",
    "image_info_update",
    "tag_create",
    "tag_delete",
    "tag_detach_delete",
    "tag_update",
    "tags_replace",
    "trash_expire",
]
