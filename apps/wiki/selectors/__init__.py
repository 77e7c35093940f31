"""Reads of this context."""

from apps.wiki.enabling import check_wiki, has_wiki
from apps.wiki.exporting import wiki_export
from apps.wiki.linking import contents_of, shown_content
from apps.wiki.selectors.details import (
    Around,
    around,
    marked_text,
    page_backlinks,
    page_claims,
    page_links,
    page_sources,
    revision_get,
    revision_list,
)
from apps.wiki.selectors.folders import FolderRow, folder_get, folder_level, folder_row, folder_tree
from apps.wiki.selectors.issues import issue_get, issue_list, proposal_get, proposal_list
from apps.wiki.selectors.lists import MANUAL, PageFilters, clean_types, folder_trail, folders_by_path, pages_filtered, pages_search
from apps.wiki.selectors.overview import (
    BrokenLink,
    Lint,
    WikiIndex,
    WikiStats,
    broken_links,
    orphans,
    wiki_index,
    wiki_lint,
    wiki_stats,
)
from apps.wiki.selectors.pages import page_at, page_get, page_list, page_of_document, pages_get, wiki_base_get
from apps.wiki.selectors.runs import ImportState, import_state

__all__ = [
    "MANUAL",
    "Around",
    "BrokenLink",
    "FolderRow",
    "ImportState",
    "Lint",
    "PageFilters",
    "WikiIndex",
    "WikiStats",
    "around",
    "broken_links",
    "check_wiki",
    "clean_types",
    "contents_of",
    "folder_get",
    "folder_level",
    "folder_row",
    "folder_trail",
    "folder_tree",
    "folders_by_path",
    "has_wiki",
    "import_state",
    "issue_get",
    "issue_list",
    "marked_text",
    "orphans",
    "page_at",
    "page_backlinks",
    "page_claims",
    "page_get",
    "page_links",
    "page_list",
    "page_of_document",
    "page_sources",
    "pages_filtered",
    "pages_get",
    "pages_search",
    "proposal_get",
    "proposal_list",
    "revision_get",
    "revision_list",
    "shown_content",
    "wiki_base_get",
    "wiki_export",
    "wiki_index",
    "wiki_lint",
    "wiki_stats",
]
