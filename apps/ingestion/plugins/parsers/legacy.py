"""Word and PowerPoint of before 2007, through office-oxide."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Literal

from apps.ingestion.plugins.builder import DocumentBuilder
from apps.ingestion.plugins.markdown_blocks import Context, add_markdown
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers
from apps.ingestion.plugins.sniff import DOCX, PPTX


def office_markdown(path: Path, kind: Literal["doc", "ppt", "docx", "pptx"]) -> str:
    """The Markdown office-oxide gives for the file.

    Raises: ParseFailure with locked or corrupt.
    """
    import office_oxide

    try:
        with closing(office_oxide.Document.from_bytes(path.read_bytes(), kind)) as document:
            return document.to_markdown()
    except office_oxide.OfficeOxideError as error:
        message = str(error)
        if any(word in message.lower() for word in ("encrypt", "password")):
            raise ParseFailure("locked", f"the file is encrypted with a password: {message}") from error
        raise ParseFailure("corrupt", f"the file is damaged and cannot be read: {message}") from error


_KINDS: dict[str, Literal["doc", "ppt", "docx", "pptx"]] = {"application/vnd.ms-powerpoint": "ppt", DOCX: "docx", PPTX: "pptx"}


@parsers.register("legacy")
class LegacyOfficeParser:
    media_types = ("application/msword", "application/vnd.ms-powerpoint")
    extensions = ("doc", "ppt", "dot", "pps")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        text = office_markdown(request.path, _KINDS.get(request.media_type, "doc"))
        builder = DocumentBuilder(request.max_chars)
        add_markdown(builder, text, Context(place=lambda first, last: Position()))
        progress(1, 1, "files")
        return builder.finish(title=builder.first_heading())
