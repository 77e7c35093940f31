"""What stands above every page of a document: title, state, tags, way back, what can be done with it."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.policy import allowed
from apps.knowledge import reasons
from apps.knowledge.models import Document, ParseStatus
from apps.portal import links
from apps.portal.document_rows import TEXT_TYPES, Row, left_out_text, rows_of, type_of


def reader_frame(actor: Actor, document: Document, tab: str) -> dict[str, Any]:
    """Context of `portal/_reader_head.html`; `tab` is content, pipeline or details."""
    row = rows_of(actor, [document], show_folder=False)[0]
    reason = row.reason or (reasons.reason_for(document) if document.reason else None)
    status = ParseStatus(document.parse_status)
    return {
        "document": document,
        "row": row,
        "reason": reason,
        "reason_kind": (reason.tone or "warning") if reason and status == ParseStatus.FAILED else "warning",
        "reason_kept": reason.kept if reason and document.storage_path and status == ParseStatus.FAILED else "",
        "reason_details": f"{document.reason}: {document.error_message}" if document.reason and document.error_message else "",
        "is_failed": status in (ParseStatus.FAILED, ParseStatus.CANCELLED),
        "space_id": document.space_id,
        "crumbs": _crumbs(document),
        "reader_tabs": _tabs(document, tab),
        "may_write": allowed(actor, "document.update", document),
        "may_edit": allowed(actor, "chunk.write", document),
        "may_reparse": allowed(actor, "document.reparse", document) and not row.in_flight and status != ParseStatus.DRAFT,
        "may_download": allowed(actor, "document.download", document),
        "has_original": bool(document.storage_path) or document.type == Document.Type.MANUAL,
        "download_href": links.download_url(actor, document),
        "is_text": type_of(document) in TEXT_TYPES,
        "asks_password": reasons.asks_password(document),
        "left_out": left_out_text(document),
        "live_href": _live(document, row),
    }


def _live(document: Document, row: Row) -> str:
    address = reverse("document-live", args=[document.space_id, document.uid])
    return f"{address}?was={document.parse_status}" if row.in_flight else ""


def _crumbs(document: Document) -> list[dict[str, str]]:
    base = document.kb
    found = [{"label": _("Knowledge bases"), "href": links.space_url(base.space_id)}, {"label": base.name, "href": links.base_url(base)}]
    path = ""
    for name in filter(None, document.folder_path.split("/")):
        path = f"{path}/{name}".strip("/")
        found.append({"label": name, "href": links.base_url(base, folder=path)})
    return [*found, {"label": document.title}]


def _tabs(document: Document, current: str) -> list[dict[str, Any]]:
    ids = [document.space_id, document.uid]
    return [
        {"label": _("Content"), "href": reverse("document-reader", args=ids), "current": current == "content"},
        {"label": _("Pipeline"), "href": reverse("document-pipeline", args=ids), "current": current == "pipeline"},
        {"label": _("Details"), "href": reverse("document-details", args=ids), "current": current == "details"},
    ]
