"""A look at a pack before anything unpacks it: how large its objects become.

SECURITY: a pack of some kilobytes can hold objects of gigabytes, by compression or by deltas that copy. The sizes it declares are added up
here; whoever unpacks it afterwards holds each object to what it declared.
"""

from __future__ import annotations

import zlib
from typing import IO

from apps.sources.plugins.protocol import SourceError

MAX_OBJECT = 100 << 20
MAX_TOTAL = 4 << 30
MAX_OBJECTS = 1_000_000
_BLOCK = 64 * 1024
_OFS_DELTA, _REF_DELTA = 6, 7


class _Bytes:
    """The stream with a place to give back what was read too far."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.rest = stream, b""

    def some(self) -> bytes:
        found, self.rest = self.rest or self.stream.read(_BLOCK), b""
        if not found:
            raise SourceError("bad_answer", "the pack ends too early")
        return found

    def take(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            found += self.some()
        found, self.rest = found[:count], found[count:] + self.rest
        return found


def check_pack(stream: IO[bytes]) -> int:
    """How many objects a pack holds. Raises: SourceError(too_large, too_many, bad_answer)."""
    source = _Bytes(stream)
    head = source.take(12)
    if head[:4] != b"PACK":
        raise SourceError("bad_answer", "the server sent no pack")
    count = int.from_bytes(head[8:], "big")
    if count > MAX_OBJECTS:
        raise SourceError("too_many", f"more than {MAX_OBJECTS} objects", params={"limit": MAX_OBJECTS})
    total = 0
    for _number in range(count):
        total += _object(source)
        if total > MAX_TOTAL:
            raise SourceError("too_large", "the repository is too large", params={"limit": MAX_TOTAL})
    return count


def _object(source: _Bytes) -> int:
    """The size an object declares, its delta's result counted too."""
    byte = source.take(1)[0]
    kind, size, shift = (byte >> 4) & 7, byte & 15, 4
    while byte & 0x80:
        byte = source.take(1)[0]
        size |= (byte & 0x7F) << shift
        shift += 7
        if shift > 63:
            raise SourceError("bad_answer", "the pack is damaged")
    if kind == _REF_DELTA:
        source.take(20)
    elif kind == _OFS_DELTA:
        while source.take(1)[0] & 0x80:
            pass
    elif kind not in (1, 2, 3, 4):
        raise SourceError("bad_answer", "the pack is damaged")
    _hold(size)
    start = _inflate(source, size)
    if kind in (_OFS_DELTA, _REF_DELTA):
        _base, at = _number(start, 0)
        size, _at = _number(start, at)
        _hold(size)
    return size


def _hold(size: int) -> None:
    if size > MAX_OBJECT:
        raise SourceError("too_large", "the repository holds a file that is too large", params={"limit": MAX_OBJECT})


def _number(data: bytes, at: int) -> tuple[int, int]:
    size = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise SourceError("bad_answer", "the pack is damaged")
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return size, at


def _inflate(source: _Bytes, size: int) -> bytes:
    """The beginning of an object's bytes; all of them are passed over, a block at a time."""
    unpacker, start, done = zlib.decompressobj(), b"", 0
    data = source.some()
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(data, _BLOCK)
            done += len(piece)
            if len(start) < 32:
                start = (start + piece)[:32]
            if done > size:
                raise SourceError("bad_answer", "the pack is damaged")
            data = unpacker.unconsumed_tail
            if not data and not unpacker.eof:
                data = source.some()
    except zlib.error:
        raise SourceError("bad_answer", "the pack is damaged") from None
    source.rest = unpacker.unused_data + source.rest
    return start
