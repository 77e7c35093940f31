"""A WebDAV folder (Nextcloud, ownCloud, SharePoint servers, Apache): listed level by level, fetched where the ETag changed."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, SourceError, connectors
from apps.sources.plugins.renames import MAX_FILES, identities, known_of, remembered
from apps.sources.plugins.support import (
    EXTENSIONS_INPUT,
    PATHS_INPUT,
    Plugin,
    batches,
    below,
    extensions_of,
    has_extension,
    local_name,
    moment,
    readable_text,
    relative_paths,
    taken,
    xml_root,
)

FILE_LIMIT = 200 << 20
MAX_FOLDERS = 5_000
MAX_DEPTH = 40
_ASK = (
    b'<?xml version="1.0" encoding="utf-8"?><d:propfind xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns"><d:prop>'
    b"<d:resourcetype/><d:getetag/><d:getlastmodified/><d:getcontentlength/><oc:fileid/></d:prop></d:propfind>"
)


@dataclass(frozen=True, slots=True)
class Entry:
    path: str  # relative to the root, without slashes around it
    is_folder: bool
    etag: str
    changed: str
    size: str
    file_id: str

    @property
    def mark(self) -> str:
        """What a rename leaves alone: the server's file id, else size and time."""
        if self.file_id:
            return f"id:{self.file_id}"
        return f"{self.size}|{self.changed}" if self.size and self.changed else ""


@connectors.register("webdav")
class WebDav(Plugin):
    meta = ConnectorMeta(
        "webdav",
        _("WebDAV folder"),
        _("Documents in Nextcloud, ownCloud or any other WebDAV server."),
        "cloud",
        14,
        "password",
        ("incremental", "deletion_sync", "hierarchical"),
        (
            Input("url", _("Address of the folder"), "url", "settings", required=True, hint=_("For Nextcloud: https://…/remote.php/dav/files/NAME/")),
            PATHS_INPUT,
            EXTENSIONS_INPUT,
            Input("username", _("User name"), "text", "credentials"),
            Input("password", _("Password or app password"), "secret", "credentials"),
        ),
    )  # fmt: skip

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = super().clean(settings)
        relative_paths("paths", found.get("paths"))
        extensions_of(found)
        return found

    def check(self, link: Link) -> None:
        _folder(link, "", depth="0")

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        root = _root(link)
        wanted, paths = extensions_of(link.settings), relative_paths("paths", link.settings.get("paths"))
        faults: list[SourceError] = []
        found: dict[str, Entry] = {}
        for entry in _walk(link, paths, faults):
            if has_extension(entry.path, wanted) and below(entry.path, paths):
                found[entry.path] = entry
                if len(found) > MAX_FILES:
                    raise SourceError("too_many", f"more than {MAX_FILES} files", params={"limit": MAX_FILES})
        known = known_of(cursor, root)
        marks = {path: entry.mark for path, entry in found.items()}
        ids = identities(marks, known)
        files = remembered(marks, ids)
        if faults and known:
            files = {**{path: entry for path, entry in known.items() if path not in files}, **files}
        pages = [Page(batch) for batch in batches(_item(found[path], ids[path]) for path in sorted(found))]
        last = pages.pop()
        yield from pages
        yield Page(last.items, {"scope": root, "files": files}, whole=not faults, faults=tuple(faults))

    def fetch(self, link: Link, item: Item) -> Content | None:
        path = str(item.handle["path"])
        answer = link.web.request("GET", _address(link, path), headers=_auth(link), max_bytes=FILE_LIMIT, large=True)
        return taken(answer, path.rpartition("/")[2])


def _root(link: Link) -> str:
    return str(link.settings["url"]).rstrip("/") + "/"


def _address(link: Link, path: str) -> str:
    return urljoin(_root(link), quote(path, safe="/~-._")) if path else _root(link)


def _auth(link: Link) -> dict[str, str]:
    name, password = str(link.credentials.get("username") or ""), str(link.credentials.get("password") or "")
    if not name and not password:
        return {}
    packed = base64.b64encode(f"{name}:{password}".encode()).decode()
    link.web.hide(packed)
    return {"Authorization": f"Basic {packed}"}


def _walk(link: Link, paths: list[str], faults: list[SourceError]) -> Iterator[Entry]:
    """Every file below the root; folders that cannot be listed are faults, the root's failure is everybody's."""
    waiting, seen = [""], {""}
    while waiting:
        folder = waiting.pop()
        try:
            entries = _folder(link, folder)
        except SourceError as error:
            if not folder or error.code in ("auth", "rate_limited"):
                raise
            error.item = folder
            faults.append(error)
            if len(faults) >= 20:
                raise
            continue
        for entry in entries:
            if not entry.is_folder:
                yield entry
                continue
            reaches = not paths or below(entry.path, paths) or any(path.startswith(entry.path + "/") for path in paths)
            if reaches and entry.path not in seen and entry.path.count("/") < MAX_DEPTH:
                seen.add(entry.path)
                waiting.append(entry.path)
                if len(seen) > MAX_FOLDERS:
                    raise SourceError("too_many", f"more than {MAX_FOLDERS} folders", params={"limit": MAX_FOLDERS})


def _folder(link: Link, folder: str, depth: str = "1") -> list[Entry]:
    """What is directly in a folder; what an answer names outside of it is left out."""
    url = _address(link, folder + "/" if folder else "")
    headers = {**_auth(link), "Depth": depth, "Content-Type": "application/xml; charset=utf-8"}
    with link.web.request("PROPFIND", url, headers=headers, body=_ASK, ok=(207,)) as answer:
        root = xml_root(answer.read())
    if local_name(root) != "multistatus":
        raise SourceError("bad_answer", "the answer is not one of a WebDAV server")
    base = unquote(urlsplit(_root(link)).path).rstrip("/") + "/"
    found = []
    for node in root:
        entry = _entry(node, base, url) if local_name(node) == "response" else None
        if entry is not None and entry.path != folder and entry.path.rpartition("/")[0] == folder:
            found.append(entry)
    return found


def _entry(node: Any, base: str, url: str) -> Entry | None:
    href = next(((child.text or "").strip() for child in node if local_name(child) == "href"), "")
    place = urlsplit(urljoin(url, href))
    path = unquote(place.path)
    if not href or place.netloc.lower() != urlsplit(url).netloc.lower() or not path.startswith(base):
        return None
    path = path[len(base) :].rstrip("/")
    if not readable_text(path) or "\\" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return None
    values: dict[str, str] = {}
    is_folder = False
    for child in node.iter():
        name = local_name(child)
        if name == "collection":
            is_folder = True
        elif name in ("getetag", "getlastmodified", "getcontentlength", "fileid"):
            values.setdefault(name, (child.text or "").strip()[:300])
    return Entry(
        path,
        is_folder,
        values.get("getetag", ""),
        values.get("getlastmodified", ""),
        values.get("getcontentlength", ""),
        values.get("fileid", ""),
    )


def _item(entry: Entry, external_id: str) -> Item:
    folder, _slash, name = entry.path.rpartition("/")
    return Item(
        external_id,
        title=name,
        fingerprint=entry.etag or (f"{entry.size}-{entry.changed}" if entry.changed else ""),
        folder=folder,
        modified_at=moment(entry.changed),
        metadata={"path": entry.path},
        handle={"path": entry.path},
    )
