"""Requests over checked connections; redirects are followed here, one checked hop at a time."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urljoin, urlunsplit

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput, TransientError
from apps.common.http import wire
from apps.common.http.addresses import addresses_of, parts_of

MAX_REDIRECTS = 5
HEADERS = {"User-Agent": "kbportal/1 (document import)", "Accept-Encoding": "gzip, deflate", "Connection": "close"}

#: What may follow a redirect to another server. SECURITY: a list of what is harmless, since no list of secrets is complete.
_HARMLESS = frozenset({"accept", "accept-language", "if-modified-since", "if-none-match", "range", "user-agent", "depth"})
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A final answer; its body lies in a temporary file that `close()` (or the end of a `with` block) removes.

    Units: `path` holds the bytes after removal of any transfer compression, otherwise exactly as sent.
    """

    url: str
    status: int
    headers: Mapping[str, str]  # names in lower case
    path: Path
    media_type: str

    def read(self) -> bytes:
        return self.path.read_bytes()

    def json(self) -> Any:
        """The body as JSON. Raises: ValueError, also for what is nested too deep to be meant."""
        try:
            return json.loads(self.path.read_bytes())
        except RecursionError as error:
            raise ValueError("nested too deep") from error

    def close(self) -> None:
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Fetched:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Ask:
    method: str
    headers: Mapping[str, str]
    body: bytes | None
    max_bytes: int
    deadline: float
    on_chunk: Callable[[int], None] | None


def fetch(
    url: str,
    *,
    max_bytes: int,
    timeout_s: float = 60.0,
    accept: str = "*/*",
    on_chunk: Callable[[int], None] | None = None,
) -> Fetched:
    """GET an address, following checked redirects, into a temporary file.

    `on_chunk` is told the bytes so far and may raise to stop. `timeout_s` covers everything: all hops, headers and body.

    Raises: InvalidInput (bad_url, refused_address, too_large, redirect_loop, bad_encoding); TransientError (timeout, fetch_failed).
    """
    return request("GET", url, headers={"Accept": accept}, max_bytes=max_bytes, timeout_s=timeout_s, on_chunk=on_chunk)


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    max_bytes: int,
    timeout_s: float = 60.0,
    on_chunk: Callable[[int], None] | None = None,
) -> Fetched:
    """The final answer to any request, its body in a temporary file; limits and errors as in `fetch`.

    SECURITY: what leaves for another scheme, host or port after a redirect carries neither the body nor any header but harmless ones,
    so that credentials stay with the server they were meant for.
    """
    ask = _Ask(method.upper(), dict(headers or {}), body, max_bytes, time.monotonic() + timeout_s, on_chunk)
    seen: set[tuple[str, str]] = set()
    for _hop in range(MAX_REDIRECTS + 1):
        parts = parts_of(url)
        current = urlunsplit(parts)
        if (ask.method, current) in seen:
            break
        seen.add((ask.method, current))
        outcome = _send(parts, ask)
        if isinstance(outcome, Fetched):
            return outcome
        status, location = outcome
        url = urljoin(current, location)
        ask = _redirected(ask, status, parts, parts_of(url))
    raise InvalidInput(_("This address redirects in circles or too often. Give the final address."), code="redirect_loop", field="url")


def connect(host: str, port: int, *, timeout_s: float) -> socket.socket:
    """A connected socket to an address that was checked, for protocols other than HTTP.

    Raises: InvalidInput (unknown_host, refused_address); OSError when nobody answers.
    """
    plain = wire.Connection(host, port, places=addresses_of(host, port), secure=False, deadline=time.monotonic() + timeout_s)
    plain.connect()
    if plain.wire is None:
        raise OSError("not connected")
    return plain.wire


def _redirected(ask: _Ask, status: int, old: Any, new: Any) -> _Ask:
    method, headers, body = ask.method, dict(ask.headers), ask.body
    if (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST"):
        method, body = "GET", None
        headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
    if _origin(old) != _origin(new):
        headers = {name: value for name, value in headers.items() if name.lower() in _HARMLESS}
        if body is not None:
            raise InvalidInput(
                _("The server sends this request on to another server. Give the final address."), code="redirect_loop", field="url"
            )
    return _Ask(method, headers, body, ask.max_bytes, ask.deadline, ask.on_chunk)


def _origin(parts: Any) -> tuple[str, str, int]:
    return parts.scheme, (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def _send(parts: Any, ask: _Ask) -> Fetched | tuple[int, str]:
    """The answer, or the status and address of a redirect."""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    places = addresses_of(parts.hostname, port)
    connection = wire.Connection(parts.hostname, port, places=places, secure=secure, deadline=ask.deadline)
    target = urlunsplit(("", "", parts.path, parts.query, ""))
    try:
        with wire.watched(connection):
            connection.request(ask.method, target, body=ask.body, headers={**HEADERS, **ask.headers})
            response = connection.getresponse()
            headers = _headers_of(response)
            if response.status in _REDIRECTS and "location" in headers:
                return response.status, headers["location"]
            declared = headers.get("content-length", "")
            if ask.method != "HEAD" and declared.isdigit() and (len(declared) > 18 or int(declared) > ask.max_bytes):
                raise wire.too_large(ask.max_bytes)
            encoding = "" if ask.method == "HEAD" else headers.get("content-encoding", "")
            path = wire.save(response, encoding, ask.max_bytes, ask.deadline, connection, ask.on_chunk)
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= ask.deadline or isinstance(error, TimeoutError):
            raise TransientError("the server took too long to answer", code="timeout") from error
        raise TransientError(f"the server could not be read: {type(error).__name__}", code="fetch_failed") from error
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    return Fetched(urlunsplit(parts), response.status, headers, path, media_type)


def _headers_of(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}
