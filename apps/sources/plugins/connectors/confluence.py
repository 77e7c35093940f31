"""Confluence: the pages of its spaces. Cloud by its REST API version 2, Server and Data Center by version 1."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.notes.storage_format import to_markdown
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, Resource, SourceError, connectors
from apps.sources.plugins.support import DOCUMENTS, Plugin, has_extension, listed, markdown_file, moment, needed, taken, web_address

FILE_LIMIT = 100 << 20
MAX_PAGES = 1_000


@connectors.register("confluence")
class Confluence(Plugin):
    meta = ConnectorMeta(
        "confluence",
        "Confluence",
        _("Pages of Confluence spaces, in the cloud or on your own server."),
        "layers",
        2,
        "api_key",
        ("incremental",),
        (
            Input(
                "base_url", _("Address"), "url", "credentials", required=True,
                hint=_("Cloud: https://NAME.atlassian.net. Server: the address of its start page."),
            ),
            Input("username", _("E-mail or user name"), "text", "credentials", hint=_("Empty on a server with a personal access token.")),
            Input("api_token", _("API token or personal access token"), "secret", "credentials", required=True),
            Input(
                "edition", _("Edition"), "choice", "settings", default="auto",
                choices=(("auto", _("by the address")), ("cloud", _("Cloud")), ("server", _("Server or Data Center"))),
            ),
            Input("attachments", _("Files attached to pages"), "boolean", "settings", default=False),
        ),
        has_resources=True,
    )  # fmt: skip

    def check(self, link: Link) -> None:
        for _space in _api(link).spaces():
            return

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        return [] if parent_id else list(_api(link).spaces())

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        api = _api(link)
        spaces = {space.external_id: space for space in api.spaces()}
        chosen = link.resource_ids or tuple(spaces)
        faults: list[SourceError] = []
        for space_id in chosen:
            try:
                if space_id not in spaces:
                    raise SourceError("not_found", "the space is not visible to this account", item=space_id)
                for pages in api.pages(spaces[space_id]):
                    yield Page(tuple(pages))
                    if link.settings.get("attachments"):
                        for page in pages:
                            yield Page(tuple(api.attachments(page)))
            except SourceError as error:
                if error.code in ("auth", "rate_limited") or len(chosen) == 1:
                    raise
                error.item = error.item or space_id
                faults.append(error)
        yield Page((), whole=not faults, faults=tuple(faults))

    def fetch(self, link: Link, item: Item) -> Content | None:
        api = _api(link)
        if download := item.handle.get("download"):
            answer = link.web.request("GET", api.own(str(download)), headers=api.headers, max_bytes=FILE_LIMIT, large=True)
            return taken(answer, item.title, media_type="")
        title, storage = api.body(str(item.handle["page"]))
        return markdown_file(to_markdown(storage), title or item.title, url=item.url)


def _api(link: Link) -> _Cloud | _Server:
    root = web_address("base_url", needed(link.credentials, "base_url")[0]).rstrip("/")
    edition = str(link.settings.get("edition") or "auto")
    cloud = (urlsplit(root).hostname or "").endswith(".atlassian.net") if edition == "auto" else edition == "cloud"
    return _Cloud(link, root if root.endswith("/wiki") else root + "/wiki") if cloud else _Server(link, root)


class _Api:
    def __init__(self, link: Link, root: str) -> None:
        self.link, self.root = link, root
        name, token = str(link.credentials.get("username") or "").strip(), needed(link.credentials, "api_token")[0]
        if name:
            packed = base64.b64encode(f"{name}:{token}".encode()).decode()
            link.web.hide(packed)
            self.headers = {"Authorization": f"Basic {packed}"}
        else:
            self.headers = {"Authorization": f"Bearer {token}"}

    def own(self, path: str) -> str:
        """An address of this Confluence. SECURITY: an answer may not send us, with our credentials, anywhere else."""
        found = urljoin(self.root + "/", path) if path.startswith("http") else self._join(path)
        if urlsplit(found).netloc != urlsplit(self.root).netloc or urlsplit(found).scheme != urlsplit(self.root).scheme:
            raise SourceError("bad_answer", "the answer leads to another server")
        return found

    def _join(self, path: str) -> str:
        context = urlsplit(self.root).path
        if context and path.startswith(context + "/"):
            path = path[len(context) :]
        return self.root + "/" + path.lstrip("/")

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        found = self.link.web.json("GET", self.own(path), headers={**self.headers, "Accept": "application/json"}, params=params)
        if not isinstance(found, dict):
            raise SourceError("bad_answer", "the answer is JSON of another shape")
        return found

    def each(self, path: str, **params: Any) -> Iterator[list[dict[str, Any]]]:
        """The results of all pages, a page at a time."""
        seen: set[str] = set()
        while path:
            if path in seen or len(seen) >= MAX_PAGES:
                raise SourceError("too_many", "the answer has no end", params={"limit": MAX_PAGES})
            seen.add(path)
            found = self.get(path, **params)
            yield listed(found, "results")
            links = found.get("_links")
            path, params = str((links if isinstance(links, Mapping) else {}).get("next") or ""), {}

    def item(self, raw: dict[str, Any], space: Resource, folder: str) -> Item:
        version = raw.get("version") if isinstance(raw.get("version"), dict) else {}
        links = raw.get("_links") if isinstance(raw.get("_links"), dict) else {}
        when = str(version.get("createdAt") or version.get("when") or "")  # type: ignore[union-attr]
        return Item(
            str(raw["id"]),
            title=str(raw.get("title") or raw["id"]),
            fingerprint=f"{version.get('number', '')}-{when}",  # type: ignore[union-attr]
            folder=folder,
            url=self._join(str(links["webui"])) if links and links.get("webui") else "",
            modified_at=moment(when),
            resource_id=space.external_id,
            handle={"page": str(raw["id"])},
        )

    def file(self, raw: dict[str, Any], page: Item, download: str, size: int) -> Item | None:
        name = str(raw.get("title") or "")
        if not raw.get("id") or not download or not has_extension(name, frozenset(DOCUMENTS)) or size > FILE_LIMIT:
            return None
        version = raw.get("version") if isinstance(raw.get("version"), dict) else {}
        return Item(
            f"{page.external_id}#{raw['id']}",
            title=name,
            fingerprint=f"{version.get('number', '')}-{version.get('createdAt') or version.get('when') or ''}",  # type: ignore[union-attr]
            folder="/".join(part for part in (page.folder, page.title.replace("/", "-")) if part),
            url=page.url,
            resource_id=page.resource_id,
            handle={"download": download},
        )


class _Cloud(_Api):
    def spaces(self) -> Iterator[Resource]:
        for found in self.each("/api/v2/spaces", limit=250, status="current"):
            for raw in found:
                links = raw.get("_links") if isinstance(raw.get("_links"), dict) else {}
                url = self._join(str(links.get("webui"))) if links and links.get("webui") else ""
                yield Resource(
                    str(raw.get("id")), str(raw.get("name") or raw.get("key")), "space", url=url, metadata={"key": str(raw.get("key"))}
                )

    def pages(self, space: Resource) -> Iterator[list[Item]]:
        titles: dict[str, tuple[str, str]] = {}
        waiting: list[dict[str, Any]] = []
        for found in self.each(f"/api/v2/spaces/{quote(space.external_id, safe='')}/pages", limit=250, status="current"):
            waiting += [raw for raw in found if raw.get("id")]
            titles.update({str(raw["id"]): (str(raw.get("title") or ""), str(raw.get("parentId") or "")) for raw in found if raw.get("id")})
        for at in range(0, len(waiting), 200):
            yield [self.item(raw, space, _folder(space, titles, str(raw.get("parentId") or ""))) for raw in waiting[at : at + 200]]

    def attachments(self, page: Item) -> Iterator[Item]:
        for found in self.each(f"/api/v2/pages/{page.external_id}/attachments", limit=100):
            for raw in found:
                size = raw.get("fileSize")
                if item := self.file(raw, page, str(raw.get("downloadLink") or ""), size if isinstance(size, int) else 0):
                    yield item

    def body(self, page_id: str) -> tuple[str, str]:
        found = self.get(f"/api/v2/pages/{quote(page_id, safe='')}", **{"body-format": "storage"})
        return _body(found)


class _Server(_Api):
    def spaces(self) -> Iterator[Resource]:
        for found in self.each("/rest/api/space", limit=100, type="global"):
            for raw in found:
                links = raw.get("_links") if isinstance(raw.get("_links"), dict) else {}
                url = self._join(str(links.get("webui"))) if links and links.get("webui") else ""
                yield Resource(
                    str(raw.get("key")), str(raw.get("name") or raw.get("key")), "space", url=url, metadata={"key": str(raw.get("key"))}
                )

    def pages(self, space: Resource) -> Iterator[list[Item]]:
        for found in self.each(
            "/rest/api/content", spaceKey=space.external_id, type="page", status="current", expand="version,ancestors", limit=100
        ):
            yield [self.item(raw, space, _ancestors(space, raw)) for raw in found if raw.get("id")]

    def attachments(self, page: Item) -> Iterator[Item]:
        for found in self.each(f"/rest/api/content/{page.external_id}/child/attachment", expand="version", limit=100):
            for raw in found:
                links = raw.get("_links") if isinstance(raw.get("_links"), dict) else {}
                extensions = raw.get("extensions") if isinstance(raw.get("extensions"), dict) else {}
                size = (extensions or {}).get("fileSize")
                if item := self.file(raw, page, str((links or {}).get("download") or ""), size if isinstance(size, int) else 0):
                    yield item

    def body(self, page_id: str) -> tuple[str, str]:
        return _body(self.get(f"/rest/api/content/{quote(page_id, safe='')}", expand="body.storage"))


def _body(found: dict[str, Any]) -> tuple[str, str]:
    storage = (found.get("body") or {}).get("storage") if isinstance(found.get("body"), dict) else None
    if not isinstance(storage, dict):
        raise SourceError("bad_answer", "the answer holds no page")
    return str(found.get("title") or ""), str(storage.get("value") or "")


def _folder(space: Resource, titles: Mapping[str, tuple[str, str]], parent: str) -> str:
    above: list[str] = []
    seen: set[str] = set()
    while parent in titles and parent not in seen:
        seen.add(parent)
        title, parent = titles[parent]
        above.append(title.replace("/", "-"))
    return "/".join([space.name.replace("/", "-"), *reversed(above)])


def _ancestors(space: Resource, raw: Mapping[str, Any]) -> str:
    above = raw.get("ancestors")
    names = [str(page.get("title") or "").replace("/", "-") for page in above if isinstance(page, dict)] if isinstance(above, list) else []
    return "/".join([space.name.replace("/", "-"), *names])
