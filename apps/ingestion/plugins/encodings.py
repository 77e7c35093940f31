"""Bytes to text. The order is measured: mark, NUL pattern, UTF-8, mostly UTF-8, then a short list of candidates.

The short list matters: over all encodings short Chinese texts are guessed wrong; GB2312 and GBK are read as GB18030, which holds both.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

from apps.ingestion.plugins.protocol import ParseFailure

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
CANDIDATES = ("utf_8", "gb18030", "big5", "utf_16_le", "utf_16_be", "cp1252", "shift_jis", "euc_kr")
_FAMILY = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "cp936": "gb18030",
    "hz": "hz",
    "big5hkscs": "big5hkscs",
    "iso8859-1": "cp1252",
    "ascii": "utf-8",
}
_SAMPLE = 65_536
_MULTI = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\xc2-\xdf][\x80-\xbf]")
_HIGH = re.compile(rb"[\x80-\xff]")
_CLAIM = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([\w:.-]+)|<\?xml[^>]+encoding\s*=\s*["']([\w:.-]+)""", re.I)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, the encoding it was read as, and how many bytes could not be read."""

    text: str
    encoding: str
    replaced: int = 0


def canonical(name: str) -> str:
    """The codec that reads what `name` claims (GB2312 and GBK become gb18030), or "" for an unknown or non-text name."""
    try:
        info = codecs.lookup(name.strip())
    except (LookupError, ValueError):
        return ""
    if not getattr(info, "_is_text_encoding", True):
        return ""
    return _FAMILY.get(info.name, info.name)


def decode(data: bytes, override: str = "", claims: tuple[str, ...] = ()) -> Decoded:
    """The text of a file of unknown encoding. `claims` (a header, a meta tag) only join the candidates: valid bytes beat them.

    Raises: ParseFailure("unsupported_type") when the override names no known encoding.
    """
    if override:
        codec = canonical(override)
        if not codec:
            raise ParseFailure("unsupported_type", f"unknown text encoding {override!r}", field="encoding")
        return _read(data, codec)
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _read(data, codec)
    if codec := utf16_without_mark(data):
        return _read(data, codec)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return Decoded(text, "utf-8") if b"\x1b$" not in data else _escaped(data, text)
    if _mostly_utf8(data):
        return _read(data, "utf-8")
    return _read(data, _guess(data, tuple(filter(None, map(canonical, claims)))))


def decode_html(data: bytes, override: str = "", header: str = "") -> Decoded:
    """The text of a web page; `header` is the charset of its Content-Type. Neither header nor meta is believed over valid bytes."""
    found = _CLAIM.search(data[:4096])
    meta = next((g for g in found.groups() if g), b"").decode("ascii", "ignore") if found else ""
    return decode(data, override, tuple(c for c in (header, meta) if c))


def _read(data: bytes, codec: str) -> Decoded:
    try:
        return Decoded(data.decode(codec), codec)
    except UnicodeDecodeError:
        text = data.decode(codec, "replace")
        return Decoded(text, codec, text.count("\ufffd"))


def _escaped(data: bytes, text: str) -> Decoded:
    try:
        return Decoded(data.decode("iso2022_jp"), "iso2022_jp")
    except UnicodeDecodeError:
        return Decoded(text, "utf-8")


def utf16_without_mark(data: bytes) -> str:
    """UTF-16 without a mark is valid UTF-8 where it is ASCII, but every second byte of that part is NUL."""
    head = data[:4096]
    head = head[: len(head) // 2 * 2]
    if len(head) < 4 or b"\0" not in head:
        return ""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    for mine, other, codec in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if mine > 0.2 * half and other < 0.02 * half + 1 and other * 10 < mine:
            return codec
        if mine and mine >= 2 * other and not _strict(head, "utf-8") and _strict(head, codec) and _sane(head.decode(codec, "ignore")):
            return codec  # Chinese with a few ASCII commas
    return ""


def _sane(text: str) -> bool:
    odd = sum(1 for c in text if unicodedata.category(c) in ("Cc", "Co", "Cn", "Cs") and c not in "\t\r\n")
    return odd <= 0.01 * len(text)


def _mostly_utf8(data: bytes) -> bool:
    """A few broken bytes in a UTF-8 text: better a replacement mark than another alphabet."""
    sample = data[:4_000_000]
    rest, good = _MULTI.subn(b"", sample)
    bad = len(_HIGH.findall(rest))
    if good < 2:
        return False
    if good >= 4 * bad:
        return True
    return good >= 0.8 * bad and not _strict(sample, "gb18030") and not _strict(sample, "big5")


def _strict(data: bytes, codec: str) -> bool:
    try:
        codecs.getincrementaldecoder(codec)("strict").decode(data, final=False)
    except UnicodeDecodeError:
        return False
    return True


def _guess(data: bytes, claims: tuple[str, ...]) -> str:
    # Only the lines that are not ASCII tell anything; so one Chinese line at the end of a long ASCII file is found.
    lines, size = [], 0
    for found in re.finditer(rb"[^\n]*[\x80-\xff][^\n]*\n?", data):
        lines.append(found.group())
        size += len(lines[-1])
        if size > _SAMPLE:
            break
    sample = b"".join(lines)
    high = len(_HIGH.findall(sample))
    if high <= 64 and (codec := _short_double_byte(sample)) and not any(c in claims for c in ("euc_kr", "euc_jp", "shift_jis", "cp949")):
        return codec
    from charset_normalizer import from_bytes

    wanted = list(dict.fromkeys([*CANDIDATES, *(c.replace("-", "_") for c in claims)]))
    best = from_bytes(sample, cp_isolation=wanted).best()
    if best is not None:
        name = canonical(best.encoding)
        if name:
            return name
    for codec in (*claims, "gb18030", "big5"):
        if _strict(sample, codec):
            return codec
    return "gb18030" if _short_double_byte(sample, loose=True) else "cp1252"


def _short_double_byte(sample: bytes, *, loose: bool = False) -> str:
    """gb18030 when nearly all pairs are GB2312's: too few bytes for statistics, but the rows (B0-D7 common words) tell."""
    pairs = re.findall(rb"[\x81-\xfe][\x40-\xfe]", sample)
    if not pairs:
        return ""
    if not loose and len(pairs) >= 8 and all(0xB0 <= p[0] <= 0xC8 or p[0] <= 0xA3 for p in pairs):
        return ""  # Korean syllables fill just these rows; Chinese words of this length hardly ever do
    common = sum(1 for p in pairs if 0xB0 <= p[0] <= 0xD7 and p[1] >= 0xA1 or 0xA1 <= p[0] <= 0xA3 and p[1] >= 0xA1)
    if loose:
        return "gb18030" if common >= 0.5 * len(pairs) else ""
    return "gb18030" if len(pairs) >= 2 and common >= 0.85 * len(pairs) and _strict(sample, "gb18030") else ""
