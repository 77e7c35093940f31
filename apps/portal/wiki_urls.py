"""Pages of the wiki of a base."""

from __future__ import annotations

from django.urls import path

from apps.portal.views import wiki, wiki_care, wiki_writing

_BASE = "s/<int:space_id>/bases/<uuid:wiki_kb_id>/wiki"
_PAGE = _BASE + "/pages/<uuid:wiki_page_id>"

urlpatterns = [
    path(_BASE, wiki.WikiView.as_view(), name="base-wiki"),
    path(_BASE + "/level", wiki.WikiLevelView.as_view(), name="wiki-level"),
    path(_BASE + "/new", wiki_writing.WikiNewView.as_view(), name="wiki-new"),
    path(_BASE + "/move", wiki_writing.WikiMoveView.as_view(), name="wiki-move"),
    path(_BASE + "/folders/new", wiki_care.WikiFolderNewView.as_view(), name="wiki-folder-new"),
    path(_BASE + "/folders/<uuid:wiki_folder_id>", wiki_care.WikiFolderEditView.as_view(), name="wiki-folder-edit"),
    path(_BASE + "/folders/<uuid:wiki_folder_id>/delete", wiki_care.WikiFolderDeleteView.as_view(), name="wiki-folder-delete"),
    path(_BASE + "/import", wiki_care.WikiImportView.as_view(), name="wiki-import-page"),
    path(_BASE + "/links", wiki_care.WikiLinksView.as_view(), name="wiki-links"),
    path(_BASE + "/proposals", wiki_care.WikiProposalsView.as_view(), name="wiki-proposals-page"),
    path(_BASE + "/proposals/<uuid:wiki_proposal_id>", wiki_care.WikiProposalView.as_view(), name="wiki-proposal-page"),
    path(_BASE + "/issues/<uuid:wiki_issue_id>", wiki_care.WikiIssueView.as_view(), name="wiki-issue-page"),
    path(_PAGE, wiki.WikiReadView.as_view(), name="wiki-page"),
    path(_PAGE + "/edit", wiki_writing.WikiEditView.as_view(), name="wiki-edit"),
    path(_PAGE + "/history", wiki.WikiHistoryView.as_view(), name="wiki-history"),
    path(_PAGE + "/history/<int:version>", wiki.WikiVersionView.as_view(), name="wiki-version"),
    path(_PAGE + "/rename", wiki_writing.WikiRenameView.as_view(), name="wiki-rename"),
    path(_PAGE + "/delete", wiki_writing.WikiDeleteView.as_view(), name="wiki-delete"),
]
