"""Outbound HTTP: what may be reached, how long it may take, how much it may send. Model endpoints share the check of addresses.

SECURITY: a host is resolved once, every address it has is checked, and the connection goes to the address that was checked (so a name
that changes its mind between check and connect gains nothing). Redirects are followed here, one checked hop at a time.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import os
import socket
import ssl
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput, TransientError
from apps.common.storage import temp_folder

MAX_REDIRECTS = 5
MAX_URL = 2048
BLOCK = 64 * 1024
HEADERS = {"User-Agent": "kbportal/1 (document import)", "Accept-Encoding": "gzip, deflate", "Connection": "close"}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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

    def close(self) -> None:
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Fetched:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def check_url(url: str) -> str:
    """The address in the form it is fetched in: no fragment, host in ASCII, path escaped.

    Raises: InvalidInput(bad_url, refused_address) for other schemes, credentials in the address, hosts that may not be reached.
    """
    parts = _parts(url)
    _addresses(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    return urlunsplit(parts)


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
    deadline = time.monotonic() + timeout_s
    seen: set[str] = set()
    for _hop in range(MAX_REDIRECTS + 1):
        parts = _parts(url)
        current = urlunsplit(parts)
        if current in seen:
            break
        seen.add(current)
        outcome = _get(parts, accept, max_bytes, deadline, on_chunk)
        if isinstance(outcome, Fetched):
            return outcome
        url = urljoin(current, outcome)
    raise InvalidInput(_("This address redirects in circles or too often. Give the final address."), code="redirect_loop", field="url")


def _parts(url: str) -> Any:
    bad = InvalidInput(_("This is not a web address. Write one like https://example.com/page."), code="bad_url", field="url")
    url = url.strip()
    if len(url) > MAX_URL or any(ord(sign) < 33 for sign in url):
        raise bad
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if ":" in host else host.encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        raise bad from None
    if parts.scheme not in ("http", "https") or not host:
        raise bad
    if parts.username or parts.password:
        raise InvalidInput(_("Leave user name and password out of the address."), code="bad_url", field="url")
    netloc = f"[{host}]" if ":" in host else host
    netloc = f"{netloc}:{port}" if port else netloc
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    return parts._replace(netloc=netloc, path=path, query=quote(parts.query, safe="/%:@!$&'()*+,;=~-._?"), fragment="")


def _allowed(host: str, address: Address, allow: Sequence[str] | None = None) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is not None and not _allowed(host, inner, allow):
            return False
        if address in ipaddress.ip_network("64:ff9b::/96") and not _allowed(host, ipaddress.IPv4Address(int(address) & 0xFFFFFFFF), allow):
            return False
    if address.is_global and not address.is_multicast:
        return True
    for entry in settings.FETCH_ALLOW if allow is None else allow:
        if entry.lower() == host.lower():
            return True
        with contextlib.suppress(ValueError):
            if address in ipaddress.ip_network(entry, strict=False):
                return True
    return False


def _addresses(host: str, port: int) -> list[tuple[int, Any]]:
    """(family, socket address) of every address of a host. Raises: InvalidInput when one of them may not be reached."""
    refused = _("This address is in a private network, which imports may not reach. Ask an administrator to allow it (KB_FETCH_ALLOW).")
    return checked_places(host, port, allow=settings.FETCH_ALLOW, refused=refused)


def checked_places(host: str, port: int, *, allow: Sequence[str], refused: Any, field: str = "url") -> list[tuple[int, Any]]:
    """(family, socket address) of every address of a host: connect to these and the check holds.

    `allow`: hosts and ranges that may be reached although they are private; `refused`: what is said of an address that may not.

    Raises: InvalidInput (unknown_host, refused_address) when the name is unknown or one of its addresses may not be reached.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InvalidInput(_("No server of this name was found. Check the address."), code="unknown_host", field=field) from None
    addresses: list[tuple[int, Any]] = []
    for family, _type, _proto, _name, place in found:
        address = ipaddress.ip_address(str(place[0]).split("%")[0])
        if not _allowed(host, address, allow):
            raise InvalidInput(refused, code="refused_address", field=field)
        addresses.append((family, place))
    return addresses


class _Connection(http.client.HTTPConnection):
    """Connects to one of the addresses that were checked; Host and TLS name stay those of the address that was asked for."""

    def __init__(self, host: str, port: int, *, places: list[tuple[int, Any]], secure: bool, deadline: float) -> None:
        super().__init__(host, port)
        self.places = places
        self.secure = secure
        self.deadline = deadline
        self.wire: socket.socket | None = None  # stays when http.client lets go of `sock` although the body is still being read
        if secure:
            self.default_port = 443

    def connect(self) -> None:
        last: OSError | None = None
        for family, place in self.places:
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.settimeout(_left(self.deadline))
            try:
                sock.connect(place)
                if self.secure:
                    sock = ssl.create_default_context().wrap_socket(sock, server_hostname=self.host)
            except OSError as error:
                sock.close()
                last = error
                continue
            self.sock = self.wire = sock
            return
        raise last or OSError("no address")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


@contextlib.contextmanager
def _watched(connection: _Connection) -> Iterator[None]:
    """Cut the connection at the deadline: a peer that sends one byte now and then would outlast every socket timeout."""

    def cut() -> None:
        with contextlib.suppress(OSError):
            if connection.wire is not None:
                connection.wire.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, connection.deadline - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        connection.close()


def _get(parts: Any, accept: str, max_bytes: int, deadline: float, on_chunk: Callable[[int], None] | None) -> Fetched | str:
    """The answer, or the address it redirects to."""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    places = _addresses(parts.hostname, port)
    connection = _Connection(parts.hostname, port, places=places, secure=secure, deadline=deadline)
    target = urlunsplit(("", "", parts.path, parts.query, ""))
    try:
        with _watched(connection):
            connection.request("GET", target, headers={**HEADERS, "Accept": accept})
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            if response.status in (301, 302, 303, 307, 308) and "location" in headers:
                return headers["location"]
            declared = headers.get("content-length", "")
            if declared.isdigit() and (len(declared) > 18 or int(declared) > max_bytes):
                raise _too_large(max_bytes)
            path = _save(response, headers.get("content-encoding", ""), max_bytes, deadline, connection, on_chunk)
    except (OSError, http.client.HTTPException) as error:
        if time.monotonic() >= deadline or isinstance(error, TimeoutError):
            raise TransientError("the server took too long to answer", code="timeout") from error
        raise TransientError(f"the server could not be read: {type(error).__name__}", code="fetch_failed") from error
    media_type = headers.get("content-type", "").split(";")[0].strip().lower()
    return Fetched(urlunsplit(parts), response.status, headers, path, media_type)


def _too_large(max_bytes: int) -> InvalidInput:
    return InvalidInput(
        _("What is at this address is too large (limit %(limit)d MiB).") % {"limit": max(1, max_bytes >> 20)}, code="too_large", field="url"
    )


def _save(
    response: http.client.HTTPResponse,
    encoding: str,
    max_bytes: int,
    deadline: float,
    connection: _Connection,
    on_chunk: Callable[[int], None] | None,
) -> Path:
    """Copy the body into a temporary file, unpacked, never more than `max_bytes` of it."""
    handle, name = tempfile.mkstemp(prefix="kb-fetch-", dir=temp_folder())
    path = Path(name)
    written = 0
    try:
        with os.fdopen(handle, "wb") as target:
            for block in _unpacked(_blocks(response, connection, deadline), encoding.strip().lower(), max_bytes):
                written += len(block)
                if written > max_bytes:
                    raise _too_large(max_bytes)
                target.write(block)
                if on_chunk is not None:
                    on_chunk(written)
        _left(deadline)  # a body that ended because it was cut is not a body
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _blocks(response: http.client.HTTPResponse, connection: _Connection, deadline: float) -> Iterator[bytes]:
    while True:
        left = _left(deadline)
        if connection.wire is not None:
            connection.wire.settimeout(left)
        block = response.read1(BLOCK)
        if not block:
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return
        yield block


def _unpacked(blocks: Iterator[bytes], encoding: str, max_bytes: int) -> Iterator[bytes]:
    """The body without gzip or deflate, in pieces of at most `BLOCK` bytes: a bomb is counted as it swells, not after."""
    if encoding in ("", "identity"):
        yield from blocks
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise InvalidInput(_("This server packs its answer in a way that is not supported."), code="bad_encoding", field="url")
    unpacker: Any = None
    for block in blocks:
        if unpacker is None:
            raw_deflate = encoding == "deflate" and (block[0] & 0x0F) != 8
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS if raw_deflate else zlib.MAX_WBITS | 32)
        try:
            piece = unpacker.decompress(block, BLOCK)
            while piece:
                yield piece
                piece = unpacker.decompress(unpacker.unconsumed_tail, BLOCK)
        except zlib.error:
            raise InvalidInput(_("What this server sent is damaged."), code="bad_encoding", field="url") from None
    if unpacker is not None and not unpacker.eof:
        raise http.client.IncompleteRead(b"")
