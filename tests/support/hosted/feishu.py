"""The open platform of Feishu and Lark: tokens that expire, knowledge spaces, folders, documents of blocks, exports."""

from __future__ import annotations

import io
from typing import Any

from openpyxl import Workbook
from werkzeug import Request, Response

from tests.support.hosted.serving import Doc, Library, say

STEP = 2
SPACE, EMPTY = "7001", "7002"


def fine(data: dict[str, Any]) -> Response:
    return say({"code": 0, "msg": "success", "data": data})


def wrong(code: int, msg: str, status: int = 200, **headers: str) -> Response:
    return say({"code": code, "msg": msg}, status, **headers)


def sheet() -> bytes:
    book = Workbook()
    book.active.append(["part", "years"])  # type: ignore[union-attr]
    book.active.append(["pump", 5])  # type: ignore[union-attr]
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


class FeishuFake(Library):
    def __init__(self) -> None:
        super().__init__()
        self.generation = 1
        self.forbidden: set[str] = set()
        self.polls = 0
        self.extra: list[dict[str, Any]] = []  # nodes or files of other kinds

    @property
    def token(self) -> str:
        return f"t-token-number-{self.generation}"

    def route(self, request: Request) -> Response:
        path = request.path.removeprefix("/open-apis")
        if path == "/auth/v3/tenant_access_token/internal":
            asked = request.get_json()
            if asked.get("app_id") != "cli_app" or asked.get("app_secret") != self.secret:
                return wrong(10014, f"app secret invalid {asked.get('app_secret')}")
            return say({"code": 0, "msg": "ok", "tenant_access_token": self.token, "expire": 7200})
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return wrong(99991663, "Invalid access token for authorization.", 400)
        if path.startswith("/wiki/v2/"):
            return self.wiki(request, path.removeprefix("/wiki/v2"))
        if path.startswith("/docx/v1/documents/"):
            return self.document(request, path.split("/")[4])
        return self.drive(request, path.removeprefix("/drive"))

    def paged(self, request: Request, name: str, things: list[Any], token_name: str = "page_token") -> Response:
        at = int(request.args.get("page_token") or 0)
        more = at + STEP < len(things)
        return fine({name: things[at : at + STEP], "has_more": more, token_name: str(at + STEP) if more else ""})

    # -- wiki

    def wiki(self, request: Request, path: str) -> Response:
        if path == "/spaces":
            spaces = [{"space_id": SPACE, "name": "Handbook", "description": "How we work"}, {"space_id": EMPTY, "name": "Empty"}]
            return self.paged(request, "items", spaces)
        if path == "/spaces/get_node":
            token = request.args.get("token", "")
            found = next((node for node in [self.folder(), *self.inner(), *self.extra] if node["node_token"] == token), None)
            return fine({"node": found}) if found else wrong(131005, "not found", 400)
        space, parent = path.split("/")[2], request.args.get("parent_node_token", "")
        if space in self.forbidden or parent in self.forbidden:
            return wrong(131006, "permission denied: wiki space permission denied", 400)
        if space == EMPTY:
            return self.paged(request, "items", [])
        return self.paged(request, "items", self.inner() if parent == "wikFolder" else [] if parent else [self.folder(), *self.extra])

    def folder(self) -> dict[str, Any]:
        return {
            "space_id": SPACE, "node_token": "wikFolder", "obj_token": "mind1", "obj_type": "mindnote", "parent_node_token": "", "node_type": "origin",
            "title": "Guides", "has_child": True, "obj_edit_time": "1772359000",
        }  # fmt: skip

    def inner(self) -> list[dict[str, Any]]:
        return [
            {
                "space_id": SPACE, "node_token": f"wik{doc.key}", "obj_token": f"doc{doc.key}", "obj_type": "docx", "parent_node_token": "wikFolder",
                "node_type": "origin", "title": doc.title, "has_child": False, "obj_edit_time": doc.seconds,
            }
            for doc in self.docs.values()
        ]  # fmt: skip

    # -- documents

    def document(self, request: Request, token: str) -> Response:
        doc = next((doc for doc in self.docs.values() if f"doc{doc.key}" == token), None)
        return self.paged(request, "items", blocks(doc)) if doc else wrong(1770002, "not found", 404)

    # -- drive

    def drive(self, request: Request, path: str) -> Response:
        if path == "/explorer/v2/root_folder/meta":
            return fine({"token": "fldRoot", "id": "1", "user_id": "2"})
        if path == "/v1/files":
            folder = request.args.get("folder_token", "")
            if folder in self.forbidden:
                return wrong(1061004, "forbidden.", 403)
            inner = [
                {"token": f"doc{doc.key}", "name": doc.title, "type": "docx", "parent_token": "fldInner", "modified_time": doc.seconds,
                 "url": f"https://feishu.test/docx/doc{doc.key}"}
                for doc in self.docs.values()
            ]  # fmt: skip
            top = [{"token": "fldInner", "name": "Guides", "type": "folder", "parent_token": "fldRoot", "modified_time": "1772359000"}]
            found = {"fldRoot": [*top, *self.extra], "fldInner": inner}.get(folder)
            return self.paged(request, "files", found, "next_page_token") if found is not None else wrong(1061003, "not found.", 404)
        if path == "/v1/export_tasks" and request.method == "POST":
            return fine({"ticket": f"ticket-{request.get_json()['token']}"})
        if path.startswith("/v1/export_tasks/ticket-"):
            self.polls += 1
            done = self.polls % 2 == 0
            return fine({"result": {"job_status": 0 if done else 2, "file_token": "boxExport" if done else "", "file_extension": "xlsx"}})
        if path == "/v1/export_tasks/file/boxExport/download":
            return Response(
                sheet(), content_type="application/octet-stream", headers={"Content-Disposition": 'attachment; filename="x.xlsx"'}
            )
        if path == "/v1/files/boxFile/download":
            return Response(
                b'{"code": 5, "kept": "as it is"}', content_type="application/json", headers={"Content-Disposition": "attachment"}
            )
        return wrong(1061003, "not found.", 404)


def blocks(doc: Doc) -> list[dict[str, Any]]:
    def run(content: str, **style: Any) -> dict[str, Any]:
        return {"text_run": {"content": content, "text_element_style": style}}

    flat: list[tuple[str, int, dict[str, Any], list[str]]] = [
        ("page", 1, {"page": {"elements": [run(doc.title)]}}, ["h", "p", "b1", "o1", "o2", "code", "t"]),
        ("h", 3, {"heading1": {"elements": [run("Overview")]}}, []),
        (
            "p",
            2,
            {"text": {"elements": [run(doc.text, bold=True), run(" see "), run("here", link={"url": "https%3A%2F%2Fexample.com%2F"})]}},
            [],
        ),
        ("b1", 12, {"bullet": {"elements": [run("outer point")]}}, ["b2"]),
        ("b2", 12, {"bullet": {"elements": [run("inner point")]}}, []),
        ("o1", 13, {"ordered": {"elements": [run("first")]}}, []),
        ("o2", 13, {"ordered": {"elements": [run("second")]}}, []),
        ("code", 14, {"code": {"elements": [run("x = 1")], "style": {"language": 49}}}, []),
        ("t", 31, {"table": {"cells": ["c1", "c2", "c3", "c4"], "property": {"row_size": 2, "column_size": 2}}}, ["c1", "c2", "c3", "c4"]),
    ]
    for number, cell in enumerate(["Name", "Value", "pump", "5 years"], 1):
        flat += [(f"c{number}", 32, {"table_cell": {}}, [f"x{number}"]), (f"x{number}", 2, {"text": {"elements": [run(cell)]}}, [])]
    return [{"block_id": name, "block_type": kind, "parent_id": "", "children": children, **data} for name, kind, data, children in flat]
