"""Writes of this context."""

from apps.wiki.archives import MAX_ARCHIVE, archive_read
from apps.wiki.drafts import ClaimDraft, PageChange, PageDraft
from apps.wiki.services.folders import folder_create, folder_delete, folder_update
from apps.wiki.services.imports import wiki_import_start
from apps.wiki.services.issues import issue_raise, issue_status_set
from apps.wiki.services.pages import (
    PageWritten,
    page_change,
    page_create,
    page_delete,
    page_move,
    page_rename,
    page_revert,
    page_write,
    pages_delete,
    pages_move,
)
from apps.wiki.services.proposals import page_propose, proposal_accept, proposal_reject
from apps.wiki.services.repair import links_rebuild, links_repair, wiki_fix

__all__ = [
    "MAX_ARCHIVE",
    "ClaimDraft",
    "PageChange",
    "PageDraft",
    "PageWritten",
    "archive_read",
    "folder_create",
    "folder_delete",
    "folder_update",
    "issue_raise",
    "issue_status_set",
    "links_rebuild",
    "links_repair",
    "page_change",
    "page_create",
    "page_delete",
    "page_move",
    "page_propose",
    "page_rename",
    "page_revert",
    "page_write",
    "pages_delete",
    "pages_move",
    "proposal_accept",
    "proposal_reject",
    "wiki_fix",
    "wiki_import_start",
]
