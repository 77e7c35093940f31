"""Plain text: paragraphs with their lines."""

from __future__ import annotations

from apps.ingestion.plugins.builder import DocumentBuilder, clean_text
from apps.ingestion.plugins.encodings import decode
from apps.ingestion.plugins.protocol import ParsedDocument, ParseRequest, Position, Progress, parsers

#: A block of a text without blank lines (a log) holds so many lines at most, so that a citation names a narrow place.
LINES_PER_BLOCK = 30


def add_plain(builder: DocumentBuilder, text: str, *, part: str | None = None) -> None:
    """Append a plain text's paragraphs; lines inside a paragraph stay lines."""
    lines = clean_text(text).split("\n")
    start = 0
    gap = "\n\n"
    while start < len(lines):
        if not lines[start].strip():
            start += 1
            gap = "\n\n"
            continue
        end = start
        while end < len(lines) and lines[end].strip() and end - start < LINES_PER_BLOCK:
            end += 1
        body = "\n".join(line.rstrip() for line in lines[start:end])
        builder.add("paragraph", body, Position(line=start + 1, line_end=end, part=part), gap=gap)
        gap = "\n"
        start = end


@parsers.register("text")
class TextParser:
    media_types = ("text/plain",)
    extensions = ("txt", "log", "text", "yaml", "yml", "ini", "toml", "rst", "srt", "vtt", "tex", "xml", "conf", "properties")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        decoded = decode(request.path.read_bytes(), request.encoding)
        builder = DocumentBuilder(request.max_chars)
        add_plain(builder, decoded.text)
        if decoded.replaced:
            builder.warn("replaced_characters", f"{decoded.replaced} characters could not be read as {decoded.encoding}")
        progress(1, 1, "files")
        return builder.finish(encoding=decoded.encoding)
