"""REST addresses of the wiki (contract content 5): the singular prefix upstream, `bases/` in both proxied families."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.wiki.api import file_views as f
from apps.wiki.api import overview_views as o
from apps.wiki.api import views as v


def _of_base(prefix: str) -> list[URLPattern]:
    return [
        path(f"{prefix}/pages", v.WikiPagesView.as_view(), name="wiki-pages"),
        path(f"{prefix}/pages/<path:page_slug>", v.WikiPageView.as_view(), name="wiki-page"),
        path(f"{prefix}/move-page", v.WikiMovePageView.as_view(), name="wiki-move-page"),
        path(f"{prefix}/rename-page", v.WikiRenamePageView.as_view(), name="wiki-rename-page"),
        path(f"{prefix}/revisions/<path:page_slug>", v.WikiRevisionsView.as_view(), name="wiki-revisions"),
        path(f"{prefix}/revert", v.WikiRevertView.as_view(), name="wiki-revert"),
        path(f"{prefix}/folders", v.WikiFoldersView.as_view(), name="wiki-folders"),
        path(f"{prefix}/folders/<str:wiki_folder_id>", v.WikiFolderView.as_view(), name="wiki-folder"),
        path(f"{prefix}/index", o.WikiIndexView.as_view(), name="wiki-index"),
        path(f"{prefix}/stats", o.WikiStatsView.as_view(), name="wiki-stats"),
        path(f"{prefix}/search", o.WikiSearchView.as_view(), name="wiki-search"),
        path(f"{prefix}/lint", o.WikiLintView.as_view(), name="wiki-lint"),
        path(f"{prefix}/rebuild-links", o.WikiRebuildLinksView.as_view(), name="wiki-rebuild-links"),
        path(f"{prefix}/broken-links", o.WikiBrokenLinksView.as_view(), name="wiki-broken-links"),
        path(f"{prefix}/export", f.WikiExportView.as_view(), name="wiki-export"),
        path(f"{prefix}/import", f.WikiImportView.as_view(), name="wiki-import"),
        path(f"{prefix}/issues", o.WikiIssuesView.as_view(), name="wiki-issues"),
        path(f"{prefix}/issues/<str:wiki_issue_id>/status", o.WikiIssueStatusView.as_view(), name="wiki-issue-status"),
        path(f"{prefix}/proposals", o.WikiProposalsView.as_view(), name="wiki-proposals"),
        path(f"{prefix}/proposals/<str:wiki_proposal_id>", o.WikiProposalView.as_view(), name="wiki-proposal"),
    ]


# Never proxied (contract content 2).
_FIX: list[URLPattern] = [path("knowledgebase/<str:wiki_kb_id>/wiki/auto-fix", o.WikiAutoFixView.as_view(), name="wiki-auto-fix")]

upstream: list[URLPattern] = [*_of_base("knowledgebase/<str:wiki_kb_id>/wiki"), *_FIX]
proxied: list[URLPattern] = _of_base("bases/<str:wiki_kb_id>/wiki")
