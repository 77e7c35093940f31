"""Lines of a PDF page with their boxes, as PDFium orders them."""

from __future__ import annotations

import ctypes
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Any

Box = tuple[float, float, float, float]  # left, top, right, bottom as fractions of the page

_CID = re.compile(r"\(cid:\d+\)")
_JUNK = re.compile("[\ue000-\uf8ff\ufffd\x00-\x08\x0e-\x1f\U000f0000-\U0010fffd]")
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u3000-\u303f]")
#: Private-use code points of symbol fonts that are bullets, not text.
_BULLETS = str.maketrans(dict.fromkeys("\uf0b7\uf0a7\uf06c\uf0d8\uf076\uf0fc\uf06e\uf0a8\uf071", "•"))
HYPHEN = "\ufffe"


@dataclass(slots=True)
class Line:
    """One line of a page: its text, box, and font size (points)."""

    text: str
    box: Box
    size: float
    joined: bool = False  # ended in a hyphen that was only there for the line break
    base: float = 0.0  # of the baseline, as a fraction of the page's height; steadier than the box, which hugs the letters
    em: float = 0.0  # the font size as a fraction of the page's height
    gaps: int = 0  # wide blanks inside the line: two or more are columns of a table without rules

    def __post_init__(self) -> None:
        self.base = self.base or self.box[3]
        self.em = self.em or max(0.9 * self.height, 0.004)

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]

    @property
    def tabular(self) -> bool:
        return self.gaps >= 2


def page_lines(page: Any, textpage: Any, height: float) -> list[Line]:
    """The page's lines in reading order. The caller holds the PDFium lock."""
    import pypdfium2.raw as raw

    handle = textpage.raw
    total = raw.FPDFText_CountChars(handle)
    codes = [raw.FPDFText_GetUnicode(handle, i) for i in range(max(total, 0))]
    lines: list[Line] = []
    start = 0
    for index in range(total + 1):
        if index < total and codes[index] not in (10, 13):
            continue
        for first, last in _runs(raw, handle, codes, start, index):
            line = _line(raw, handle, page, codes[first:last], first, height)
            if line is not None:
                lines.append(line)
        start = index + 1
    return _with_hyphens(lines)


def _line(raw: Any, handle: Any, page: Any, codes: list[int], start: int, height: float) -> Line | None:
    text = _decode(codes)
    if not text.strip():
        return None
    box = _box(raw, handle, page, start, len(codes))
    first = next((i for i, code in enumerate(codes) if code > 32), 0)
    size = _size(raw, handle, start + first, (box[3] - box[1]) * height)
    origin = _origin(raw, handle, start + first)
    base = _to_fraction(raw, page, *origin)[1] if origin else box[3]
    gaps = _wide_gaps(raw, handle, codes, start, size)
    return Line(" ".join(text.translate(_BULLETS).split()), box, round(size, 1), base=base, em=size / height, gaps=gaps)


def _size(raw: Any, handle: Any, index: int, tall: float) -> float:
    """The size a character is shown in: many files set size 1 and scale by the matrix."""
    import math

    matrix = raw.FS_MATRIX()
    size = raw.FPDFText_GetFontSize(handle, index)
    if raw.FPDFText_GetMatrix(handle, index, ctypes.byref(matrix)):
        size *= math.hypot(matrix.c, matrix.d)
    return size if 0.3 * tall <= size <= 6 * tall or not tall else tall


def _origin(raw: Any, handle: Any, index: int) -> tuple[float, float] | None:
    x, y = ctypes.c_double(), ctypes.c_double()
    return (x.value, y.value) if raw.FPDFText_GetCharOrigin(handle, index, ctypes.byref(x), ctypes.byref(y)) else None


def _runs(raw: Any, handle: Any, codes: list[int], start: int, end: int) -> list[tuple[int, int]]:
    """The line [start, end), cut where PDFium put a blank between words that stand on different heights."""
    if end <= start:
        return []
    runs, first = [], start
    for index in range(start + 1, end - 1):
        if codes[index] != 32 or codes[index - 1] == 32 or codes[index + 1] == 32:
            continue
        before, after = _origin(raw, handle, index - 1), _origin(raw, handle, index + 1)
        if before is None or after is None or abs(after[1] - before[1]) < 4:
            continue
        if abs(after[1] - before[1]) > 0.9 * _size(raw, handle, index + 1, 0.0):
            runs.append((first, index))
            first = index + 1
    return [*runs, (first, end)]


def _wide_gaps(raw: Any, handle: Any, codes: list[int], start: int, size: float) -> int:
    """How many blanks in the line are wider than any between words."""
    edges = [ctypes.c_double() for _ in range(4)]  # left, right, bottom, top
    gaps = 0
    for index in range(1, len(codes) - 1):
        if codes[index] == 32 and codes[index - 1] != 32:
            after = next((i for i in range(index + 1, len(codes)) if codes[i] != 32), None)
            if after is None:
                break
            raw.FPDFText_GetCharBox(handle, start + index - 1, *edges)
            right = edges[1].value
            raw.FPDFText_GetCharBox(handle, start + after, *edges)
            gaps += edges[0].value - right > 1.2 * size
    return gaps


def _decode(codes: list[int]) -> str:
    if any(0xD800 <= code < 0xE000 for code in codes):
        units = b"".join(code.to_bytes(2, "little") for code in codes if code < 0x10000)
        return units.decode("utf-16-le", "replace")
    return "".join(map(chr, (code for code in codes if code < 0x110000)))


def _box(raw: Any, handle: Any, page: Any, start: int, count: int) -> Box:
    edges = [ctypes.c_double() for _ in range(4)]
    found: list[tuple[float, float, float, float]] = []
    for index in range(min(raw.FPDFText_CountRects(handle, start, count), 500)):
        if raw.FPDFText_GetRect(handle, index, *edges):
            found.append((edges[0].value, edges[1].value, edges[2].value, edges[3].value))
    if not found:
        return (0.0, 0.0, 1.0, 0.0)
    x0, y0 = _to_fraction(raw, page, min(f[0] for f in found), max(f[1] for f in found))
    x1, y1 = _to_fraction(raw, page, max(f[2] for f in found), min(f[3] for f in found))
    return (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


def _to_fraction(raw: Any, page: Any, px: float, py: float) -> tuple[float, float]:
    """PDFium maps user space to the shown page: rotation and crop box are then right by construction."""
    x, y, scale = ctypes.c_int(), ctypes.c_int(), 10_000
    raw.FPDF_PageToDevice(page.raw, 0, 0, scale, scale, 0, px, py, ctypes.byref(x), ctypes.byref(y))
    return min(max(x.value / scale, 0.0), 1.0), min(max(y.value / scale, 0.0), 1.0)


def _with_hyphens(lines: list[Line]) -> list[Line]:
    for line in lines:
        if line.text.endswith(HYPHEN):
            line.joined = True
        line.text = line.text.replace(HYPHEN, "" if line.joined else "-").strip()
    return [line for line in lines if line.text]


def join_lines(lines: list[Line]) -> str:
    """The lines as one running text: words broken at a line end are whole again, Chinese has no blank put in."""
    out = ""
    broken = tabular = False
    for line in lines:
        if out and (tabular or line.tabular):
            out += "\n" + line.text
        elif not out or broken:
            out += line.text
        elif _CJK.match(out[-1]) and _CJK.match(line.text[0]):
            out += line.text
        else:
            out += " " + line.text
        broken, tabular = line.joined, line.tabular
    return out


def is_garbled(text: str) -> bool:
    """Whether a text layer is nonsense: fonts without a Unicode map give private-use characters, `(cid:12)`, or letters shifted about."""
    bare = re.sub(r"\s+", "", text)
    if len(bare) < 4:
        return bool(bare) and bool(_CID.search(bare) or len(_JUNK.findall(bare)) == len(bare) > 1)
    cid = sum(len(m) for m in _CID.findall(bare))
    if cid >= 0.2 * len(bare):
        return True
    rest = _CID.sub("", bare)
    junk = len(_JUNK.findall(rest))
    if junk >= 0.2 * max(len(rest), 1):
        return True
    return _is_nonsense(rest)


def _is_nonsense(text: str) -> bool:
    """Symbols where letters should be, or rare characters of many alphabets mixed."""
    if len(text) < 40:
        return False
    kinds = Counter(unicodedata.category(c)[0] for c in text)
    letters = kinds["L"] + kinds["N"] + kinds["M"]
    if letters < 0.3 * len(text) and kinds["P"] + kinds["S"] + kinds["C"] > 0.65 * len(text) and len(set(text)) > 12:
        return True
    rare = sum(1 for c in text if "\u0100" <= c <= "\u02ff" or "\u1d00" <= c <= "\u1dff" or "\u0600" <= c <= "\u06ff" and not c.isalpha())
    odd = kinds["C"] + rare
    return odd > 0.4 * len(text)
