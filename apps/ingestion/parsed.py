"""What a parser made of a document, kept beside its original so that readers and citations can point into it."""

from __future__ import annotations

import gzip
import json
from typing import Any

from django.core.files.base import ContentFile

from apps.common import storage
from apps.ingestion.plugins.protocol import Block, ParsedDocument
from apps.knowledge.models import Document


def parsed_key(document: Document, run_id: int) -> str:
    """Storage key of one pass's parsed text; each pass writes its own, so a lost hold never overwrites a good one."""
    return f"{document.space_id}/{document.kb.uid}/{document.uid}/parsed/{run_id}.json.gz"


def _block(block: Block) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": block.kind, "start": block.start, "end": block.end, "position": block.position.as_dict()}
    if block.level:
        made["level"] = block.level
    if block.rows:
        made["rows"] = [[start, end, position.as_dict()] for start, end, position in block.rows]
    return made


def write_parsed(key: str, parsed: ParsedDocument) -> None:
    """Store text and blocks under `key`."""
    body = {
        "text": parsed.text,
        "title": parsed.title,
        "parser": parsed.parser,
        "counts": parsed.counts,
        "blocks": [_block(block) for block in parsed.blocks],
    }
    storage.remove(key)  # a take-over of the same run: same key, replaced
    storage.write(key, ContentFile(gzip.compress(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"), 5)))


def read_parsed(document: Document) -> dict[str, Any] | None:
    """`{text, title, parser, counts, blocks}` of the current parse, or None when there is none.

    A block is `{kind, start, end, position, level?, rows?}`; rows of a table are `[start, end, position]`.
    """
    if not document.parsed_path:
        return None
    try:
        with storage.read(document.parsed_path) as stored:
            loaded: dict[str, Any] = json.loads(gzip.decompress(stored.read()))
    except FileNotFoundError:
        return None
    return loaded
