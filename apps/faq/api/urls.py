"""Routes of this context: `upstream` under /api/v1/, `proxied` under both knowledge families."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.faq.api import views


def _of_base(prefix: str) -> list[URLPattern]:
    return [
        path(f"{prefix}/entries", views.EntryListView.as_view(), name="faq-entries"),
        path(f"{prefix}/entries/export", views.EntryExportView.as_view(), name="faq-export"),
        path(f"{prefix}/entries/fields", views.EntryFieldsView.as_view(), name="faq-fields"),
        path(f"{prefix}/entries/tags", views.EntryTagsView.as_view(), name="faq-tags"),
        path(f"{prefix}/entries/<str:entry_id>", views.EntryView.as_view(), name="faq-entry"),
        path(f"{prefix}/entries/<str:entry_id>/similar-questions", views.EntrySimilarView.as_view(), name="faq-similar"),
        path(f"{prefix}/entry", views.EntryCreateView.as_view(), name="faq-entry-create"),
        path(f"{prefix}/search", views.FaqSearchView.as_view(), name="faq-search"),
        path(f"{prefix}/import/file", views.ImportFileView.as_view(), name="faq-import-file"),
        path(f"{prefix}/import/preview", views.ImportPreviewView.as_view(), name="faq-import-preview"),
        path(f"{prefix}/import/last-result/display", views.ImportDisplayView.as_view(), name="faq-import-display"),
    ]


_TASKS: list[URLPattern] = [
    path("faq/import/progress/<str:faq_task_id>", views.ImportProgressView.as_view(), name="faq-import-progress"),
    path("faq/import/failures/<str:faq_task_id>", views.ImportFailuresView.as_view(), name="faq-import-failures"),
    path("faq/import/failures/<str:faq_task_id>/csv", views.ImportFailuresFileView.as_view(), name="faq-import-failures-file"),
    path("faq/import/cancel/<str:faq_task_id>", views.ImportCancelView.as_view(), name="faq-import-cancel"),
]

upstream: list[URLPattern] = [*_of_base("knowledge-bases/<str:faq_kb_id>/faq"), *_TASKS]
proxied: list[URLPattern] = [*_of_base("bases/<str:faq_kb_id>/faq"), *_TASKS]
