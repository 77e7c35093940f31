"""Pages of knowledge bases and documents: `/s/<space>/...`."""

from __future__ import annotations

from django.urls import path

from apps.portal.views import bases, bulk, documents, folders, home, images, tags, uploads, vectors

_SPACE = "s/<int:space_id>/"
_BASE = _SPACE + "bases/<uuid:kb_id>/"
_DOCUMENT = _SPACE + "documents/<uuid:document_id>/"

urlpatterns = [
    path(_SPACE, home.BaseListView.as_view(), name="home"),
    path(_SPACE + "bases/new", home.BaseCreateView.as_view(), name="base-create"),
    path(_SPACE + "bases/samples", home.SamplesView.as_view(), name="base-samples"),
    path(_BASE, documents.DocumentsView.as_view(), name="base-documents"),
    path(_BASE + "live", documents.DocumentsLiveView.as_view(), name="documents-live"),
    path(_BASE + "images", images.ImagesView.as_view(), name="base-images"),
    path(_BASE + "menu", home.BaseMenuView.as_view(), name="base-menu"),
    path(_BASE + "pin", home.BasePinView.as_view(), name="base-pin"),
    path(_BASE + "delete", home.BaseDeleteView.as_view(), name="base-delete"),
    path(_BASE + "settings", bases.BaseSettingsView.as_view(), name="base-settings"),
    path(_BASE + "settings/preview", bases.ChunkPreviewView.as_view(), name="base-chunk-preview"),
    path(_BASE + "vectors", vectors.BaseVectorsView.as_view(), name="base-vectors"),
    path(_BASE + "reindex", vectors.ReindexDialogView.as_view(), name="base-reindex"),
    path(_BASE + "reindex/stop", vectors.ReindexStopView.as_view(), name="base-reindex-stop"),
    path(_BASE + "uploads/states", uploads.UploadStatesView.as_view(), name="upload-states"),
    path(_BASE + "import", uploads.UrlImportView.as_view(), name="document-import"),
    path(_BASE + "documents/new", uploads.DocumentNewView.as_view(), name="document-new"),
    path(_BASE + "folder", folders.FolderRenameView.as_view(), name="folder-rename"),
    path(_BASE + "tags", tags.TagsView.as_view(), name="base-tags"),
    path(_BASE + "bulk/delete", bulk.BulkDeleteView.as_view(), name="bulk-delete"),
    path(_BASE + "bulk/reparse", bulk.BulkReparseView.as_view(), name="bulk-reparse"),
    path(_BASE + "bulk/folder", bulk.BulkFolderView.as_view(), name="bulk-folder"),
    path(_BASE + "bulk/tags", bulk.BulkTagsView.as_view(), name="bulk-tags"),
    path(_DOCUMENT + "menu", documents.DocumentMenuView.as_view(), name="document-menu"),
    path(_DOCUMENT + "reparse", documents.DocumentReparseView.as_view(), name="document-reparse"),
    path(_DOCUMENT + "password", documents.DocumentPasswordView.as_view(), name="document-password"),
    path(_DOCUMENT + "stop", documents.DocumentStopView.as_view(), name="document-stop"),
    path(_DOCUMENT + "rename", documents.DocumentRenameView.as_view(), name="document-rename"),
    path(_DOCUMENT + "delete", documents.DocumentDeleteView.as_view(), name="document-delete"),
    path(_DOCUMENT + "edit", uploads.DocumentEditView.as_view(), name="document-edit"),
]
