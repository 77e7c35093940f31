"""Looking at pictures of documents in the sandbox child: their text by OCR, and copies small enough to be sent to a model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apps.ingestion.plugins.pictures import FORMATS, MAX_PIXELS

RESULT = "seen.json"
LONGEST_READ = 4000  # pixels of the longer side that OCR looks at
SMALLEST_READ = 24  # no line of text is lower
MAX_TEXT = 20_000
_BROKEN = (OSError, ValueError, LookupError, SyntaxError, EOFError, TypeError, ArithmeticError)


def look(paths: list[Path], folder: Path, *, ocr: bool, side: int, progress: Callable[[int, int, str], None]) -> None:
    """Write `seen.json`: for each picture its text by OCR and what was wrong with it.

    With `side`, a copy of at most that many pixels is put beside, as JPEG file `sent-<number>.jpg`.
    """
    seen = []
    for number, path in enumerate(paths):
        seen.append(_one(path, folder / f"sent-{number}.jpg", ocr=ocr, side=side))
        progress(number + 1, len(paths), "pictures")
    (folder / RESULT).write_text(json.dumps(seen, ensure_ascii=False), encoding="utf-8")


def _one(path: Path, copy: Path, *, ocr: bool, side: int) -> dict[str, Any]:
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=list(FORMATS)) as opened:
                if opened.width * opened.height > MAX_PIXELS:
                    return {"error": "too large"}
                upright = _on_paper(ImageOps.exif_transpose(opened))
                text = _text(upright) if ocr else ""
                if side:
                    upright.thumbnail((side, side))
                    upright.save(copy, "JPEG", quality=88)
    except (*_BROKEN, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return {"text": text}


def _on_paper(picture: Any) -> Any:
    """RGB; what is transparent is white."""
    from PIL import Image

    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        paper = Image.new("RGB", layer.size, "white")
        paper.paste(layer, mask=layer.getchannel("A"))
        return paper
    return picture.convert("RGB")


def _text(picture: Any) -> str:
    from apps.ingestion.ocr import MIN_CONTRAST, read_image

    if min(picture.size) < SMALLEST_READ or all(high - low < MIN_CONTRAST for low, high in picture.getextrema()):
        return ""  # one flat colour: the engine need not even be loaded
    shown = picture
    if max(shown.size) > LONGEST_READ:
        shown = picture.copy()
        shown.thumbnail((LONGEST_READ, LONGEST_READ))
    return read_image(shown).text[:MAX_TEXT]


def read_seen(folder: Path, count: int) -> list[tuple[str, bytes, str]]:
    """(text, JPEG copy, what was wrong) of each picture. Raises: ValueError, KeyError, TypeError or OSError for anything but a result."""
    rows = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    if not isinstance(rows, list) or len(rows) != count:
        raise ValueError("not one row for each picture")
    found = []
    for number, row in enumerate(rows):
        copy = folder / f"sent-{number}.jpg"
        found.append((str(row.get("text", ""))[:MAX_TEXT], copy.read_bytes() if copy.is_file() else b"", str(row.get("error", ""))[:200]))
    return found
