"""A small REST client over real sockets, for tests of a running portal."""

from __future__ import annotations

import json
import secrets
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.waiting import until

PASSWORD = "passw0rd-1"


@dataclass
class Answer:
    status: int
    body: Any
    headers: dict[str, str]


@dataclass
class Rest:
    """Speaks to `<base_url>/api/v1`; `token` is sent as bearer when set."""

    base_url: str
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, content_type: str = "application/json") -> Answer:
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        headers = dict(self.headers)
        if data is not None:
            headers["Content-Type"] = content_type
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.base_url + "/api/v1" + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, json.loads(answer.read() or b"null"), dict(answer.headers))
        except urllib.error.HTTPError as error:
            text = error.read()
            return Answer(error.code, json.loads(text) if text[:1] in (b"{", b"[") else text.decode(), dict(error.headers))

    def data(self, method: str, path: str, body: Any = None) -> Any:
        """`data` of a successful answer."""
        answer = self.call(method, path, body)
        assert answer.status < 300, (method, path, answer)
        return answer.body.get("data", answer.body)

    def sign_up(self, name: str = "") -> Rest:
        """Register a person and sign in as them."""
        name = name or f"person-{secrets.token_hex(4)}"
        email = f"{name}@example.com"
        made = self.call("POST", "/auth/register", {"username": name, "email": email, "password": PASSWORD})
        assert made.status == 201, made
        answer = self.call("POST", "/auth/login", {"email": email, "password": PASSWORD})
        self.token = answer.body["token"]
        return self

    def make_base(self, name: str = "Base", **extra: Any) -> str:
        return str(self.data("POST", "/knowledge-bases", {"name": name, **extra})["id"])

    def upload(self, base: str, name: str, data: bytes | str, **fields: str) -> Answer:
        mark = secrets.token_hex(16)
        parts = [f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode() for key, value in fields.items()]
        quoted = name.replace('"', "%22")
        head = f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        body = b"".join(parts) + head.encode() + (data.encode() if isinstance(data, str) else data) + f"\r\n--{mark}--\r\n".encode()
        path = f"/knowledge-bases/{base}/knowledge/file"
        return self.call("POST", path, raw=body, content_type=f"multipart/form-data; boundary={mark}")

    def document(self, document: str) -> dict[str, Any]:
        return dict(self.data("GET", f"/knowledge/{document}"))

    def wait(self, document: str, *states: str, timeout_s: float = 60) -> dict[str, Any]:
        """The document once it is in one of these states (completed, failed or cancelled by default)."""
        wanted = states or ("completed", "failed", "cancelled")

        def there() -> dict[str, Any] | None:
            found = self.document(document)
            return found if found["parse_status"] in wanted else None

        return until(there, f"document {document} is {' or '.join(wanted)}", timeout_s=timeout_s, every_s=0.1)

    def search(self, base: str, query: str, **options: Any) -> list[dict[str, Any]]:
        body = {"query_text": query, "match_count": 10, "skip_context_enrichment": True, **options}
        return list(self.data("POST", f"/knowledge-bases/{base}/hybrid-search", body) or [])


def retrying(call: Callable[[], Answer], *, timeout_s: float = 30) -> Answer:
    """The answer once the server answers again (it was killed and is being restarted)."""

    def attempt() -> Answer | None:
        try:
            return call()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    return until(attempt, "the portal answers", timeout_s=timeout_s, every_s=0.2)
