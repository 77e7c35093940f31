"""DOCX through mammoth, with what mammoth loses put back; a second reader when it refuses the file."""

from __future__ import annotations

import re
import zipfile
from typing import Any

from apps.ingestion.plugins.archives import check_archive
from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.markdown_blocks import Context, add_markdown
from apps.ingestion.plugins.parsers.docx_prepare import STYLE_MAP, Prepared, prepare
from apps.ingestion.plugins.parsers.legacy import office_markdown
from apps.ingestion.plugins.parsers.web import page_context, read_html
from apps.ingestion.plugins.protocol import ParsedDocument, ParseRequest, Position, Progress, parsers

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_REFERENCE = re.compile(r'<sup><a href="#(?:foot|end)note-[^"]*"[^>]*>\[\d+\]</a></sup>|<a href="#(?:foot|end)note-ref-[^"]*">↑</a>')
_NOTE = re.compile(r'<li id="((?:foot|end)note)-[^"]*">(.*?)</li>', re.S)


@parsers.register("docx")
class DocxParser:
    media_types = ("application/vnd.openxmlformats-officedocument.wordprocessingml.document",)
    extensions = ("docx", "docm", "dotx")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        check_archive(request.path, request.max_unpacked_bytes)
        prepared = prepare(request.path)
        progress(0, 1, "files")
        builder = DocumentBuilder(request.max_chars)
        for text in prepared.headers:
            builder.add("header", text)
        self._body(builder, prepared, request)
        for text in prepared.footers:
            builder.add("footer", text)
        progress(1, 1, "files")
        document = builder.finish(title=prepared.title)
        document.title = document.title or builder.first_heading()
        return document

    def _body(self, builder: DocumentBuilder, prepared: Prepared, request: ParseRequest) -> None:
        import mammoth

        pictures: dict[str, tuple[str, bytes]] = {}

        def keep(image: Any) -> dict[str, str]:
            address = f"kb-image-{len(pictures)}"
            try:
                with image.open() as stream:
                    data = stream.read()
            except (OSError, KeyError, ValueError, TypeError):
                return {"src": ""}  # linked, not embedded
            if image.content_type in _PICTURES:
                pictures[address] = (image.content_type, data)
            return {"src": address}

        broken = (KeyError, ValueError, AttributeError, TypeError, IndexError, RecursionError, zipfile.BadZipFile, OSError, AssertionError)
        try:
            markup = mammoth.convert_to_html(prepared.file, style_map=STYLE_MAP, convert_image=mammoth.images.img_element(keep)).value
        except broken as error:
            add_markdown(builder, office_markdown(request.path, "docx"), Context(place=lambda first, last: Position()))
            builder.warn("fallback_reader", f"read by the second reader: {one_line(str(error))[:200]}")
            return
        markup = _REFERENCE.sub("", markup)
        notes = [re.sub(r"<[^>]+>", " ", note[1]) for note in _NOTE.findall(markup)]
        text, _ = read_html(_NOTE.sub("", markup))
        add_markdown(builder, text, page_context(builder, Position(), pictures))
        for number, note in enumerate(notes, 1):
            if note.strip():
                import html

                builder.add("footnote", f"[{number}] {one_line(html.unescape(note))}")
