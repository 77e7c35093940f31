"""Which pictures of a document are worth keeping: real ones, large enough to show something, each once. Runs in the sandbox child."""

from __future__ import annotations

import hashlib
import io
import warnings
from dataclasses import replace

from apps.ingestion.plugins.protocol import ExtractedImage, ParsedDocument

#: Formats browsers show, by Pillow's name.
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp", "BMP": "image/bmp"}
SMALLEST_SIDE = 32  # pixels; below it are bullets, rules and icons
SMALLEST_AREA = 4096
MAX_PIXELS = 60_000_000


def keep(document: ParsedDocument) -> None:
    """Leave in `document.images` what `checked` lets through, the same bytes once, at their first place."""
    seen: set[str] = set()
    found: list[ExtractedImage] = []
    for image in document.images:
        digest = hashlib.sha256(image.data).hexdigest()
        if digest in seen:
            continue
        seen.add(digest)
        if (known := checked(image, digest)) is not None:
            found.append(known)
    document.images = found


def checked(image: ExtractedImage, digest: str) -> ExtractedImage | None:
    """The picture with the type its bytes have and its size; None for decorations, giants and what is no picture at all."""
    from PIL import Image

    broken = (Image.DecompressionBombError, OSError, ValueError, LookupError, SyntaxError, EOFError, TypeError)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(image.data), formats=list(FORMATS)) as opened:
                width, height = opened.size
                media_type = FORMATS[opened.format or ""]
    except broken:
        return None
    if min(width, height) < SMALLEST_SIDE or width * height < SMALLEST_AREA or width * height > MAX_PIXELS:
        return None
    return replace(image, media_type=media_type, sha256=digest, width=width, height=height)
