"""Addresses of pages, in one place."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import NoReverseMatch, reverse

from apps.common.actor import Actor
from apps.knowledge.models import Document, KnowledgeBase


def space_url(space_id: int | None) -> str:
    return reverse("home", args=[space_id])


def base_url(base: KnowledgeBase, **query: Any) -> str:
    """The first tab of a base, that of its documents or its question pairs, with these filters."""
    tab = "base-faq" if base.type == KnowledgeBase.Type.FAQ else "base-documents"
    address = reverse(tab, args=[base.space_id, base.uid])
    return f"{address}?{urlencode(query)}" if query else address


def document_url(document: Document) -> str:
    """The page that shows a document, opened at its beginning; a question pair is shown in the list of its base."""
    if document.type == Document.Type.PAIR:
        return base_url(document.kb, entry=document.uid)
    return reader_url(document.space_id, document.uid) or base_url(document.kb, q=document.title[:200])


def reader_url(space_id: int, document_id: uuid.UUID | str) -> str:
    """The reader of a document id; empty where no reader is installed."""
    return optional_url("document-reader", space_id, document_id)


def test_url(base: KnowledgeBase) -> str:
    """The retrieval test of a base; empty where it is not installed."""
    return optional_url("base-test", base.space_id, base.uid)


def optional_url(name: str, *args: Any) -> str:
    """The address of a route, or "" when no such route exists."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


def upload_url(base: KnowledgeBase) -> str:
    """Where files of a base are sent. The space travels in a header: the last space a person opened may be another by now."""
    return f"/api/v1/knowledge-bases/{base.uid}/knowledge/file"


def download_url(actor: Actor, document: Document) -> str:
    """The original of a document. The route names the space itself, because a link can carry no header."""
    family = "/v1/knowledge" if actor.space_kind == "personal" else f"/v1/tenants/{document.space_id}/knowledge"
    return f"{family}/documents/{document.uid}/download"


def file_url(actor: Actor, space_id: int, kb_uid: uuid.UUID, locator: str) -> str:
    """Where a page reads the bytes of a picture or file a base refers to; the route asks who is asking."""
    family = "/v1/knowledge" if actor.space_kind == "personal" else f"/v1/tenants/{space_id}/knowledge"
    return f"{family}/bases/{kb_uid}/files?file_path={quote(locator, safe='')}"


def archive_url(base: KnowledgeBase) -> str:
    return f"/api/v1/knowledge-bases/{base.uid}/knowledge/batch-download"


def preview_url(actor: Actor, document: Document) -> str:
    """The original of a document for showing in place; answers ranges, and is sandboxed. Named like `download_url`."""
    return f"{download_url(actor, document).removesuffix('download')}preview"
