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
from apps.knowledge.services.documents import (
    Deleted,
    Refiled,
    document_cancel,
    document_reparse,
    document_update,
    documents_delete,
    documents_into_folder,
    documents_reparse,
    folder_rename,
    tags_replace,
)
from apps.knowledge.services.fetching import document_fetch_source
from apps.knowledge.services.images import image_info_update
from apps.knowledge.services.intake import Arrival, Stored, document_import_url, document_rewrite, document_upload, document_write
from apps.knowledge.services.moves import documents_move
from apps.knowledge.services.tags import tag_create, tag_delete, tag_update

__all__ = [
    "Arrival",
    "Deleted",
    "Refiled",
    "Stored",
    "base_clear",
    "base_create",
    "base_delete",
    "base_pin_toggle",
    "base_settings_update",
    "base_update",
    "base_visit",
    "chunk_revert",
    "chunk_update",
    "chunks_delete",
    "document_cancel",
    "document_fetch_source",
    "document_import_url",
    "document_indexed",
    "document_reparse",
    "document_rewrite",
    "document_update",
    "document_upload",
    "document_write",
    "documents_delete",
    "documents_into_folder",
    "documents_move",
    "documents_reparse",
    "folder_rename",
    "image_info_update",
    "tag_create",
    "tag_delete",
    "tag_update",
    "tags_replace",
]
