"""PPTX: slides with their titles, texts, tables, charts, diagrams and notes."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any

from apps.ingestion.plugins.archives import check_archive
from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.markdown_blocks import Context, add_markdown
from apps.ingestion.plugins.parsers.legacy import office_markdown
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_GROUP_DEPTH = 30


@parsers.register("pptx")
class PptxParser:
    media_types = ("application/vnd.openxmlformats-officedocument.presentationml.presentation",)
    extensions = ("pptx", "pptm", "ppsx")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        check_archive(request.path, request.max_unpacked_bytes)
        from lxml.etree import XMLSyntaxError
        from pptx import Presentation
        from pptx.exc import PythonPptxError

        broken = (PythonPptxError, KeyError, ValueError, AttributeError, TypeError, IndexError, XMLSyntaxError, zipfile.BadZipFile, OSError)
        builder = DocumentBuilder(request.max_chars)
        try:
            deck = Presentation(str(request.path))
            slides = list(deck.slides)
        except broken as error:
            return self._fallback(request, error, progress)
        if len(slides) > request.max_pages:
            raise ParseFailure("too_many_pages", f"too many slides: {len(slides)}, the limit is {request.max_pages}")
        for number, slide in enumerate(slides, 1):
            place = Position(slide=number)
            try:
                self._slide(builder, slide, number)
            except broken as error:
                builder.warn(
                    "slide_damaged", f"slide {number} could not be read whole: {one_line(str(error))[:200]}", place, key=str(number)
                )
            progress(number, len(slides), "slides")
        title = one_line(deck.core_properties.title or "") if deck.core_properties else ""
        if title.lower() in ("powerpoint presentation", "powerpoint 演示文稿", "slide 1"):
            title = ""
        document = builder.finish(title=title, counts={"slides": len(slides)})
        document.title = document.title or builder.first_heading()
        return document

    def _fallback(self, request: ParseRequest, error: Exception, progress: Progress) -> ParsedDocument:
        builder = DocumentBuilder(request.max_chars)
        add_markdown(builder, office_markdown(request.path, "pptx"), Context(place=lambda first, last: Position()))
        builder.warn("fallback_reader", f"read by the second reader, slides are not told apart: {one_line(str(error))[:200]}")
        progress(1, 1, "slides")
        return builder.finish()

    def _slide(self, builder: DocumentBuilder, slide: Any, number: int) -> None:
        place = Position(slide=number)
        if slide._element.get("show") == "0":
            builder.warn("hidden_slide", f"slide {number} is hidden", place, key=str(number))
        title = slide.shapes.title
        if title is not None:
            builder.heading(title.text_frame.text.replace("\x0b", " "), 2, place)
        for shape in _shapes(slide.shapes):
            if title is not None and shape.shape_id == title.shape_id:
                continue
            _add_shape(builder, slide, shape, place)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.replace("\x0b", "\n").strip()
            builder.add("note", "\n".join(f"> {line}" for line in notes.split("\n") if line.strip()), place)


def _shapes(shapes: Any, depth: int = 0) -> Iterator[Any]:
    """The shapes of a slide from top to bottom; groups are walked through."""
    from pptx.enum.shapes import MSO_SHAPE_TYPE

    ordered = sorted(shapes, key=lambda s: ((s.top or 0) // 200_000, s.left or 0)) if depth == 0 else list(shapes)
    for shape in ordered:
        if getattr(shape, "shape_type", None) == MSO_SHAPE_TYPE.GROUP and depth < MAX_GROUP_DEPTH:
            yield from _shapes(shape.shapes, depth + 1)
        else:
            yield shape


def _add_shape(builder: DocumentBuilder, slide: Any, shape: Any, place: Position) -> None:
    if getattr(shape, "has_table", False) and shape.has_table:
        _add_table(builder, shape.table, place)
    elif getattr(shape, "has_chart", False) and shape.has_chart:
        _add_chart(builder, shape.chart, place)
    elif getattr(shape, "has_text_frame", False) and shape.has_text_frame:
        _add_text(builder, shape, place)
    elif hasattr(shape, "image"):
        _add_picture(builder, shape, place)
    else:
        for found in shape._element.iter(_DIAGRAM):
            part = slide.part.related_part(found.get(f"{_REL}dm"))
            _add_diagram(builder, part.blob, place)


def _add_text(builder: DocumentBuilder, shape: Any, place: Position) -> None:
    if (
        shape.is_placeholder
        and shape.placeholder_format.type is not None
        and shape.placeholder_format.type.name in ("SLIDE_NUMBER", "DATE")
    ):
        return
    lines = []
    for paragraph in shape.text_frame.paragraphs:
        text = one_line(paragraph.text.replace("\x0b", " "))
        if text:
            lines.append((paragraph.level, text))
    body = shape.is_placeholder and len(lines) > 1
    if body or any(level for level, _ in lines):
        builder.add("list", "\n".join(f"{'  ' * level}- {text}" for level, text in lines), place)
    else:
        builder.add("paragraph", "\n".join(text for _, text in lines), place)


def _add_table(builder: DocumentBuilder, table: Any, place: Position) -> None:
    rows: list[list[str]] = []
    for r, row in enumerate(table.rows):
        line = []
        for c, cell in enumerate(row.cells):
            if cell.is_spanned:
                line.append(_origin_text(table, r, c))
            else:
                line.append(cell.text_frame.text.replace("\x0b", " "))
        rows.append(line)
    if rows:
        builder.table(rows[0], [(row, place) for row in rows[1:]], place)


def _origin_text(table: Any, row: int, column: int) -> str:
    """The text of the merged cell that covers this one."""
    for r in range(row, -1, -1):
        for c in range(column, -1, -1):
            cell = table.cell(r, c)
            if cell.is_merge_origin and r + cell.span_height > row and c + cell.span_width > column:
                return cell.text_frame.text.replace("\x0b", " ")
    return ""


def _add_chart(builder: DocumentBuilder, chart: Any, place: Position) -> None:
    if chart.has_title and chart.chart_title.has_text_frame:
        builder.add("caption", one_line(chart.chart_title.text_frame.text), place)
    for plot in chart.plots:
        categories = [str(c) for c in plot.categories]
        series = [(s.name or "", list(s.values)) for s in plot.series]
        rows = []
        for index, category in enumerate(categories):
            cells = [
                category,
                *("" if i >= len(v) or v[i] is None else f"{v[i]:.15g}" for i, v in ((index, values) for _, values in series)),
            ]
            rows.append((cells, place))
        if rows:
            builder.table(["", *(name for name, _ in series)], rows, place)


def _add_picture(builder: DocumentBuilder, shape: Any, place: Position) -> None:
    alt = shape._element.nvPicPr.cNvPr.get("descr") or ""
    try:
        image = shape.image
    except (ValueError, KeyError):
        return  # linked, not embedded
    if image.content_type in _PICTURES:
        builder.image(f"slide-{place.slide}-{len(builder.images) + 1}.{image.ext}", image.content_type, image.blob, place, alt)
    if len(one_line(alt)) > 3:
        builder.add("image", one_line(alt), place)


def _add_diagram(builder: DocumentBuilder, blob: bytes, place: Position) -> None:
    from lxml import etree

    root = etree.fromstring(blob, etree.XMLParser(resolve_entities=False, no_network=True))
    texts = [one_line("".join(t.text or "" for t in p.iter(f"{_A}t"))) for p in root.iter(f"{_A}p")]
    builder.add("list", "\n".join(f"- {text}" for text in texts if text), place)
