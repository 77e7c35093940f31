"""The details tab: what is known about a document and its file."""

from __future__ import annotations

from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.actor import Actor
from apps.knowledge.models import Document
from apps.knowledge.selectors import original_name
from apps.portal.sources import meta_of, origin_facts

CHANNELS = {"web": gettext_lazy("Portal"), "api": gettext_lazy("API")}
HIDDEN_METADATA = frozenset(
    {"content", "process_overrides", "original_name", "version", "status", "external_id", "source_resource_id", "datasource_id"}
)


def details_context(actor: Actor, document: Document) -> dict[str, Any]:
    """Context of `portal/reader_details.html`: facts in groups, as components/key_value.html takes them."""
    return {
        "about": _about(document),
        "origin": origin_facts(actor, document),
        "file": _file(document),
        "processing": _processing(document),
        "metadata": _metadata(document),
        "custom_metadata": _items(document.custom_metadata or {}),
    }


def _when(moment: Any) -> str | None:
    return formats.date_format(timezone.localtime(moment), "Y-m-d H:i:s") if moment else None


def _about(document: Document) -> list[dict[str, Any]]:
    connector = meta_of(document.channel)
    items: list[dict[str, Any]] = [
        {"label": _("Title"), "value": document.title},
        {"label": _("Folder"), "value": document.folder_path.replace("/", " / ") or _("none")},
        {"label": _("Added by"), "value": document.creator.username if document.creator else _("a data source") if connector else None},
        {"label": _("Came by"), "value": str(connector.name if connector else CHANNELS.get(document.channel, document.channel))},
        {"label": _("Added"), "value": _when(document.created_at)},
        {"label": _("Changed"), "value": _when(document.updated_at)},
        {"label": _("Id"), "value": str(document.uid), "mono": True, "copyable": True},
    ]
    if document.source:
        items.insert(3, {"label": _("Address"), "value": document.source, "copyable": True})
    return items


def _file(document: Document) -> list[dict[str, Any]]:
    if document.type == Document.Type.MANUAL:
        return [{"label": _("Kind"), "value": _("Written here")}]
    return [
        {"label": _("File name"), "value": original_name(document)},
        {"label": _("Media type"), "value": document.media_type, "mono": True},
        {
            "label": _("File size"),
            "value": f"{filesizeformat(document.file_size)} ({document.file_size:,} B)" if document.file_size else None,
        },
        {"label": "MD5", "value": document.file_hash, "mono": True, "copyable": True},
        {"label": "SHA-256", "value": document.content_sha256, "mono": True, "copyable": True},
    ]


def _processing(document: Document) -> list[dict[str, Any]]:
    counts = document.counts or {}
    words = {"pages": _("Pages"), "sheets": _("Sheets"), "slides": _("Slides")}
    items: list[dict[str, Any]] = [{"label": words[name], "value": f"{counts[name]:,}"} for name in words if counts.get(name)]
    vectors = f"{document.vector_count:,} / {document.chunk_count:,}" if document.chunk_count else "0"
    return [
        *items,
        {"label": _("Passages"), "value": f"{document.chunk_count:,}"},
        {"label": _("Vectors"), "value": vectors},
        {"label": _("Encoding"), "value": document.encoding.upper() if document.encoding else _("not a text file")},
        {"label": _("Language"), "value": document.language or None},
        {"label": _("Attempts"), "value": str(document.attempt)},
        {"label": _("Finished"), "value": _when(document.processed_at)},
        {"label": _("Index revision"), "value": str(document.index_rev), "mono": True},
    ]


def _metadata(document: Document) -> list[dict[str, Any]]:
    return _items({name: value for name, value in (document.metadata or {}).items() if name not in HIDDEN_METADATA})


def _items(values: dict[str, Any]) -> list[dict[str, Any]]:
    words = {True: _("yes"), False: _("no"), None: "—"}
    return [
        {"label": str(name), "value": words[value] if value is None or isinstance(value, bool) else str(value)}
        for name, value in values.items()
    ]
