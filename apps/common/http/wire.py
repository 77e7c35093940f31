"""One connection: to an address that was checked, cut at its deadline, its answer unpacked piece by piece into a temporary file."""

from __future__ import annotations

import contextlib
import functools
import http.client
import os
import socket
import ssl
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.common.storage import temp_folder

BLOCK = 64 * 1024


class Connection(http.client.HTTPConnection):
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
            sock.settimeout(left_until(self.deadline))
            try:
                self.wire = sock  # before the handshake, so that the deadline cuts that too
                sock.connect(place)
                if self.secure:
                    sock = _tls().wrap_socket(sock, server_hostname=self.host)
            except OSError as error:
                sock.close()
                last = error
                continue
            self.sock = self.wire = sock
            return
        raise last or OSError("no address")


@functools.lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # reading the authorities takes 20 ms: once


def left_until(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


@contextlib.contextmanager
def watched(connection: Connection) -> Iterator[None]:
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


def too_large(max_bytes: int) -> InvalidInput:
    return InvalidInput(
        _("What is at this address is too large (limit %(limit)d MiB).") % {"limit": max(1, max_bytes >> 20)}, code="too_large", field="url"
    )


def save(
    response: http.client.HTTPResponse,
    encoding: str,
    max_bytes: int,
    deadline: float,
    connection: Connection,
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
                    raise too_large(max_bytes)
                target.write(block)
                if on_chunk is not None:
                    on_chunk(written)
        left_until(deadline)  # a body that ended because it was cut is not a body
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _blocks(response: http.client.HTTPResponse, connection: Connection, deadline: float) -> Iterator[bytes]:
    while True:
        left = left_until(deadline)
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
