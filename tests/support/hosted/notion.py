"""A Notion workspace: a top page, its sub-pages, a database with rows; search, blocks, 100 results a page (here fewer)."""

from __future__ import annotations

import uuid
from typing import Any

from werkzeug import Request, Response

from tests.support.hosted.serving import Doc, Library, say

STEP = 2
TOP = uuid.uuid5(uuid.NAMESPACE_URL, "top").hex


def id_of(key: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, key).hex


def dashed(plain: str) -> str:
    return str(uuid.UUID(plain))


def text(value: str, **marks: bool) -> dict[str, Any]:
    return {"type": "text", "text": {"content": value}, "plain_text": value, "href": None, "annotations": marks}


class NotionFake(Library):
    def route(self, request: Request) -> Response:
        if request.headers.get("Authorization") != f"Bearer {self.secret}":
            return self.error(401, "unauthorized", "API token is invalid.")
        if request.headers.get("Notion-Version") != "2022-06-28":
            return self.error(400, "missing_version", "Notion-Version header failed validation")
        path = request.path.removeprefix("/v1")
        if path == "/users/me":
            return say({"object": "user", "id": "bot", "type": "bot"})
        if path == "/search" and request.method == "POST":
            asked = request.get_json()
            return self.page([self.top(), self.database(), *map(self.described, self.docs.values())], asked.get("start_cursor"))
        if path.startswith("/pages/"):
            found = next((doc for doc in self.docs.values() if id_of(doc.key) == path.rpartition("/")[2].replace("-", "")), None)
            return say(self.described(found)) if found else self.error(404, "object_not_found", "Could not find page")
        if path.startswith("/blocks/") and path.endswith("/children"):
            return self.page(self.blocks(path.split("/")[2].replace("-", "")), request.args.get("start_cursor"))
        return self.error(404, "object_not_found", f"Could not find {path}")

    def error(self, status: int, code: str, message: str) -> Response:
        return say({"object": "error", "status": status, "code": code, "message": message}, status)

    def page(self, things: list[Any], start: str | None) -> Response:
        at = int(start or 0)
        more = at + STEP < len(things)
        return say({"object": "list", "results": things[at : at + STEP], "has_more": more, "next_cursor": str(at + STEP) if more else None})

    def top(self) -> dict[str, Any]:
        return {
            "object": "database", "id": dashed(id_of("unused")), "title": [text("Archive")], "archived": True,
            "parent": {"type": "workspace", "workspace": True}, "last_edited_time": "2026-01-01T00:00:00.000Z",
        }  # fmt: skip

    def database(self) -> dict[str, Any]:
        return {
            "object": "database", "id": dashed(id_of("database")), "title": [text("Handbook")], "archived": False, "url": "https://notion.so/db",
            "parent": {"type": "workspace", "workspace": True}, "last_edited_time": "2026-01-01T00:00:00.000Z",
        }  # fmt: skip

    def described(self, doc: Doc) -> dict[str, Any]:
        return {
            "object": "page",
            "id": dashed(id_of(doc.key)),
            "archived": False,
            "in_trash": False,
            "url": f"https://www.notion.so/{id_of(doc.key)}",
            "last_edited_time": doc.changed,
            "parent": {"type": "database_id", "database_id": dashed(id_of("database"))},
            "properties": {
                "Name": {"type": "title", "title": [text(doc.title)]},
                "Status": {"type": "select", "select": {"name": "Done"}},
                "Due": {"type": "date", "date": {"start": "2026-04-01", "end": None}},
            },
        }

    def blocks(self, block: str) -> list[dict[str, Any]]:
        if block == id_of("list"):
            return [{"object": "block", "id": "n1", "type": "bulleted_list_item", "has_children": False,
                     "bulleted_list_item": {"rich_text": [text("inner point")]}}]  # fmt: skip
        if block == id_of("table"):
            rows = [["Name", "Value"], ["pump", "5 years"]]
            return [
                {"object": "block", "id": f"r{n}", "type": "table_row", "table_row": {"cells": [[text(cell)] for cell in row]}}
                for n, row in enumerate(rows)
            ]
        doc = next((doc for doc in self.docs.values() if id_of(doc.key) == block), None)
        if doc is None:
            return []
        made = [
            ("heading_1", {"rich_text": [text("Overview")]}, ""),
            ("paragraph", {"rich_text": [text(doc.text, bold=True), text(" and more")]}, ""),
            ("bulleted_list_item", {"rich_text": [text("outer point")]}, id_of("list")),
            ("to_do", {"rich_text": [text("check it")], "checked": True}, ""),
            ("code", {"rich_text": [text("x = 1")], "language": "python"}, ""),
            ("table", {"table_width": 2}, id_of("table")),
            ("unsupported", {}, ""),
        ]
        return [
            {"object": "block", "id": inner or f"b{n}", "type": kind, kind: data, "has_children": bool(inner)}
            for n, (kind, data, inner) in enumerate(made)
        ]
