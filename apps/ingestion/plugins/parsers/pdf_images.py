"""Pictures placed on PDF pages: JPEG bytes as they are, everything else as PNG; each content once, page backgrounds left out."""

from __future__ import annotations

import contextlib
import hashlib
import io
from dataclasses import dataclass, field
from typing import Any

from apps.ingestion.plugins.builder import MAX_IMAGE_BYTES, MAX_IMAGES, DocumentBuilder
from apps.ingestion.plugins.pictures import MAX_PIXELS, SMALLEST_AREA, SMALLEST_SIDE
from apps.ingestion.plugins.protocol import Position

OBJECTS_PER_PAGE = 3000
MAX_DECODED_BYTES = 1_500_000_000  # pixels turned into PNG per document; CPU, not memory
PAGE_SHARE = 0.9  # a picture over this much of a page is the page: a scan, or its background


@dataclass(frozen=True, slots=True)
class PagePicture:
    media_type: str
    data: bytes
    box: tuple[float, float, float, float]


@dataclass(slots=True)
class PictureFinder:
    """Looks at pages one after the other; remembers what it has, so that a logo on every page is taken once."""

    seen: set[str] = field(default_factory=set)
    taken: int = 0
    size_bytes: int = 0
    decoded: int = 0
    is_full: bool = False

    def find(self, pdfium: Any, page: Any) -> list[PagePicture]:
        """The new pictures of an open page, in the order they are drawn."""
        import pypdfium2.raw as raw

        found: list[PagePicture] = []
        if self.is_full:
            return found
        width, height = page.get_size()
        with contextlib.suppress(pdfium.PdfiumError):
            for count, item in enumerate(page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3)):
                if count >= OBJECTS_PER_PAGE or self.is_full:
                    break
                with contextlib.suppress(pdfium.PdfiumError, OSError, ValueError, KeyError, TypeError):
                    picture = self._take(item, width, height)
                    if picture is not None:
                        found.append(picture)
                        self._count(picture)
        return found

    def _count(self, picture: PagePicture) -> None:
        self.taken += 1
        self.size_bytes += len(picture.data)
        self.is_full = self.taken >= MAX_IMAGES or self.size_bytes > MAX_IMAGE_BYTES or self.decoded > MAX_DECODED_BYTES

    def _take(self, item: Any, width: float, height: float) -> PagePicture | None:
        left, bottom, right, top = item.get_bounds()
        if (right - left) * (top - bottom) > PAGE_SHARE * max(width * height, 1.0):
            return None
        columns, rows = item.get_px_size()
        if min(columns, rows) < SMALLEST_SIDE or not SMALLEST_AREA <= columns * rows <= MAX_PIXELS:
            return None
        raw_data = bytes(item.get_data(decode_simple=False))
        digest = hashlib.sha256(raw_data).hexdigest()
        if digest in self.seen:
            return None
        self.seen.add(digest)
        box = (left / width, 1 - top / height, right / width, 1 - bottom / height)
        clamped = tuple(round(min(max(value, 0.0), 1.0), 4) for value in box)
        if item.get_filters() == ["DCTDecode"] and raw_data.startswith(b"\xff\xd8"):
            return PagePicture("image/jpeg", raw_data, clamped)  # type: ignore[arg-type]
        self.decoded += columns * rows * 4
        return PagePicture("image/png", _png(item), clamped)  # type: ignore[arg-type]


def _png(item: Any) -> bytes:
    target = io.BytesIO()
    item.get_bitmap(render=False).to_pil().save(target, "PNG", compress_level=3)
    return target.getvalue()


def place_pictures(builder: DocumentBuilder, number: int, pictures: list[PagePicture]) -> None:
    """Keep the pictures of a page whose blocks were just added, each after the block that stands above it."""
    blocks = [block for block in builder.blocks[-500:] if block.position.page == number]
    for picture in pictures:
        middle = (picture.box[1] + picture.box[3]) / 2
        above = [block for block in blocks if block.position.bbox is not None and block.position.bbox[1] <= middle]
        at = above[-1].end if above else blocks[0].start if blocks else len(builder)
        name = f"page-{number}-{len(builder.images) + 1}.{picture.media_type.removeprefix('image/')}"
        builder.image(name, picture.media_type, picture.data, Position(page=number, bbox=picture.box), at=at)
