"""A Confluence: the cloud's API version 2 under /wiki, a server's version 1 at the root."""

from __future__ import annotations

import base64
from typing import Any

from werkzeug import Request, Response

from tests.support.hosted.serving import Doc, Library, say

STEP = 2


class ConfluenceFake(Library):
    def __init__(self, *, cloud: bool) -> None:
        super().__init__()
        self.cloud = cloud
        self.files: dict[str, bytes] = {}

    def allowed(self, request: Request) -> bool:
        packed = base64.b64encode(f"ada@example.com:{self.secret}".encode()).decode()
        return request.headers.get("Authorization") == (f"Basic {packed}" if self.cloud else f"Bearer {self.secret}")

    def route(self, request: Request) -> Response:
        if not self.allowed(request):
            return say({"statusCode": 401, "message": "Unauthorized"}, 401)
        if request.path.startswith(("/wiki/download/", "/download/")):
            return Response(self.files[request.path.rpartition("/")[2]], content_type="application/octet-stream")
        return self.v2(request) if self.cloud else self.v1(request)

    def number(self, doc: Doc) -> str:
        return str(10_000 + sum(doc.key.encode()))

    def storage(self, doc: Doc) -> str:
        return (
            f'<p>{doc.text} &nbsp;</p><ac:structured-macro ac:name="code"><ac:parameter ac:name="language">sql</ac:parameter>'
            "<ac:plain-text-body><![CDATA[select 1 < 2]]></ac:plain-text-body></ac:structured-macro>"
            '<ac:structured-macro ac:name="toc" /><p><ac:link><ri:page ri:content-title="Runbook" /></ac:link></p>'
        )

    # -- cloud

    def v2(self, request: Request) -> Response:
        path = request.path.removeprefix("/wiki/api/v2")
        if path == "/spaces":
            spaces = [{"id": "55", "key": "OPS", "name": "Operations", "_links": {"webui": "/spaces/OPS"}},
                      {"id": "66", "key": "HR", "name": "People", "_links": {"webui": "/spaces/HR"}}]  # fmt: skip
            return self.paged(request, spaces, "/wiki/api/v2/spaces")
        if path == "/spaces/66/pages":
            return self.paged(request, [], path)
        if path == "/spaces/55/pages":
            return self.paged(request, [self.page2(doc) for doc in self.docs.values()], "/wiki/api/v2/spaces/55/pages")
        if path.endswith("/attachments"):
            number = path.split("/")[2]
            first = next(iter(self.docs.values()))
            found = [
                {"id": f"att{n}", "title": name, "version": {"number": 1, "createdAt": "2026-01-01T00:00:00Z"}, "fileSize": len(data),
                 "downloadLink": f"/download/attachments/{number}/{name}"}
                for n, (name, data) in enumerate(self.files.items()) if number == self.number(first)
            ]  # fmt: skip
            return self.paged(request, found, path)
        doc = next((doc for doc in self.docs.values() if path == f"/pages/{self.number(doc)}"), None)
        if doc is None:
            return say({"errors": [{"status": 404, "code": "NOT_FOUND", "title": "Not Found"}]}, 404)
        return say({**self.page2(doc), "body": {"storage": {"representation": "storage", "value": self.storage(doc)}}})

    def page2(self, doc: Doc) -> dict[str, Any]:
        return {
            "id": self.number(doc), "status": "current", "title": doc.title, "spaceId": "55", "parentId": None,
            "version": {"number": doc.revision, "createdAt": doc.changed}, "_links": {"webui": f"/spaces/OPS/pages/{self.number(doc)}"},
        }  # fmt: skip

    def paged(self, request: Request, things: list[Any], path: str) -> Response:
        at = int(request.args.get("cursor") or 0)
        links = {"next": f"{path}?limit={STEP}&cursor={at + STEP}"} if at + STEP < len(things) else {}
        return say({"results": things[at : at + STEP], "_links": links})

    # -- server

    def v1(self, request: Request) -> Response:
        path = request.path.removeprefix("/rest/api")
        if path == "/space":
            spaces = [{"key": "OPS", "name": "Operations", "type": "global", "_links": {"webui": "/display/OPS"}}]
            return self.started(request, spaces, "/rest/api/space")
        if path == "/content":
            return self.started(request, [self.page1(doc) for doc in self.docs.values()], "/rest/api/content")
        doc = next((doc for doc in self.docs.values() if path == f"/content/{self.number(doc)}"), None)
        if doc is None:
            return say({"statusCode": 404, "message": "No content found"}, 404)
        return say({**self.page1(doc), "body": {"storage": {"value": self.storage(doc), "representation": "storage"}}})

    def page1(self, doc: Doc) -> dict[str, Any]:
        return {
            "id": self.number(doc), "type": "page", "status": "current", "title": doc.title, "ancestors": [{"id": "1", "title": "Guides"}],
            "version": {"number": doc.revision, "when": doc.changed}, "_links": {"webui": f"/pages/viewpage.action?pageId={self.number(doc)}"},
        }  # fmt: skip

    def started(self, request: Request, things: list[Any], path: str) -> Response:
        at = int(request.args.get("start") or 0)
        links = {"next": f"{path}?limit={STEP}&start={at + STEP}"} if at + STEP < len(things) else {}
        return say({"results": things[at : at + STEP], "start": at, "limit": STEP, "size": len(things[at : at + STEP]), "_links": links})
