"""dulwich's clients over our connections: HTTP through `Link.web`, git:// through a socket to a checked address."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from dulwich.client import AbstractHttpGitClient, GitClient, TCPGitClient
from dulwich.protocol import Protocol

from apps.common import http
from apps.common.errors import InvalidInput
from apps.sources.plugins.protocol import SourceError

PACK_LIMIT = 1 << 30
TALK_S = 900.0
SILENCE_S = 60.0


class WebClient(AbstractHttpGitClient):
    """Smart HTTP. SECURITY: credentials go to the origin they were given for, whatever a redirect or an answer says."""

    def __init__(self, web: Any, base_url: str, username: str, password: str) -> None:
        super().__init__(base_url, thin_packs=True, quiet=True)
        self.web = web
        self.home = _origin(base_url)
        self.auth = base64.b64encode(f"{username or 'git'}:{password}".encode()).decode() if password else ""
        if self.auth:
            web.hide(self.auth)

    def _http_request(
        self, url: str, headers: dict[str, str] | None = None, data: bytes | Iterator[bytes] | None = None, raise_for_status: bool = True
    ) -> Any:
        sent = {name: value for name, value in (headers or {}).items() if name.lower() != "content-length"}
        if self.auth and _origin(url) == self.home:
            sent["Authorization"] = f"Basic {self.auth}"
        body = data if data is None or isinstance(data, bytes) else b"".join(data)
        answer = self.web.request("GET" if body is None else "POST", url, headers=sent, body=body, max_bytes=PACK_LIMIT, large=True)
        stream = answer.path.open("rb")
        answer.close()  # the open file is read to its end all the same
        response = SimpleNamespace(
            status=answer.status,
            headers=answer.headers,
            content_type=answer.headers.get("content-type"),
            redirect_location=answer.url if answer.url != url else "",
            close=stream.close,
        )
        return response, stream.read


class SocketClient(TCPGitClient):
    """git:// over a socket to an address that was checked; cut when the talk takes too long."""

    def _connect(self, cmd: bytes, path: str | bytes, protocol_version: int | None = None) -> Any:
        try:
            sock = http.connect(self._host, self._port, timeout_s=SILENCE_S)
        except InvalidInput as error:
            raise SourceError(error.code, str(error.message)) from None
        sock.settimeout(SILENCE_S)
        timer = threading.Timer(TALK_S, lambda: _cut(sock))
        timer.daemon = True
        timer.start()
        reader, writer = sock.makefile("rb", -1), sock.makefile("wb", 0)

        def close() -> None:
            timer.cancel()
            reader.close()
            writer.close()
            sock.close()

        protocol = Protocol(reader.read, writer.write, close)
        target = path if isinstance(path, bytes) else path.encode()
        self.protocol_version = 0
        host = self._host.encode("ascii") + (f":{self._port}".encode() if self._port != 9418 else b"")
        protocol.send_cmd(b"git-" + cmd, target, b"host=" + host)
        return protocol, lambda: False, None


def client_for(web: Any, url: str, username: str, password: str) -> tuple[GitClient, str]:
    """A client for a repository, and the repository's path for it."""
    parts = urlsplit(url)
    if parts.scheme == "git":
        return SocketClient(parts.hostname or "", parts.port or 9418, thin_packs=True, quiet=True), parts.path
    return WebClient(web, url, username, password), ""


@contextlib.contextmanager
def told_plainly(web: Any) -> Iterator[None]:
    """What goes wrong in talking Git, as SourceError."""
    from dulwich import errors
    from dulwich.client import HTTPUnauthorized, InvalidWants
    from dulwich.objects import ObjectFormatException
    from dulwich.pack import UnresolvedDeltas

    try:
        yield
    except TimeoutError:
        raise SourceError("timeout", "the server took too long to answer", passing=True) from None
    except errors.NotGitRepository:
        raise SourceError("not_found", "there is no Git repository at this address", field="url") from None
    except HTTPUnauthorized:
        raise SourceError("auth") from None
    except errors.HangupException:
        raise SourceError("unavailable", "the server ended the talk; the repository may not exist", passing=True) from None
    except (
        errors.GitProtocolError,
        errors.ChecksumMismatch,
        errors.ApplyDeltaError,
        errors.ObjectFormatException,
        errors.WrongObjectException,
        errors.ObjectMissing,
        ObjectFormatException,
        UnresolvedDeltas,
        InvalidWants,
        AssertionError,
        EOFError,
        KeyError,
        ValueError,
        _zlib_error(),
    ) as error:
        raise web.error("bad_answer", f"{type(error).__name__}: {error}"[:200]) from None
    except OSError as error:
        raise web.error("unavailable", f"the server could not be read: {type(error).__name__}", passing=True) from None


def _zlib_error() -> type[Exception]:
    import zlib

    return zlib.error


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _cut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
