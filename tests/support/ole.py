"""Files of Word and PowerPoint 97 made by hand: the least that their readers take for one. Source: [MS-CFB], [MS-DOC], [MS-PPT]."""

from __future__ import annotations

import struct

SECTOR = 512
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
SMALLEST = 4096  # shorter streams would have to live in the mini stream


def compound(streams: dict[str, bytes]) -> bytes:
    """A compound file with these streams at its root."""
    padded = {name: data + b"\0" * (max(SMALLEST, -(-len(data) // SECTOR) * SECTOR) - len(data)) for name, data in streams.items()}
    directories = -(-(len(streams) + 1) * 128 // SECTOR)
    fat = [FAT] + [at + 1 for at in range(1, directories)] + [END]
    starts: dict[str, int] = {}
    for name, data in padded.items():
        starts[name], count = len(fat), len(data) // SECTOR
        fat += [*range(len(fat) + 1, len(fat) + count), END]
    assert len(fat) <= SECTOR // 4, "one FAT sector holds 128 entries"
    names = list(padded)
    entries = [_entry("Root Entry", 5, child=1, start=END, size=0)]
    for number, name in enumerate(names, 1):  # a chain to the right is a tree as well, if the names come in its order
        entries.append(_entry(name, 2, right=number + 1 if number < len(names) else FREE, start=starts[name], size=len(padded[name])))
    directory = b"".join(entries).ljust(directories * SECTOR, b"\0")
    table = struct.pack(f"<{SECTOR // 4}I", *fat, *[FREE] * (SECTOR // 4 - len(fat)))
    return _header() + table + directory + b"".join(padded.values())


def _header() -> bytes:
    fields = struct.pack(
        "<8s16sHHHHH6xIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, SMALLEST, END, 0, END, 0
    )
    return fields + struct.pack("<109I", 0, *[FREE] * 108)


def _entry(name: str, kind: int, *, child: int = FREE, right: int = FREE, start: int, size: int) -> bytes:
    raw = name.encode("utf-16-le")
    return struct.pack("<64sHBBIII16sIQQIQ", raw, len(raw) + 2, kind, 1, FREE, right, child, b"", 0, 0, 0, start, size)


def doc(text: str) -> bytes:
    """A Word 97 document of these paragraphs (lines)."""
    body = text.replace("\n", "\r").encode("utf-16-le")
    start, count = 0x800, len(body) // 2
    fib = bytearray(start)
    struct.pack_into("<HHHHHH", fib, 0, 0xA5EC, 0x00C1, 0, 0x0409, 0, 0x0200)  # flag: the table is 1Table
    struct.pack_into("<II", fib, 0x18, start, start + len(body))
    struct.pack_into("<H", fib, 0x20, 14)
    struct.pack_into("<H", fib, 0x3E, 22)
    struct.pack_into("<I", fib, 0x4C, count)
    struct.pack_into("<H", fib, 0x98, 93)
    pieces = struct.pack("<II", 0, count) + struct.pack("<HIH", 0, start, 0)
    clx = b"\x02" + struct.pack("<I", len(pieces)) + pieces
    struct.pack_into("<II", fib, 0x1A2, 0, len(clx))
    return compound({"1Table": clx, "WordDocument": bytes(fib) + body})


def _record(kind: int, data: bytes, *, version: int = 0, instance: int = 0) -> bytes:
    return struct.pack("<HHI", version | instance << 4, kind, len(data)) + data


def ppt(*slides: str) -> bytes:
    """A PowerPoint 97 file whose slides have these titles."""
    texts = b""
    for number, title in enumerate(slides):
        persist = struct.pack("<IIIII", number + 2, 0, 1, 256 + number, 0)
        texts += _record(0x03F3, persist) + _record(0x0F9F, struct.pack("<I", 0)) + _record(0x0FA0, title.encode("utf-16-le"))
    document = _record(0x03E8, _record(0x03E9, b"\0" * 40, version=1) + _record(0x0FF0, texts, version=15), version=15)
    bodies = [document]
    for _title in slides:
        bodies.append(_record(0x03EE, _record(0x03EF, b"\0" * 24, version=2), version=15))
    offsets, at = [], 0
    for body in bodies:
        offsets.append(at)
        at += len(body)
    directory_at = at
    directory = _record(0x1772, struct.pack(f"<I{len(offsets)}I", 1 | len(offsets) << 20, *offsets))
    edit_at = directory_at + len(directory)
    edit = _record(0x0FF5, struct.pack("<IHBBIIIIHH", 256, 0, 0, 3, 0, directory_at, 1, len(offsets) + 1, 1, 0))
    user = _record(0x0FF6, struct.pack("<IIIHHBB2x", 20, 0xE391C05F, edit_at, 0, 0x03F4, 3, 0))
    return compound({"Current User": user, "PowerPoint Document": b"".join(bodies) + directory + edit})
