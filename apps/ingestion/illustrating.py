"""Pictures put into the text where they stand: `![words](resource://handle)`, each as a block of its own."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from dataclasses import dataclass, replace
from datetime import datetime

from apps.ingestion.plugins.protocol import Block, ExtractedImage, ParsedDocument, Position
from apps.knowledge.models import SCHEME, Document, DocumentImage
from apps.knowledge.selectors import reference

GAP = "\n\n"


@dataclass(slots=True)
class Known:
    """What is known of a picture from an earlier pass over the same bytes: its handle, and what OCR saw."""

    uid: uuid.UUID
    ocr_text: str = ""
    read_at: datetime | None = None


def known_pictures(document: Document, parsed: ParsedDocument) -> dict[str, Known]:
    """{content hash: what is known} of the pictures of a parse; the same bytes keep their handle. Read it before passages are replaced."""
    rows = DocumentImage.objects.filter(document=document).values_list("sha256", "uid", "ocr_text", "read_at")
    there = {sha256: Known(uid, ocr_text, read_at) for sha256, uid, ocr_text, read_at in rows}
    wanted = [image.sha256 for image in parsed.images] + ([document.content_sha256] if document.content_sha256 else [])
    return {sha256: there.get(sha256) or Known(uuid.uuid4()) for sha256 in wanted}


def illustrate(parsed: ParsedDocument, known: dict[str, Known]) -> None:
    """Write a reference for each picture into the text: in place of its alternative text where that stands alone, else after the block
    it stands in, else before the one that follows. All spans move along.
    """
    if not parsed.images:
        return
    blocks = parsed.blocks
    starts = [block.start for block in blocks]
    before: dict[int, list[ExtractedImage]] = {}  # index of the block they stand before
    instead: dict[int, ExtractedImage] = {}
    for image in sorted(parsed.images, key=lambda each: each.at):
        index = bisect_left(starts, image.at)
        if index and blocks[index - 1].end > image.at:
            index -= 1  # inside a block: it is the one that holds the picture
        words = image.alt.strip()
        own = parsed.text[blocks[index].start : blocks[index].end] if index < len(blocks) else ""
        if words and own.strip() == words and index not in instead:
            instead[index] = image
        elif index < len(blocks) and (blocks[index].start < image.at or (words and words in own)):
            before.setdefault(index + 1, []).append(image)
        else:
            before.setdefault(index, []).append(image)
    _write(parsed, known, before, instead)


def _write(
    parsed: ParsedDocument, known: dict[str, Known], before: dict[int, list[ExtractedImage]], instead: dict[int, ExtractedImage]
) -> None:
    parts: list[str] = []
    blocks: list[Block] = []
    images: list[ExtractedImage] = []
    length = at = 0  # written so far; read so far

    def put(text: str) -> None:
        nonlocal length
        parts.append(text)
        length += len(text)

    def picture(image: ExtractedImage, position: Position) -> None:
        start = length
        put(reference(f"{SCHEME}{known[image.sha256].uid}", image.alt))
        blocks.append(Block("image", start, length, image.position if image.position != Position() else position))
        images.append(replace(image, at=start))

    for index in range(len(parsed.blocks) + 1):
        block = parsed.blocks[index] if index < len(parsed.blocks) else None
        beside = block or (parsed.blocks[-1] if parsed.blocks else None)
        if index in before and parsed.blocks and block is None:
            put(parsed.text[at:].rstrip())
            at = len(parsed.text)
        elif index in before and block is not None:
            put(parsed.text[at : block.start])
            at = block.start
        for image in before.get(index, ()):
            if block is None and length:
                put(GAP)
            picture(image, beside.position if beside is not None else Position())
            if block is not None:
                put(GAP)
        if block is None:
            break
        put(parsed.text[at : block.start])
        at = block.end
        if index in instead:
            picture(instead[index], block.position)
            continue
        by = length - block.start
        put(parsed.text[block.start : block.end])
        rows = tuple((start + by, end + by, position) for start, end, position in block.rows)
        blocks.append(replace(block, start=block.start + by, end=block.end + by, rows=rows))
    put(parsed.text[at:])
    parsed.text, parsed.blocks, parsed.images = "".join(parts), blocks, images
