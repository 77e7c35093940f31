"""Reading a ZIP of Markdown: what its entries are, within limits. Nothing is unpacked to a disk, and names are data."""

from __future__ import annotations

import hashlib
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput, PayloadTooLarge
from apps.wiki import frontmatter
from apps.wiki.slugs import slug_of

MAX_ARCHIVE = 100 * 1024 * 1024
MAX_UNPACKED = 256 * 1024 * 1024
MAX_ENTRIES = 50_000
MAX_PAGE = 8 * 1024 * 1024
MAX_PICTURE = 10 * 1024 * 1024
_PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF87a": "image/gif", b"GIF89a": "image/gif"}
_IMAGE = re.compile(r"(!\[[^\[\]\n]{0,1000}\]\()(<?)([^()\s<>]{1,1000})(>?\))")
_EMBED = re.compile(r"!\[\[([^\[\]\n|]{1,1000})(?:\|[^\[\]\n]{0,200})?\]\]")


@dataclass(frozen=True, slots=True)
class ReadItem:
    """`data` of a page: the fields of its front matter, its text and the pictures it names ({as in the text: path in the archive})."""

    kind: str
    path: str
    data: dict[str, Any] = field(default_factory=dict)
    blob: bytes | None = None
    error: str = ""


def media_type_of(data: bytes) -> str:
    """Which picture these bytes are; "" when they are none that is shown."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _PICTURES.items() if data.startswith(start)), "")


def archive_read(source: IO[bytes] | Path) -> list[ReadItem]:
    """Folders, pictures and pages of an archive, in this order. What cannot be read is a page or picture with its `error`.

    Raises: InvalidInput at `file` when it is no ZIP or holds no page; PayloadTooLarge when it is too much.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            items = list(_items(archive))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise InvalidInput(_("This is no ZIP archive that can be read."), field="file", code="not_an_archive") from error
    if not any(item.kind == "page" for item in items):
        raise InvalidInput(_("There is no Markdown file in this archive."), field="file", code="no_pages")
    order = {"folder": 0, "picture": 1, "page": 2}
    return sorted(items, key=lambda item: (order[item.kind], item.path))


def _items(archive: zipfile.ZipFile) -> Iterator[ReadItem]:
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise PayloadTooLarge(_("The archive has more than %(max)d entries.") % {"max": MAX_ENTRIES}, field="file", max=MAX_ENTRIES)
    if sum(entry.file_size for entry in entries) > MAX_UNPACKED:
        raise _too_large()
    root, unpacked = _root([entry.filename for entry in entries]), 0
    for entry in entries:
        path = _path(entry.filename, root)
        if not path or any(part.startswith(".") or part == "__MACOSX" for part in path.split("/")):
            continue
        if entry.is_dir():
            yield ReadItem("folder", path)
            continue
        ending = path.rpartition(".")[2].lower()
        if ending not in ("md", "markdown", "png", "jpg", "jpeg", "gif", "webp"):
            continue
        most = MAX_PAGE if ending in ("md", "markdown") else MAX_PICTURE
        with archive.open(entry) as opened:
            data = opened.read(most + 1)
        unpacked += len(data)
        if unpacked > MAX_UNPACKED:  # what the archive says of itself may be a lie
            raise _too_large()
        yield _page(path, data) if ending in ("md", "markdown") else _picture(path, data)


def _too_large() -> PayloadTooLarge:
    words = _("Unpacked, the archive is larger than %(max)d MB.") % {"max": MAX_UNPACKED // 2**20}
    return PayloadTooLarge(words, field="file", max=MAX_UNPACKED)


def _root(names: list[str]) -> str:
    """The one folder everything lies in, as archives of a folder have it, unless pages of the portal name their place themselves."""
    tops = {name.replace("\\", "/").lstrip("/").partition("/")[0] for name in names if not name.startswith("__MACOSX")}
    inside = all("/" in name.replace("\\", "/").strip("/") or name.endswith("/") for name in names if not name.startswith("__MACOSX"))
    return f"{next(iter(tops))}/" if len(tops) == 1 and inside and f"{next(iter(tops))}/" in names else ""


def _path(name: str, root: str) -> str:
    clean = name.replace("\\", "/").lstrip("/").removeprefix(root)
    parts = [part for part in clean.split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[:4000]


def _picture(path: str, data: bytes) -> ReadItem:
    if len(data) > MAX_PICTURE:
        return ReadItem("picture", path, error=_("The picture is larger than %(max)d MB.") % {"max": MAX_PICTURE // 2**20})
    kind = media_type_of(data)
    if not kind:
        return ReadItem("picture", path, error=_("This is no picture that can be shown."))
    return ReadItem("picture", path, {"media_type": kind, "sha256": hashlib.sha256(data).hexdigest()}, data)


def _page(path: str, data: bytes) -> ReadItem:
    if len(data) > MAX_PAGE:
        return ReadItem("page", path, error=_("The page is larger than %(max)d MB.") % {"max": MAX_PAGE // 2**20})
    try:
        front, content = frontmatter.parted(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return ReadItem("page", path, error=_("The file is not UTF-8 text."))
    except frontmatter.NotYaml:
        return ReadItem("page", path, error=_("What stands between the lines --- cannot be read as YAML."))
    return ReadItem("page", path, _understood(path, front, content))


def _understood(path: str, front: dict[str, Any], content: str) -> dict[str, Any]:
    """The fields of a page: what its front matter says, else what its path says."""
    folder, _slash, name = path.rpartition("/")
    stem = name.rpartition(".")[0]
    own = "slug" in front
    return {
        "title": _text(front.get("title")) or stem,
        "slug": slug_of(_text(front.get("slug"))) or slug_of(f"{folder}/{stem}"),
        "type": _text(front.get("type")),
        "status": _text(front.get("status")),
        "aliases": _texts(front.get("aliases", front.get("alias"))),
        "summary": _text(front.get("summary")),
        "folder": _text(front.get("folder")) if own or "folder" in front else folder,
        "made": _text(front.get("made")),
        "model": _text(front.get("model")),
        "sources": [row for row in front.get("sources") or [] if isinstance(row, dict)] if isinstance(front.get("sources"), list) else [],
        "claims": [row for row in front.get("claims") or [] if isinstance(row, dict)] if isinstance(front.get("claims"), list) else [],
        "metadata": {name: value for name, value in front.items() if name not in frontmatter.OWN},
        "content": content,
        "pictures": _pictures(path, content),
    }


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, (dict, list)) else str(value).strip()


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for each in value if (text := _text(each))]
    return [part.strip() for part in _text(value).split(",") if part.strip()]


def _pictures(path: str, content: str) -> dict[str, str]:
    """{address of a picture as the text has it: path in the archive}."""
    folder = posixpath.dirname(path)
    found = {}
    for match in _IMAGE.finditer(content):
        address = match[3]
        if "://" not in address and not address.startswith(("#", "data:")):
            inside = posixpath.normpath(posixpath.join(folder, address))
            found[address] = inside if not inside.startswith("..") else posixpath.basename(address)
    for match in _EMBED.finditer(content):
        found[match[0]] = match[1].strip()
    return found


def with_pictures(content: str, handles: dict[str, str]) -> str:
    """The text with its pictures named by their handles. `handles`: {as the text has it: `resource://...`}."""
    content = _EMBED.sub(lambda found: f"![{Path(found[1]).stem}]({handles[found[0]]})" if found[0] in handles else found[0], content)
    return _IMAGE.sub(lambda found: f"{found[1]}{handles[found[3]]})" if found[3] in handles else found[0], content)
