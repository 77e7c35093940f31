"""Text in pictures through rapidocr: quiet, offline, columns read one after the other, pages lying on their side turned."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

#: onnxruntime sends telemetry by default on Linux; it reads this before it loads.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

MIN_SCORE = 0.5
#: Difference of the brightest and the darkest value below which nothing can be read; paper grain and JPEG noise stay under it.
MIN_CONTRAST = 16

Box = tuple[float, float, float, float]


@dataclass(slots=True)
class OcrLine:
    """One line seen: text, box as fractions of the picture as it was given, its height in pixels, and how sure it is (0..1)."""

    text: str
    box: Box
    size: float
    score: float


@dataclass(slots=True)
class OcrResult:
    """Lines in reading order, and how far (degrees, counter-clockwise) the picture was turned to read them."""

    lines: list[OcrLine] = field(default_factory=list)
    turned: int = 0

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


@lru_cache(maxsize=1)
def _engine() -> Any:
    from rapidocr import RapidOCR

    threads = {"EngineConfig.onnxruntime.intra_op_num_threads": 2, "EngineConfig.onnxruntime.inter_op_num_threads": 1}
    return RapidOCR(params={"Global.log_level": "error", "Global.text_score": MIN_SCORE, **threads})


def read_image(pixels: Any) -> OcrResult:
    """What OCR sees in a picture.

    Shapes: (height, width) or (height, width, 3|4) uint8.
    """
    import numpy as np

    pixels = np.ascontiguousarray(_three_channels(np.asarray(pixels, dtype=np.uint8)))
    if int(pixels.max(initial=0)) - int(pixels.min(initial=255)) < MIN_CONTRAST:
        return OcrResult()  # an empty page: four looks at it from every side would find nothing
    best = OcrResult(_read(pixels), 0)
    sideways = _on_its_side(best.lines, pixels.shape)
    if sideways or _unsure(best):
        for turns in (1, 3, 2):
            found = OcrResult(_read(np.ascontiguousarray(np.rot90(pixels, turns))), 90 * turns)
            if _weight(found) > (0.9 if sideways else 1.3) * _weight(best) + 2:
                best, sideways = found, False
            if not _unsure(best) and not sideways:
                break
    best.lines = reading_order(best.lines)
    if best.turned:
        for line in best.lines:
            line.box = _turn_back(line.box, best.turned)
    return best


def _three_channels(pixels: Any) -> Any:
    import numpy as np

    if pixels.ndim == 2:
        return np.stack([pixels] * 3, axis=-1)
    if pixels.shape[2] == 1:
        return np.repeat(pixels, 3, axis=2)
    if pixels.shape[2] == 4:  # transparent is white on paper
        alpha = pixels[:, :, 3:4].astype(np.float32) / 255
        return (pixels[:, :, :3] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    return pixels[:, :, :3]


def _read(pixels: Any) -> list[OcrLine]:
    height, width = pixels.shape[:2]
    if min(height, width) < 8:
        return []
    # Without the line classifier: it reads upside-down lines one by one and hides that the page has to be turned.
    found = _engine()(pixels, use_cls=False)
    if found.boxes is None or found.txts is None:
        return []
    lines = []
    for corners, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        text = str(text).strip()
        if not text or score < MIN_SCORE:
            continue
        xs, ys = [float(c[0]) for c in corners], [float(c[1]) for c in corners]
        box = (min(xs) / width, min(ys) / height, max(xs) / width, max(ys) / height)
        lines.append(OcrLine(text, box, max(ys) - min(ys), float(score)))
    return lines


def _unsure(result: OcrResult) -> bool:
    """Little was found, or what was found is guesswork: worth a try the other way round."""
    weight = _weight(result)
    letters = sum(len(line.text) for line in result.lines)
    return weight < 6 or weight < 0.7 * letters


def _weight(result: OcrResult) -> float:
    return sum(len(line.text) * line.score**2 for line in result.lines)


def _on_its_side(lines: list[OcrLine], shape: tuple[int, ...]) -> bool:
    """Boxes taller than wide with several characters in them: the page lies on its side, or is set vertically (turning garbles that)."""
    height, width = shape[:2]
    tall = sum(1 for li in lines if len(li.text) > 2 and (li.box[3] - li.box[1]) * height > 1.5 * (li.box[2] - li.box[0]) * width)
    return tall > 0.5 * len(lines)


def _turn_back(box: Box, turned: int) -> Box:
    left, top, right, bottom = box
    if turned == 180:
        return (1 - right, 1 - bottom, 1 - left, 1 - top)
    if turned == 90:  # np.rot90 once: new (x, y) = (y, 1 - x) of the old
        return (1 - bottom, left, 1 - top, right)
    return (top, 1 - right, bottom, 1 - left)


def reading_order(lines: list[OcrLine]) -> list[OcrLine]:
    """Lines top to bottom, but one column after the other where a gutter divides them.

    Bands without a gutter (a headline over both columns) stay where they are.
    """
    lines = sorted(lines, key=lambda li: (_middle(li), li.box[0]))
    return _cut(lines, 0)


def _cut(lines: list[OcrLine], depth: int) -> list[OcrLine]:
    if len(lines) < 4 or depth > 6:
        return _rows(lines)
    gutter = _gutter(lines)
    if gutter is None:
        return _rows(lines)
    crossing = [li for li in lines if li.box[0] < gutter - 0.005 and li.box[2] > gutter + 0.005]
    out: list[OcrLine] = []
    rest = [li for li in lines if li not in crossing]
    edges = sorted(_middle(li) for li in crossing)
    for index in range(len(edges) + 1):
        low = edges[index - 1] if index else -1.0
        high = edges[index] if index < len(edges) else 2.0
        band = [li for li in rest if low <= _middle(li) < high]
        out.extend(_cut([li for li in band if (li.box[0] + li.box[2]) / 2 < gutter], depth + 1))
        out.extend(_cut([li for li in band if (li.box[0] + li.box[2]) / 2 >= gutter], depth + 1))
        if index < len(edges):
            out.extend(li for li in crossing if _middle(li) == edges[index] and li not in out)
    return out


def _gutter(lines: list[OcrLine]) -> float | None:
    """An x with lines of text side by side on both sides, that no line crosses at those heights; None when there is none."""
    left_edge, right_edge = min(li.box[0] for li in lines), max(li.box[2] for li in lines)
    best: tuple[float, float] | None = None
    for step in range(15, 86):
        x = left_edge + (right_edge - left_edge) * step / 100
        left = [li for li in lines if li.box[2] <= x + 0.004]
        right = [li for li in lines if li.box[0] >= x - 0.004]
        pairs = [(a, b) for a in left for b in right if abs(_middle(a) - _middle(b)) < 0.7 * (a.box[3] - a.box[1])]
        if len(pairs) < 3:
            continue
        sides = {id(a): a for a, _ in pairs}, {id(b): b for _, b in pairs}
        if min(sum(len(li.text) for li in side.values()) / len(side) for side in sides) < 8:
            continue  # columns of a table hold short cells: keep its rows together
        top, bottom = min(_middle(a) for a, _ in pairs), max(_middle(a) for a, _ in pairs)
        crossing = sum(1 for li in lines if li.box[0] < x - 0.004 and li.box[2] > x + 0.004 and top <= _middle(li) <= bottom)
        if crossing > 0.15 * (len(sides[0]) + len(sides[1])):
            continue
        score = len(sides[0]) + len(sides[1]) - 3 * crossing
        if best is None or score > best[0]:
            best = (score, x)
    return best[1] if best else None


def _middle(line: OcrLine) -> float:
    return (line.box[1] + line.box[3]) / 2


def _rows(lines: list[OcrLine]) -> list[OcrLine]:
    """Lines of about the same height from left to right."""
    out: list[OcrLine] = []
    row: list[OcrLine] = []
    for line in lines:
        middle = (line.box[1] + line.box[3]) / 2
        if row and middle > (row[0].box[1] + row[0].box[3]) / 2 + 0.5 * (row[0].box[3] - row[0].box[1]):
            out.extend(sorted(row, key=lambda li: li.box[0]))
            row = []
        row.append(line)
    return out + sorted(row, key=lambda li: li.box[0])
