"""Calls of the open platform: the app's token, pages of lists, downloads, exports; errors under the contract's codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from apps.common.http import Fetched
from apps.sources.plugins.protocol import Content, Link, SourceError
from apps.sources.plugins.support import base_url, listed, needed, taken

FILE_LIMIT = 200 << 20
MAX_PAGES = 2_000
EXPORT_TRIES = 60

_EXPIRED = {99991661, 99991663, 99991664, 99991665, 99991668, 99991671, 99991677}
_REFUSED = _EXPIRED | {10003, 10012, 10013, 10014, 10015, 99991672, 99991679, 131006, 1061004, 1069902, 1770032, 1062501, 91403, 403}
_LIMITED = {99991400, 1061045, 11232, 1254290, 1254291}
_MISSING = {131005, 131001, 1061003, 1061007, 1770002, 1069904, 91402, 1254040}
_BUSY = {1061001, 131007, 1770001, 2200, 1069913}
_NAMES = {
    "auth": "feishu_auth_or_permission",
    "forbidden": "feishu_auth_or_permission",
    "rate_limited": "feishu_rate_limited",
    "timeout": "feishu_timeout",
    "unavailable": "feishu_server_unavailable",
}


class Api:
    """One app of one platform. `home`: where the platform is unless the credentials say otherwise."""

    def __init__(self, link: Link, home: str) -> None:
        self.link, self.web = link, link.web
        self.app_id, self.secret = needed(link.credentials, "app_id", "app_secret")
        self.root = base_url(link.credentials, home)

    def token(self) -> str:
        """The app's token, asked for once per run and again when it has expired."""
        return self.web.keep("feishu-token", (self.root, self.app_id, self.secret), self._ask_token)  # type: ignore[no-any-return]

    def _ask_token(self) -> str:
        body = {"app_id": self.app_id, "app_secret": self.secret}
        found = self._send("POST", "/open-apis/auth/v3/tenant_access_token/internal", {}, json=body)
        with found:
            token = str(_object(found).get("tenant_access_token") or "")
        if not token:
            raise SourceError("feishu_auth_or_permission", "the platform gave no token")
        self.web.hide(token)
        return token

    def call(self, method: str, path: str, *, json: Any = None, **params: Any) -> dict[str, Any]:
        """The `data` of an answer."""
        with self.request(method, path, json=json, params=params) as answer:
            data = _object(answer).get("data")
        return data if isinstance(data, dict) else {}

    def request(self, method: str, path: str, **options: Any) -> Fetched:
        """An answer; once more with a new token when the one in use has expired."""
        for attempt in (0, 1):
            headers = {"Authorization": f"Bearer {self.token()}"}
            try:
                return self._send(method, path, headers, **options)
            except SourceError as error:
                if attempt or error.params.get("code") not in _EXPIRED:
                    raise
                self.web.drop("feishu-token")
        raise AssertionError("the second try returns or raises")

    def _send(self, method: str, path: str, headers: dict[str, str], **options: Any) -> Fetched:
        try:
            found: Fetched = self.web.request(method, self.root + path, headers=headers, explain=_explain, **options)
            return found
        except SourceError as error:
            error.code = _NAMES.get(error.code, error.code)
            if error.code == "bad_answer" and error.params.get("status"):
                error.code = "feishu_api_error_generic"
            raise

    def each(
        self, path: str, name: str = "items", *, size: int = 50, token_name: str = "page_token", **params: Any
    ) -> Iterator[list[dict[str, Any]]]:
        """The things of a list, a page at a time."""
        token = ""
        seen: set[str] = set()
        while True:
            data = self.call("GET", path, page_size=size, page_token=token, **params)
            yield listed(data, name) if data.get(name) is not None else []
            token = str(data.get(token_name) or data.get("page_token") or "") if data.get("has_more") else ""
            if not token:
                return
            if token in seen or len(seen) >= MAX_PAGES:
                raise SourceError("too_many", "the list has no end", params={"limit": MAX_PAGES})
            seen.add(token)

    def download(self, path: str, name: str) -> Content | None:
        return taken(self.request("GET", path, max_bytes=FILE_LIMIT, large=True), name, media_type="")

    def export(self, token: str, kind: str, extension: str, name: str) -> Content | None:
        """A sheet, table or old document as a file, made by the platform."""
        asked = {"file_extension": extension, "token": token, "type": kind}
        ticket = str(self.call("POST", "/open-apis/drive/v1/export_tasks", json=asked).get("ticket") or "")
        for _try in range(EXPORT_TRIES):
            result = self.call("GET", f"/open-apis/drive/v1/export_tasks/{quote(ticket, safe='')}", token=token).get("result")
            result = result if isinstance(result, dict) else {}
            status = result.get("job_status")
            if status == 0:
                file_token = quote(str(result.get("file_token") or ""), safe="")
                return self.download(f"/open-apis/drive/v1/export_tasks/file/{file_token}/download", f"{name}.{extension}")
            if status not in (1, 2):
                raise SourceError("feishu_api_error", "the export failed", params={"code": status})
            self.web.pause(1.0)
        raise SourceError("feishu_timeout", "the export takes too long", passing=True)


def _object(answer: Fetched) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SourceError("bad_answer", "the answer is not a JSON object")
    return found


def _explain(answer: Fetched) -> SourceError | None:
    """The platform says what is wrong by a number in the body, often under a status that says something else."""
    if answer.status == 200 and "content-disposition" in answer.headers:
        return None  # a file, whatever it holds
    if not answer.media_type.endswith("json"):
        return None
    try:
        found = answer.json()
    except ValueError:
        return None
    code = found.get("code") if isinstance(found, dict) else None
    if not isinstance(code, int) or code == 0:
        return None
    detail = f"code {code}: {str(found.get('msg') or '')[:200]}"
    if code in _LIMITED or answer.status == 429:
        after = answer.headers.get("x-ogw-ratelimit-reset", "") or answer.headers.get("retry-after", "")
        return SourceError(
            "feishu_rate_limited", detail, retry_after_s=float(after) if after.isdigit() else None, passing=True, params={"code": code}
        )
    if code in _REFUSED or answer.status in (401, 403):
        return SourceError("feishu_auth_or_permission", detail, params={"code": code})
    if code in _MISSING or answer.status == 404:
        return SourceError("not_found", detail, params={"code": code})
    if code in _BUSY or answer.status >= 500:
        return SourceError("feishu_server_unavailable", detail, passing=True, params={"code": code})
    return SourceError("feishu_api_error", detail, params={"code": code})
