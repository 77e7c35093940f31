"""What becomes of each kind of thing the platform keeps."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apps.sources.plugins.feishu.api import Api
from apps.sources.plugins.notes.feishu_blocks import to_markdown
from apps.sources.plugins.protocol import Content, Item, SourceError
from apps.sources.plugins.support import READABLE, has_extension, markdown_file

MAX_BLOCKS = 50_000
_EXPORTS = {"doc": "docx", "sheet": "xlsx", "bitable": "xlsx"}


def is_readable(kind: str, name: str) -> bool:
    """Whether a thing becomes a document: texts, sheets and tables, and files the portal can parse."""
    return kind == "docx" or kind in _EXPORTS or (kind == "file" and has_extension(name, READABLE))


def zone_of(settings: Any, default: str) -> ZoneInfo:
    """The time zone of the settings. Raises: SourceError(bad_settings)."""
    try:
        return ZoneInfo(str(settings.get("timezone") or default))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise SourceError("bad_settings", "no such time zone", field="timezone") from None


def content_of(api: Api, item: Item, zone: ZoneInfo) -> Content | None:
    """The content of an item whose handle holds `token` and `kind`."""
    token, kind = str(item.handle["token"]), str(item.handle["kind"])
    safe = quote(token, safe="")
    if kind == "docx":
        blocks: list[dict[str, Any]] = []
        for page in api.each(f"/open-apis/docx/v1/documents/{safe}/blocks", size=500):
            blocks += page
            if len(blocks) > MAX_BLOCKS:
                raise SourceError("too_large", "the document has too many blocks", item=item.external_id, params={"limit": MAX_BLOCKS})
        return markdown_file(to_markdown(blocks, zone), item.title, url=item.url)
    if kind in _EXPORTS:
        return api.export(token, kind, _EXPORTS[kind], item.title)
    return api.download(f"/open-apis/drive/v1/files/{safe}/download", item.title)
