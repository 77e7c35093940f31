"""Pages of reading and searching: `/s/<space>/documents/<id>/...`, the retrieval test of a base, search over the space."""

from __future__ import annotations

from django.urls import path

from apps.portal.views import passages, reader, retrieval_test, search, writing

_SPACE = "s/<int:space_id>/"
_DOCUMENT = _SPACE + "documents/<uuid:document_id>/"
_PASSAGE = _DOCUMENT + "passages/<uuid:chunk_id>/"

urlpatterns = [
    path(_SPACE + "search", search.SearchView.as_view(), name="quick-search"),
    path(_SPACE + "bases/<uuid:kb_id>/test", retrieval_test.RetrievalTestView.as_view(), name="base-test"),
    path(_SPACE + "bases/<uuid:kb_id>/test/targets", retrieval_test.TargetsView.as_view(), name="base-test-targets"),
    path(_DOCUMENT, reader.ReaderView.as_view(), name="document-reader"),
    path(_DOCUMENT + "live", reader.ReaderLiveView.as_view(), name="document-live"),
    path(_DOCUMENT + "pipeline", reader.PipelineView.as_view(), name="document-pipeline"),
    path(_DOCUMENT + "details", reader.DetailsView.as_view(), name="document-details"),
    path(_DOCUMENT + "summary", writing.SummaryView.as_view(), name="document-summary"),
    path(_DOCUMENT + "summary/edit", writing.SummaryEditView.as_view(), name="document-summary-edit"),
    path(_DOCUMENT + "metadata", writing.MetadataView.as_view(), name="document-metadata"),
    path(_PASSAGE + "questions", writing.QuestionsView.as_view(), name="passage-questions"),
    path(_PASSAGE, passages.PassageView.as_view(), name="passage"),
    path(_PASSAGE + "edit", passages.PassageEditView.as_view(), name="passage-edit"),
    path(_PASSAGE + "state", passages.PassageStateView.as_view(), name="passage-state"),
    path(_PASSAGE + "history", passages.PassageHistoryView.as_view(), name="passage-history"),
    path(_PASSAGE + "retry", passages.PassageRetryView.as_view(), name="passage-retry"),
    path(_PASSAGE + "revert", passages.PassageRevertView.as_view(), name="passage-revert"),
]
