"""Feishu and Lark: knowledge spaces (wiki) and shared folders (drive)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.feishu.api import Api
from apps.sources.plugins.feishu.documents import content_of, is_readable, zone_of
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, Resource, SourceError, connectors
from apps.sources.plugins.support import Plugin, lines_of, moment

MAX_DEPTH = 30
MAX_NODES = 50_000
_FATAL = ("feishu_rate_limited", "auth", "too_many")
_TOKEN = (
    Input("app_id", "App ID", "text", "credentials", required=True),
    Input("app_secret", "App Secret", "secret", "credentials", required=True),
)
_ZONE = Input("timezone", _("Time zone"), "text", "settings", hint=_("For dates in documents, for example Asia/Shanghai."))


class _Family(Plugin):
    """What Feishu and Lark, wiki and drive have alike."""

    home = "https://open.feishu.cn"
    zone = "Asia/Shanghai"

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = super().clean(settings)
        zone_of(found, self.zone)
        return found

    def api(self, link: Link) -> Api:
        return Api(link, self.home)

    def fetch(self, link: Link, item: Item) -> Content | None:
        return content_of(self.api(link), item, zone_of(link.settings, self.zone))


def _inputs(home: str, *more: Input) -> tuple[Input, ...]:
    return (
        *_TOKEN,
        Input("base_url", _("Address of the platform"), "url", "credentials", hint=format_lazy(_("Empty: {url}"), url=home)),
        *more,
        _ZONE,
    )


_CAN = ("incremental", "deletion_sync")
_FOLDERS = Input(
    "folder_tokens",
    _("Shared folders"),
    "lines",
    "settings",
    hint=_("The last part of a folder's address, one per line, for folders that were shared with the app."),
)


class _Wiki(_Family):
    def check(self, link: Link) -> None:
        for _page in self.api(link).each("/open-apis/wiki/v2/spaces", size=1):
            return

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        api = self.api(link)
        if not parent_id:
            return [
                Resource(
                    str(space.get("space_id")),
                    str(space.get("name") or ""),
                    "space",
                    str(space.get("description") or ""),
                    has_children=True,
                )
                for space in _spaces(api).values()
            ]
        space, _colon, node = parent_id.partition(":")
        return [
            Resource(
                f"{space}:{raw['node_token']}", str(raw.get("title") or ""), str(raw.get("obj_type") or ""),
                modified_at=moment(raw.get("obj_edit_time")),
                parent_id=parent_id, has_children=bool(raw.get("has_child")),
            )
            for page in _nodes(api, space, node)
            for raw in page
        ]  # fmt: skip

    def ancestors(self, link: Link, resource_ids: tuple[str, ...]) -> list[str]:
        api = self.api(link)
        found: list[str] = []
        for resource_id in resource_ids:
            space, colon, token = resource_id.partition(":")
            if not colon:
                continue
            above = [f"{space}:{raw['node_token']}" for raw in _parents(api, token)]
            found += [place for place in (space, *above) if place not in found]
        return found

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        api = self.api(link)
        spaces = _spaces(api)
        chosen = link.resource_ids or tuple(spaces)
        faults: list[SourceError] = []
        seen: set[str] = set()
        for resource_id in chosen:
            space, _colon, node = resource_id.partition(":")
            name = str((spaces.get(space) or {}).get("name") or space).replace("/", "-")
            try:
                if node:
                    raw = _node(api, node)
                    above = [str(parent.get("title") or "").replace("/", "-") for parent in _parents(api, node)]
                    yield from self._below(api, space, [raw], "/".join([name, *above]), resource_id, seen, faults)
                else:
                    yield from self._below(api, space, None, name, resource_id, seen, faults)
            except SourceError as error:
                if error.code in _FATAL or len(chosen) == 1:
                    raise
                error.item = error.item or resource_id
                faults.append(error)
        yield Page((), whole=not faults, faults=tuple(faults))

    def _below(
        self,
        api: Api,
        space: str,
        start: list[dict[str, Any]] | None,
        folder: str,
        resource_id: str,
        seen: set[str],
        faults: list[SourceError],
    ) -> Iterator[Page]:
        """The nodes from `start` (None: the top of the space) downwards, a page of the API at a time."""
        pages = iter([start]) if start is not None else _nodes(api, space, "")
        waiting: list[tuple[Iterator[list[dict[str, Any]]], str, int, str]] = [(pages, folder, 0, "")]
        while waiting:
            pages, folder, depth, owner = waiting[-1]
            try:
                nodes = next(pages, None)
            except SourceError as error:
                if error.code in _FATAL or not owner:
                    raise
                error.item = owner
                faults.append(error)
                nodes = None
            if nodes is None:
                waiting.pop()
                continue
            nodes = [raw for raw in nodes if raw.get("node_token") and str(raw["node_token"]) not in seen]
            seen.update(str(raw["node_token"]) for raw in nodes)
            if len(seen) > MAX_NODES:
                raise SourceError("too_many", f"more than {MAX_NODES} nodes", params={"limit": MAX_NODES})
            yield Page(tuple(_wiki_item(raw, folder, resource_id) for raw in nodes if _is_document(raw)))
            for raw in reversed(nodes):
                if raw.get("has_child") and depth < MAX_DEPTH and raw.get("node_type") != "shortcut":
                    token = str(raw["node_token"])
                    title = str(raw.get("title") or token).replace("/", "-")
                    waiting.append((_nodes(api, space, token), f"{folder}/{title}", depth + 1, token))


def _spaces(api: Api) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for page in api.each("/open-apis/wiki/v2/spaces"):
        found.update({str(space["space_id"]): space for space in page if space.get("space_id")})
    return found


def _nodes(api: Api, space: str, parent: str) -> Iterator[list[dict[str, Any]]]:
    return api.each(f"/open-apis/wiki/v2/spaces/{quote(space, safe='')}/nodes", parent_node_token=parent)


def _node(api: Api, token: str) -> dict[str, Any]:
    node = api.call("GET", "/open-apis/wiki/v2/spaces/get_node", token=token).get("node")
    if not isinstance(node, dict) or not node.get("node_token"):
        raise SourceError("not_found", "there is no such node", item=token)
    return node


def _parents(api: Api, token: str) -> list[dict[str, Any]]:
    """The nodes a node is below, outermost first."""
    found: list[dict[str, Any]] = []
    current = str(_node(api, token).get("parent_node_token") or "")
    while current and len(found) < MAX_DEPTH:
        raw = _node(api, current)
        found.insert(0, raw)
        current = str(raw.get("parent_node_token") or "")
    return found


def _is_document(raw: Mapping[str, Any]) -> bool:
    return raw.get("node_type") != "shortcut" and is_readable(str(raw.get("obj_type") or ""), str(raw.get("title") or ""))


def _wiki_item(raw: Mapping[str, Any], folder: str, resource_id: str) -> Item:
    token, changed = str(raw["node_token"]), str(raw.get("obj_edit_time") or "")
    return Item(
        token,
        title=str(raw.get("title") or token),
        fingerprint=changed,
        folder=folder,
        modified_at=moment(changed),
        resource_id=resource_id,
        handle={"token": str(raw.get("obj_token") or ""), "kind": str(raw.get("obj_type") or "")},
    )


class _Drive(_Family):
    def check(self, link: Link) -> None:
        self._roots(self.api(link), link)

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        api = self.api(link)
        folders = [parent_id] if parent_id else self._roots(api, link)
        return [
            Resource(
                str(raw["token"]), str(raw.get("name") or ""), "folder", url=str(raw.get("url") or ""),
                modified_at=moment(raw.get("modified_time")),
                parent_id=parent_id, has_children=True,
            )
            for folder in folders
            for page in _files(api, folder)
            for raw in page
            if raw.get("type") == "folder" and raw.get("token")
        ]  # fmt: skip

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        api = self.api(link)
        roots = list(link.resource_ids) or self._roots(api, link)
        faults: list[SourceError] = []
        seen: set[str] = set(roots)
        waiting = [(root, "", root, 0) for root in reversed(roots)]
        while waiting:
            folder, path, root, depth = waiting.pop()
            try:
                for page in _files(api, folder):
                    yield Page(tuple(_drive_item(raw, path, root) for raw in page if _is_file(raw)))
                    for raw in page:
                        token = str(raw.get("token") or "")
                        if raw.get("type") == "folder" and token and token not in seen and depth < MAX_DEPTH:
                            seen.add(token)
                            name = str(raw.get("name") or token).replace("/", "-")
                            waiting.append((token, f"{path}/{name}" if path else name, root, depth + 1))
                    if len(seen) > MAX_NODES:
                        raise SourceError("too_many", f"more than {MAX_NODES} folders", params={"limit": MAX_NODES})
            except SourceError as error:
                if error.code in _FATAL or (depth == 0 and len(roots) == 1):
                    raise
                error.item = folder
                faults.append(error)
        yield Page((), whole=not faults, faults=tuple(faults))

    def _roots(self, api: Api, link: Link) -> list[str]:
        if own := lines_of(link.settings.get("folder_tokens")):
            return own
        token = str(api.call("GET", "/open-apis/drive/explorer/v2/root_folder/meta").get("token") or "")
        if not token:
            raise SourceError("bad_answer", "the platform names no root folder")
        return [token]


def _files(api: Api, folder: str) -> Iterator[list[dict[str, Any]]]:
    return api.each("/open-apis/drive/v1/files", "files", size=200, token_name="next_page_token", folder_token=folder)


def _is_file(raw: Mapping[str, Any]) -> bool:
    return bool(raw.get("token")) and is_readable(str(raw.get("type") or ""), str(raw.get("name") or ""))


def _drive_item(raw: Mapping[str, Any], path: str, root: str) -> Item:
    token, changed = str(raw["token"]), str(raw.get("modified_time") or "")
    return Item(
        token,
        title=str(raw.get("name") or token),
        fingerprint=changed,
        folder=path,
        url=str(raw.get("url") or ""),
        modified_at=moment(changed),
        resource_id=root,
        handle={"token": token, "kind": str(raw.get("type") or "")},
    )


_FEISHU, _LARK = "https://open.feishu.cn", "https://open.larksuite.com"


@connectors.register("feishu")
class Feishu(_Wiki):
    meta = ConnectorMeta(
        "feishu", _("Feishu wiki"), _("Documents in the knowledge spaces of Feishu."), "wiki", 0, "oauth2", _CAN, _inputs(_FEISHU), True
    )


@connectors.register("lark")
class Lark(_Wiki):
    home, zone = _LARK, "UTC"
    meta = ConnectorMeta(
        "lark", _("Lark wiki"), _("Documents in the knowledge spaces of Lark."), "wiki", 0, "oauth2", _CAN, _inputs(_LARK), True
    )


@connectors.register("feishu_drive")
class FeishuDrive(_Drive):
    meta = ConnectorMeta(
        "feishu_drive", _("Feishu drive"), _("Documents in shared folders of Feishu."), "folder-open", 0, "oauth2", _CAN,
        _inputs(_FEISHU, _FOLDERS), True,
    )  # fmt: skip


@connectors.register("lark_drive")
class LarkDrive(_Drive):
    home, zone = _LARK, "UTC"
    meta = ConnectorMeta(
        "lark_drive",
        _("Lark drive"),
        _("Documents in shared folders of Lark."),
        "folder-open",
        0,
        "oauth2",
        _CAN,
        _inputs(_LARK, _FOLDERS),
        True,
    )
