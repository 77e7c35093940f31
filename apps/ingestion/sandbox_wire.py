"""What parent and child say to each other: JSON lines, and one result file with pictures beside it. Nothing is ever unpickled."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from apps.ingestion.plugins.protocol import Block, ExtractedImage, ParsedDocument, ParseRequest, ParseWarning, Position

RESULT = "result.json"
_POSITION = tuple(f.name for f in fields(Position))


def request_to_json(request: ParseRequest) -> dict[str, Any]:
    return asdict(request) | {"path": str(request.path)}


def request_from_json(data: dict[str, Any]) -> ParseRequest:
    return ParseRequest(**(data | {"path": Path(data["path"]), "ocr_pages": tuple(data["ocr_pages"])}))


def _pack(position: Position) -> list[Any]:
    values = [getattr(position, name) for name in _POSITION]
    while values and values[-1] is None:
        values.pop()
    return values


def _unpack(values: list[Any], known: dict[str, Position]) -> Position:
    key = repr(values)
    position = known.get(key)
    if position is None:
        data = dict(zip(_POSITION, values, strict=False))
        if data.get("bbox") is not None:
            data["bbox"] = tuple(data["bbox"])
        position = known[key] = Position(**data)
        if len(known) > 20_000:
            known.clear()
    return position


def write_document(document: ParsedDocument, folder: Path) -> None:
    """Write the result into `folder`: result.json and image-N.bin."""
    data = {
        "text": document.text,
        "blocks": [
            [b.kind, b.start, b.end, _pack(b.position), b.level, b.header, [[s, e, _pack(p)] for s, e, p in b.rows]]
            for b in document.blocks
        ],
        "images": [[i.name, i.media_type, i.at, _pack(i.position), i.alt, i.sha256, i.width, i.height] for i in document.images],
        "warnings": [[w.code, w.message, _pack(w.position), w.count] for w in document.warnings],
    }
    for name in _PLAIN:
        data[name] = getattr(document, name)
    for number, image in enumerate(document.images):
        (folder / f"image-{number}.bin").write_bytes(image.data)
    with (folder / RESULT).open("w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, separators=(",", ":"))


_PLAIN = ("title", "language", "media_type", "parser", "encoding", "counts", "needs_ocr_pages", "unreadable_pages", "details")


def read_document(folder: Path) -> ParsedDocument:
    """The result a child wrote.

    Raises: ValueError, KeyError, TypeError or OSError when it is not what `write_document` writes.
    """
    data = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    known: dict[str, Position] = {}
    blocks = [
        Block(kind, start, end, _unpack(place, known), level, header, tuple((s, e, _unpack(p, known)) for s, e, p in rows))
        for kind, start, end, place, level, header, rows in data["blocks"]
    ]
    images = [
        ExtractedImage(name, media_type, (folder / f"image-{number}.bin").read_bytes(), at, _unpack(place, known), *rest)
        for number, (name, media_type, at, place, *rest) in enumerate(data["images"])
    ]
    warnings = [ParseWarning(code, message, _unpack(place, known), count) for code, message, place, count in data["warnings"]]
    plain = {name: data[name] for name in _PLAIN}
    return ParsedDocument(text=data["text"], blocks=blocks, images=images, warnings=warnings, **plain)
