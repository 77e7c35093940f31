"""Writes of this context."""

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

__all__ = [
    "PageWritten",
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
]
