"""Markdown files: blocks with their lines; front matter becomes details."""

from __future__ import annotations

import base64
import binascii
import re

from apps.ingestion.plugins.builder import DocumentBuilder
from apps.ingestion.plugins.encodings import decode
from apps.ingestion.plugins.markdown_blocks import Context, add_markdown, without_active_parts
from apps.ingestion.plugins.protocol import ParsedDocument, ParseRequest, Progress, parsers

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_FIELD = re.compile(r"^([\w.-]{1,64})\s*:\s*(.*)$")
_DATA_URI = re.compile(r"data:(image/(?:png|jpe?g|gif|webp));base64,([A-Za-z0-9+/=\s]+)\Z")


def data_uri(address: str) -> tuple[str, bytes] | None:
    """The media type and bytes of an inline picture; None when it is none."""
    found = _DATA_URI.match(address)
    if not found:
        return None
    try:
        return found[1], base64.b64decode(found[2], validate=False)
    except binascii.Error:
        return None


def inline_images(builder: DocumentBuilder) -> Context:
    """A context that keeps pictures written into the text as data URIs."""

    def keep(address: str, alt: str) -> None:
        found = data_uri(address)
        if found:
            name = f"image-{len(builder.images) + 1}.{found[0].removeprefix('image/')}"
            builder.image(name, found[0], found[1], alt=alt)

    return Context(on_image=keep)


def front_matter(text: str) -> tuple[dict[str, str], str, int]:
    """The simple fields of a YAML front matter, the text after it, and the line that text starts on."""
    found = _FRONT.match(text)
    if not found or not any(_FIELD.match(line) for line in found[1].split("\n")):
        return {}, text, 1
    fields: dict[str, str] = {}
    last = ""
    for line in found[1].split("\n"):
        if field := _FIELD.match(line):
            last = field[1]
            fields[last] = field[2].strip().strip("\"'")[:1000]
        elif last and line.strip().startswith("- "):
            fields[last] = ", ".join(filter(None, [fields[last], line.strip()[2:].strip().strip("\"'")]))[:1000]
    return fields, text[found.end() :], found[0].count("\n") + 1


@parsers.register("markdown")
class MarkdownParser:
    media_types = ("text/markdown",)
    extensions = ("md", "markdown", "mdown", "mkd")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        decoded = decode(request.path.read_bytes(), request.encoding)
        text = without_active_parts(decoded.text.replace("\r\n", "\n").replace("\r", "\n"))
        fields, body, first_line = front_matter(text)
        builder = DocumentBuilder(request.max_chars)
        context = inline_images(builder)
        add_markdown(builder, body, context, first_line=first_line)
        if decoded.replaced:
            builder.warn("replaced_characters", f"{decoded.replaced} characters could not be read as {decoded.encoding}")
        heading = next((b for b in builder.blocks if b.kind == "heading" and b.level == 1), None)
        document = builder.finish(encoding=decoded.encoding, details={"front_matter": fields} if fields else {})
        document.title = fields.get("title") or (document.text[heading.start : heading.end].lstrip("# ") if heading else "")
        if context.links:
            document.details["links"] = context.links
        progress(1, 1, "files")
        return document
