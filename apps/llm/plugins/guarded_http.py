"""The HTTP client under the official model clients: it connects only to addresses that were checked, and keeps a deadline.

SECURITY: the name is resolved once per connection, every address it has is checked, and the connection goes to one of those. A name that
changes its mind between check and connect gains nothing. No redirects, no proxies or credentials from the environment.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2

from apps.llm.plugins.guard import Guard

if TYPE_CHECKING:
    import ssl

MAX_CONNECTIONS = 16
_call = threading.local()


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Whatever this thread sends and reads inside the block is over by then, however slowly the other side drips."""
    before = getattr(_call, "until", None)
    _call.until = time.monotonic() + seconds
    try:
        yield
    finally:
        _call.until = before


def _left(timeout: float | None) -> float | None:
    until = getattr(_call, "until", None)
    if until is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("the deadline of the call is over")
    return left if timeout is None else min(timeout, left)


class _Stream(httpcore2.NetworkStream):
    """A connection whose every read and write ends by the deadline of the call."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore2.NetworkBackend):
    """Opens connections to checked addresses; the TLS name and the Host header stay those of the address that was asked for."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._plain = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        last: Exception | None = None
        for place in self._guard.places(host, port):
            try:
                return _Stream(self._plain.connect_tcp(place, port, _left(timeout), local_address, socket_options))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
        raise last or httpcore2.ConnectError("no address")

    def sleep(self, seconds: float) -> None:
        self._plain.sleep(seconds)


class _Transport(httpx2.HTTPTransport):
    """The client's own transport over a pool that opens its connections through `_Backend`."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(trust_env=False)
        self._pool.close()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=5.0,
            network_backend=_Backend(guard),
        )


def guarded_client(guard: Guard, timeout: httpx2.Timeout) -> httpx2.Client:
    """A client for the official libraries; threads may share it."""
    return httpx2.Client(transport=_Transport(guard), timeout=timeout, follow_redirects=False, trust_env=False)
