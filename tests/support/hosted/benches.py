"""One bench per connector: a real server on the loopback with three documents, and hands to change what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apps.sources.plugins.connectors  # noqa: F401 - registers them
from apps.sources.plugins.protocol import Connector, Content, Cursor, Item, Link, Page, SourceError, connectors
from apps.sources.web import Web
from tests.support.hosted.confluence import ConfluenceFake
from tests.support.hosted.feishu import FeishuFake
from tests.support.hosted.gitlab import GitLabFake
from tests.support.hosted.notion import NotionFake
from tests.support.hosted.serving import Library, Server, application
from tests.support.hosted.yuque import YuqueFake

TEXTS = {"alpha": "The pump is replaced every five years.", "beta": "传感器每年校准一次。", "gamma": "Backups run at 02:00."}


class Bench:
    """`type` is the connector's; `named` where it stands for one of several editions.

    `says_deleted`: a deletion is said by the item, not by a listing that is whole. `keeps`: what leaves the source is not deleted at all.
    """

    type = ""
    named = ""
    says_deleted = False
    keeps = False
    has_credentials = True
    speaks_http = True
    has_parts = True  # one part can fail while others are read
    server: Server

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.start()
        for key, text in TEXTS.items():
            self.write(key, text)

    # -- what a bench must do

    def start(self) -> None: ...
    def write(self, key: str, text: str) -> None: ...
    def retitle(self, key: str) -> str:
        """Rename a document without a change of its text; the new title."""
        raise NotImplementedError

    def remove(self, key: str) -> None: ...
    def settings(self) -> dict[str, Any]:
        return {}

    def credentials(self) -> dict[str, str]:
        return {}

    def wrong(self) -> dict[str, str]:
        """Credentials that look right and are not."""
        return {}

    def break_part(self) -> None: ...

    def close(self) -> None:
        if self.speaks_http:
            self.server.close()

    # -- what every bench does alike

    @property
    def connector(self) -> Connector:
        return connectors.get(self.type)

    def web(self) -> Web:
        return Web(secrets=self.credentials().values(), sleep=self.waited.append, timeout_s=10.0)

    def link(self, credentials: Mapping[str, str] | None = None, resource_ids: tuple[str, ...] = ()) -> Link:
        given = self.credentials() if credentials is None else credentials
        web = Web(secrets=given.values(), sleep=self.waited.append, timeout_s=10.0)
        return Link(given, self.connector.clean(self.settings()), resource_ids, web)

    def run(self, cursor: Cursor | None = None, resource_ids: tuple[str, ...] = ()) -> Run:
        return Run(self.connector, self.link(resource_ids=resource_ids), cursor)


class Run:
    """One listing to its end: items, the last cursor that was given, whether it was whole, faults, and each item's text."""

    def __init__(self, connector: Connector, link: Link, cursor: Cursor | None) -> None:
        self.items: dict[str, Item] = {}
        self.deleted: set[str] = set()
        self.cursor = cursor
        self.whole = False
        self.faults: list[SourceError] = []
        self.texts: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.pages: list[Page] = []
        with link.web:
            for page in connector.listing(link, cursor):
                assert not self.whole, "only the last page may be whole"
                self.pages.append(page)
                self._take(connector, link, page)

    def _take(self, connector: Connector, link: Link, page: Page) -> None:
        for item in page.items:
            if item.deleted:
                self.deleted.add(item.external_id)
                continue
            assert item.external_id not in self.items, f"{item.external_id} is named twice"
            self.items[item.external_id] = item
            content = connector.fetch(link, item)
            self.texts[item.external_id] = text_of(content)
            self.names[item.external_id] = content.file_name if content else ""
        self.cursor = page.cursor if page.cursor is not None else self.cursor
        self.whole = page.whole
        self.faults += page.faults

    def id_of(self, text: str) -> str:
        """The id of the item whose text holds this."""
        found = [external_id for external_id, own in self.texts.items() if text in own]
        assert len(found) == 1, f"{text!r} is in {found}"
        return found[0]

    @property
    def fingerprints(self) -> dict[str, str]:
        return {external_id: item.fingerprint for external_id, item in self.items.items()}


def text_of(content: Content | None) -> str:
    if content is None:
        return ""
    try:
        return content.path.read_text(encoding="utf-8", errors="replace")
    finally:
        content.path.unlink()


class LibraryBench(Bench):
    """A hosted service played by one of the stand-ins."""

    fake: Library

    def start(self) -> None:
        self.fake = self.made()
        self.server = Server(application(self.fake.route))  # type: ignore[attr-defined]

    def made(self) -> Library:
        raise NotImplementedError

    def write(self, key: str, text: str) -> None:
        self.fake.write(key, text)

    def retitle(self, key: str) -> str:
        self.fake.retitle(key, "Another name")
        return "Another name"

    def remove(self, key: str) -> None:
        self.fake.remove(key)


class NotionBench(LibraryBench):
    type, says_deleted = "notion", True
    has_parts = False

    def made(self) -> Library:
        return NotionFake()

    def settings(self) -> dict[str, Any]:
        return {"base_url": self.server.url}

    def credentials(self) -> dict[str, str]:
        return {"api_key": self.fake.secret}

    def wrong(self) -> dict[str, str]:
        return {"api_key": "secret_wrong-Key-77"}


class YuqueBench(LibraryBench):
    type = "yuque"

    def made(self) -> Library:
        return YuqueFake()

    def credentials(self) -> dict[str, str]:
        return {"api_token": self.fake.secret, "base_url": self.server.url}

    def wrong(self) -> dict[str, str]:
        return {"api_token": "wrong-Token-77", "base_url": self.server.url}

    def break_part(self) -> None:
        self.fake.other_fails = True  # type: ignore[attr-defined]


class CloudBench(LibraryBench):
    type, named = "confluence", "confluence-cloud"

    def made(self) -> Library:
        return ConfluenceFake(cloud=True)

    def settings(self) -> dict[str, Any]:
        return {"edition": "cloud"}

    def credentials(self) -> dict[str, str]:
        return {"base_url": self.server.url, "username": "ada@example.com", "api_token": self.fake.secret}

    def wrong(self) -> dict[str, str]:
        return {"base_url": self.server.url, "username": "ada@example.com", "api_token": "wrong-Token-77"}

    def break_part(self) -> None:
        self.server.gate.answer(403, "/spaces/66/pages")


class ServerBench(CloudBench):
    named = "confluence-server"
    has_parts = False

    def made(self) -> Library:
        return ConfluenceFake(cloud=False)

    def settings(self) -> dict[str, Any]:
        return {"edition": "server"}

    def credentials(self) -> dict[str, str]:
        return {"base_url": self.server.url, "api_token": self.fake.secret}


class FeishuBench(LibraryBench):
    type = "feishu"

    def made(self) -> Library:
        return FeishuFake()

    def credentials(self) -> dict[str, str]:
        return {"app_id": "cli_app", "app_secret": self.fake.secret, "base_url": self.server.url}

    def wrong(self) -> dict[str, str]:
        return {"app_id": "cli_app", "app_secret": "wrong-Secret-77", "base_url": self.server.url}

    def break_part(self) -> None:
        self.fake.forbidden.add("7002")  # type: ignore[attr-defined]


class LarkBench(FeishuBench):
    type = "lark"


class FeishuDriveBench(FeishuBench):
    type = "feishu_drive"

    def break_part(self) -> None:
        self.fake.extra.append({"token": "fldShut", "name": "Shut", "type": "folder", "modified_time": "1"})  # type: ignore[attr-defined]
        self.fake.forbidden.add("fldShut")  # type: ignore[attr-defined]


class LarkDriveBench(FeishuDriveBench):
    type = "lark_drive"


class GitLabBench(Bench):
    type = "gitlab"
    says_deleted = True

    def start(self) -> None:
        self.fake = GitLabFake()
        self.server = Server(application(self.fake.route))

    def write(self, key: str, text: str) -> None:
        self.fake.projects["7"][f"docs/{key}.md"] = text.encode()

    def retitle(self, key: str) -> str:
        files = self.fake.projects["7"]
        files["docs/renamed.md"] = files.pop(f"docs/{key}.md")
        return "renamed.md"

    def remove(self, key: str) -> None:
        del self.fake.projects["7"][f"docs/{key}.md"]

    def settings(self) -> dict[str, Any]:
        return {"projects": [{"project_id": "7", "paths": ["docs"]}, {"project_id": "8", "ref": "main", "paths": ["none"]}]}

    def credentials(self) -> dict[str, str]:
        return {"base_url": self.server.url, "access_token": self.fake.secret}

    def wrong(self) -> dict[str, str]:
        return {"base_url": self.server.url, "access_token": "glpat-wrong-77"}

    def break_part(self) -> None:
        self.fake.broken.add("8")
