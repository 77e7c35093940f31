"""The parsers, one module per family. Importing this package registers them and loads no heavy library."""

from __future__ import annotations

from dataclasses import replace

from apps.ingestion.plugins import pictures
from apps.ingestion.plugins.grid import read_grid
from apps.ingestion.plugins.parsers import (  # noqa: F401 - importing registers
    delimited,
    docx,
    epub,
    image,
    legacy,
    mail,
    markdown,
    pdf,
    plain,
    pptx,
    sheets,
    structured,
    web,
)
from apps.ingestion.plugins.protocol import ENGINES, ParsedDocument, ParseFailure, Parser, ParseRequest, ParseWarning, Progress, parsers
from apps.ingestion.plugins.sniff import ACCEPTED, extension_of, sniff


def parser_for(request: ParseRequest) -> tuple[str, Parser, str]:
    """The name of the parser for this file, the parser, and the media type it is read as.

    Raises: ParseFailure with empty, locked or unsupported_type.
    """
    kind = sniff(request.path, request.file_name)
    if kind.family == "empty":
        raise ParseFailure("empty", "the file is empty (zero bytes)")
    if kind.family == "locked":
        raise ParseFailure("locked", "the file is encrypted with a password; save it without one and upload it again")
    media_type = request.media_type or kind.media_type
    if kind.family in ENGINES.get(request.engine, ()) and request.engine in ("text", "office"):
        name = "legacy" if request.engine == "office" else request.engine
        return name, parsers.get(name), kind.media_type
    for name, parser in parsers:
        if request.media_type and request.media_type in parser.media_types:
            return name, parser, media_type
    if kind.family not in parsers:
        raise ParseFailure(
            "unsupported_type",
            f"unsupported file type {kind.extension or kind.media_type!r}; supported are {', '.join(t.extension for t in ACCEPTED)}",
            media_type=kind.media_type,
        )
    return kind.family, parsers.get(kind.family), kind.media_type


def parse(request: ParseRequest, progress: Progress) -> ParsedDocument:
    """Reads one file in this process; use `sandbox.parse_file` for files that others sent.

    Raises: ParseFailure.
    """
    if request.rows_only:
        return read_grid(request, progress)
    name, parser, media_type = parser_for(request)
    document = _parsed(parser, replace(request, media_type=media_type), progress)
    pictures.keep(document)
    document.parser = document.parser or name
    document.media_type = document.media_type or media_type
    kind = sniff(request.path, request.file_name)
    if kind.mismatch:
        claimed = extension_of(request.file_name)
        message = f"the name says .{claimed}, but the content is of the type .{kind.extension}; the content was believed"
        document.warnings.append(ParseWarning("type_mismatch", message))
    return document


def _parsed(parser: Parser, request: ParseRequest, progress: Progress) -> ParsedDocument:
    """What the parser makes of the file.

    Libraries written in Rust panic on some damaged files: that is no Exception, and its class cannot be imported.
    """
    try:
        return parser.parse(request, progress)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ParseFailure("corrupt", "the file is damaged and cannot be read") from error
