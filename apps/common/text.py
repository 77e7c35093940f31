"""Small pure helpers for text and names."""

from __future__ import annotations

import re
import unicodedata

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_RESERVED = {"con", "prn", "aux", "nul", *(f"com{n}" for n in range(1, 10)), *(f"lpt{n}" for n in range(1, 10))}


def utf16_length(text: str) -> int:
    """Length in UTF-16 units, the unit of the contract's limits (an astral character counts 2)."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clean_line(raw: str) -> str:
    """One line of text as people mean it: NFC, no control or bidi-override characters, single spaces, trimmed."""
    return " ".join(_CONTROL.sub(" ", unicodedata.normalize("NFC", raw)).split())


def display_name(raw: str, *, fallback: str = "document", max_bytes: int = 255) -> str:
    """A file name safe to show and store: last path part, NFC, no control or bidi-override characters, at most `max_bytes` of UTF-8.

    The extension survives shortening. Names are data, never paths: storage never uses them.
    """
    name = unicodedata.normalize("NFC", raw.replace("\\", "/").rsplit("/", 1)[-1])
    name = _CONTROL.sub("", name).strip()
    if not name.strip(". "):
        name = fallback
    if len(name.encode()) <= max_bytes:
        return name
    stem, dot, extension = name.rpartition(".")
    tail = dot + extension if dot and len(extension.encode()) <= 20 else ""
    stem = stem if tail else name
    room = max_bytes - len(tail.encode())
    return stem.encode()[:room].decode("utf-8", "ignore").rstrip() + tail


def folder_path(raw: str) -> str:
    """A folder path in contract form (knowledge 5.1): segments trimmed, '.' and '..' dropped, 128 bytes each, 16 deep, 1024 in all."""
    parts: list[str] = []
    for part in raw.replace("\\", "/").split("/"):
        part = _CONTROL.sub("", unicodedata.normalize("NFC", part)).strip().rstrip(". ").strip()
        if part in ("", ".", ".."):
            continue
        parts.append(part.encode()[:128].decode("utf-8", "ignore").rstrip(". "))
    parts = parts[:16]
    while parts and len("/".join(parts).encode()) > 1024:
        parts.pop()
    return "/".join(parts)


def archive_name(name: str) -> str:
    """A name for an entry of an archive (contract knowledge 4.16), without what a file system refuses or what turns text around."""
    name = re.sub(r'[<>:"/\\|?*]', "_", _CONTROL.sub("_", name)).strip(" .") or "document"
    stem, dot, extension = name.rpartition(".")
    if not dot or len(extension.encode()) > 20:
        stem, extension = name, ""
    stem = stem.encode()[:180].decode("utf-8", "ignore")
    if stem.lower() in _RESERVED:
        stem = "_" + stem
    return f"{stem}.{extension}" if extension else stem
