"""Pictures: read by OCR when asked, otherwise named as needing it."""

from __future__ import annotations

import warnings

from apps.ingestion.plugins.builder import DocumentBuilder
from apps.ingestion.plugins.parsers.pdf_layout import HeadingSizes, add_page
from apps.ingestion.plugins.parsers.pdf_lines import Line
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Progress, parsers

MAX_PIXELS = 60_000_000
MAX_FRAMES = 200
LONGEST_SIDE = 4000


@parsers.register("image")
class ImageParser:
    """Pages are the frames of a TIFF; other pictures have one. An animated GIF is read by its first frame."""

    media_types = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/tiff", "image/bmp")
    extensions = ("png", "jpg", "jpeg", "gif", "webp", "tiff", "tif", "bmp")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        from PIL import Image, UnidentifiedImageError

        Image.MAX_IMAGE_PIXELS = MAX_PIXELS
        builder = DocumentBuilder(request.max_chars)
        needs: list[int] = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                with Image.open(request.path) as picture:
                    frames = min(getattr(picture, "n_frames", 1), MAX_FRAMES) if picture.format == "TIFF" else 1
                    if frames > request.max_pages:
                        raise ParseFailure("too_many_pages", f"too many pages: {frames}, the limit is {request.max_pages}")
                    size = picture.size
                    for index in range(frames):
                        picture.seek(index)
                        self._frame(builder, picture, index + 1, request, needs)
                        progress(index + 1, frames, "pages")
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            raise ParseFailure("too_large", f"the picture is too large: {error}") from error
        except UnidentifiedImageError as error:
            raise ParseFailure("corrupt", "the picture is damaged and cannot be read") from error
        except (OSError, SyntaxError, ValueError, EOFError, IndexError, TypeError) as error:
            raise ParseFailure("corrupt", f"the picture is damaged: {error}") from error
        return builder.finish(counts={"pages": frames}, needs_ocr_pages=needs, details={"width": size[0], "height": size[1]})

    def _frame(self, builder: DocumentBuilder, picture: object, number: int, request: ParseRequest, needs: list[int]) -> None:
        from PIL import Image, ImageOps

        assert isinstance(picture, Image.Image)
        if picture.width * picture.height > MAX_PIXELS:
            raise ParseFailure(
                "too_large", f"the picture is too large: {picture.width} x {picture.height} pixels, the limit is {MAX_PIXELS}"
            )
        if not request.ocr or (request.ocr_pages and number not in request.ocr_pages):
            picture.load()  # a damaged picture is told now, not after somebody set OCR up
            needs.append(number)
            return
        from apps.ingestion.ocr import read_image

        upright = ImageOps.exif_transpose(picture).convert("RGBA" if picture.mode in ("RGBA", "LA", "P") else "RGB")
        if max(upright.size) > LONGEST_SIDE:
            upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        found = read_image(upright)
        lines = [Line(line.text, line.box, line.size) for line in found.lines]
        add_page(builder, number, lines, [], HeadingSizes(0.0, []), set())
