"""A Yuque account with one repository of its own and one of a group."""

from __future__ import annotations

from typing import Any

from werkzeug import Request, Response

from tests.support.hosted.serving import Doc, Library, say

STEP = 100
REPO, OTHER = 101, 202


class YuqueFake(Library):
    other_fails = False

    def route(self, request: Request) -> Response:
        if request.headers.get("X-Auth-Token") != self.secret:
            return say({"status": 401, "message": "Unauthorized"}, 401)
        path = request.path.removeprefix("/api/v2")
        if path == "/user":
            return say({"data": {"id": 7, "type": "User", "login": "ada", "name": "Ada"}})
        if path == "/users/7/groups":
            return say({"data": [{"id": 8, "login": "team", "name": "Team"}]})
        if path == "/users/ada/repos":
            return say({"data": [self.repo(REPO, "Handbook", "ada/handbook")]})
        if path == "/groups/team/repos":
            return say({"data": [self.repo(OTHER, "Team notes", "team/notes")]})
        if path == f"/repos/{OTHER}/docs":
            return say({"status": 403, "message": "Forbidden"}, 403) if self.other_fails else say({"data": [], "meta": {"total": 0}})
        if path == f"/repos/{REPO}/docs":
            at, limit = int(request.args.get("offset", 0)), int(request.args.get("limit", 20))
            docs = [self.summary(number, doc) for number, doc in enumerate(self.docs.values(), 1)]
            draft = {**self.summary(900, Doc("draft", "Draft", "")), "status": 0}
            return say({"data": [*docs, draft][at : at + limit], "meta": {"total": len(docs) + 1}})
        found = next((doc for doc in self.docs.values() if path == f"/repos/{REPO}/docs/{self.number(doc)}"), None)
        if found is None:
            return say({"status": 404, "message": "Not Found"}, 404)
        return say({"data": {**self.summary(0, found), "format": "markdown", "body": found.text, "body_html": f"<p>{found.text}</p>"}})

    def number(self, doc: Doc) -> int:
        return sum(doc.key.encode()) * 1000 + len(doc.key)

    def repo(self, number: int, name: str, namespace: str) -> dict[str, Any]:
        return {"id": number, "type": "Book", "slug": namespace.partition("/")[2], "name": name, "namespace": namespace, "items_count": 3}

    def summary(self, _position: int, doc: Doc) -> dict[str, Any]:
        return {
            "id": self.number(doc), "type": "Doc", "slug": f"doc-{doc.key}", "title": doc.title, "status": 1, "public": 0,
            "content_updated_at": doc.changed, "updated_at": doc.changed,
        }  # fmt: skip
