"""Reads of this context."""

from apps.wiki.selectors.bases import check_wiki, has_wiki
from apps.wiki.selectors.pages import page_at, page_get, page_list, page_of_document, pages_get

__all__ = [
    "check_wiki",
    "has_wiki",
    "page_at",
    "page_get",
    "page_list",
    "page_of_document",
    "pages_get",
]
