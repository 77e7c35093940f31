"""A GitLab with projects: commits, trees by keyset pages, blobs."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import unquote

from werkzeug import Request, Response

from tests.support.hosted.serving import say

STEP = 2


class GitLabFake:
    secret = "glpat-s3cr3t-Token-0001"

    def __init__(self) -> None:
        self.projects: dict[str, dict[str, bytes]] = {"7": {}, "8": {"notes/other.md": b"# Other project"}}
        self.broken: set[str] = set()

    def route(self, request: Request) -> Response:
        if request.headers.get("PRIVATE-TOKEN") != self.secret:
            return say({"message": "401 Unauthorized"}, 401)
        path = request.path.removeprefix("/api/v4")
        if path == "/user":
            return say({"id": 1, "username": "ada"})
        parts = [unquote(part) for part in path.strip("/").split("/")]
        project = {"team/docs": "7"}.get(parts[1], parts[1]) if len(parts) > 1 else ""
        if parts[0] == "projects" and "/team/docs" in path:  # an escaped slash has been resolved on the way in
            project, parts = "7", ["projects", "7", *path.split("/team/docs", 1)[1].strip("/").split("/")]
            parts = [part for part in parts if part]
        files = self.projects.get(project)
        if files is None:
            return say({"message": "404 Project Not Found"}, 404)
        if project in self.broken:
            return say({"message": "403 Forbidden"}, 403)
        if len(parts) == 2:
            return say(
                {"id": int(project), "path": f"project{project}", "default_branch": "main", "web_url": f"https://gitlab.test/p{project}"}
            )
        return self.repository(request, files, parts[2:])

    def repository(self, request: Request, files: dict[str, bytes], parts: list[str]) -> Response:
        if parts[1] == "commits":
            return (
                say({"id": commit(files), "short_id": commit(files)[:8]})
                if parts[2] == "main"
                else say({"message": "404 Commit Not Found"}, 404)
            )
        if parts[1] == "blobs":
            data = next((data for data in files.values() if blob(data) == parts[2]), None)
            return Response(data, content_type="application/octet-stream") if data is not None else say({"message": "404"}, 404)
        folder = request.args.get("path", "")
        found = [self.entry(path, data) for path, data in sorted(files.items()) if not folder or path.startswith(folder + "/")]
        found.insert(0, {"id": "0" * 40, "name": "docs", "type": "tree", "path": "docs", "mode": "040000"})
        found.append({"id": "1" * 40, "name": "link.md", "type": "blob", "path": "link.md", "mode": "120000"})
        at = int(request.args.get("page_token") or 0)
        answer = say(found[at : at + STEP])
        if at + STEP < len(found):
            answer.headers["Link"] = f'<{request.base_url}?page_token={at + STEP}&path={folder}>; rel="next"'
        return answer

    def entry(self, path: str, data: bytes) -> dict[str, Any]:
        return {"id": blob(data), "name": path.rpartition("/")[2], "type": "blob", "path": path, "mode": "100644"}


def blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def commit(files: dict[str, bytes]) -> str:
    return hashlib.sha1("|".join(f"{path}:{blob(data)}" for path, data in sorted(files.items())).encode()).hexdigest()
