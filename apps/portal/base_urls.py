"""Pages of knowledge bases and documents: `/s/<space>/...`."""

from __future__ import annotations

from django.urls import path

from apps.portal.views import activity, bases, bulk, copies, documents, folders, home, moving, tags, trash, uploads, vectors, versions

_SPACE = "s/<int:space_id>/"
_BASE = _SPACE + "bases/<uuid:kb_id>/"
_DOCUMENT = _SPACE + "documents/<uuid:document_id>/"

urlpatterns = [
    path(_SPACE, home.BaseListView.as_view(), name="home"),
    path(_SPACE + "bases/new", home.BaseCreateView.as_view(), name="base-create"),
    path(_SPACE + "bases/samples", home.SamplesView.as_view(), name="base-samples"),
    path(_SPACE + "copies", copies.CopiesView.as_view(), name="copies"),
    path(_SPACE + "copies/<str:task_id>/stop", copies.CopyStopView.as_view(), name="copy-stop"),
    path(_SPACE + "trash", trash.TrashView.as_view(), name="trash"),
    path(_SPACE + "trash/<uuid:kb_id>/restore", trash.TrashBaseRestoreView.as_view(), name="trash-base-restore"),
    path(_SPACE + "trash/<uuid:kb_id>/purge", trash.TrashBasePurgeView.as_view(), name="trash-base-purge"),
    path(_BASE + "trash", trash.BaseTrashView.as_view(), name="base-trash"),
    path(_BASE + "trash/restore", trash.BaseTrashRestoreView.as_view(), name="base-trash-restore"),
    path(_BASE + "trash/purge", trash.BaseTrashPurgeView.as_view(), name="base-trash-purge"),
    path(_BASE + "copy", copies.BaseCopyView.as_view(), name="base-copy"),
    path(_BASE + "clear", copies.BaseClearView.as_view(), name="base-clear"),
    path(_BASE, documents.DocumentsView.as_view(), name="base-documents"),
    path(_BASE + "live", documents.DocumentsLiveView.as_view(), name="documents-live"),
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
    path(_BASE + "folder/new", folders.FolderNewView.as_view(), name="folder-new"),
    path(_BASE + "folder/delete", folders.FolderDeleteView.as_view(), name="folder-delete"),
    path(_BASE + "folder/level", folders.FolderLevelView.as_view(), name="folder-level"),
    path(_BASE + "tags", tags.TagsView.as_view(), name="base-tags"),
    path(_BASE + "activity", activity.BaseActivityView.as_view(), name="base-activity"),
    path(_BASE + "activity/<int:row_id>", activity.ActivityDetailView.as_view(), name="base-activity-detail"),
    path(_BASE + "bulk/delete", bulk.BulkDeleteView.as_view(), name="bulk-delete"),
    path(_BASE + "bulk/reparse", bulk.BulkReparseView.as_view(), name="bulk-reparse"),
    path(_BASE + "bulk/folder", bulk.BulkFolderView.as_view(), name="bulk-folder"),
    path(_BASE + "bulk/tags", bulk.BulkTagsView.as_view(), name="bulk-tags"),
    path(_BASE + "bulk/move", moving.BulkMoveView.as_view(), name="bulk-move"),
    path(_BASE + "bulk/move/<str:task_id>", moving.MoveProgressView.as_view(), name="bulk-move-progress"),
    path(_BASE + "bulk/zip", moving.BulkZipView.as_view(), name="bulk-zip"),
    path(_DOCUMENT + "menu", documents.DocumentMenuView.as_view(), name="document-menu"),
    path(_DOCUMENT + "reparse", documents.DocumentReparseView.as_view(), name="document-reparse"),
    path(_DOCUMENT + "password", documents.DocumentPasswordView.as_view(), name="document-password"),
    path(_DOCUMENT + "stop", documents.DocumentStopView.as_view(), name="document-stop"),
    path(_DOCUMENT + "rename", documents.DocumentRenameView.as_view(), name="document-rename"),
    path(_DOCUMENT + "delete", documents.DocumentDeleteView.as_view(), name="document-delete"),
    path(_DOCUMENT + "versions", versions.DocumentVersionsView.as_view(), name="document-versions"),
    path(_DOCUMENT + "versions/<int:number>/diff", versions.VersionDiffView.as_view(), name="document-version-diff"),
    path(_DOCUMENT + "versions/<int:number>/restore", versions.VersionRestoreView.as_view(), name="document-version-restore"),
    path(_DOCUMENT + "edit", uploads.DocumentEditView.as_view(), name="document-edit"),
]
