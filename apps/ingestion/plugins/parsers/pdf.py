"""PDF: text with page positions, ruled tables, form values; pages without a readable text layer are named or read by OCR."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from apps.ingestion.plugins.builder import DocumentBuilder
from apps.ingestion.plugins.parsers.pdf_images import PagePicture, PictureFinder, place_pictures
from apps.ingestion.plugins.parsers.pdf_layout import add_page, find_furniture, heading_sizes
from apps.ingestion.plugins.parsers.pdf_lines import Line, is_garbled, page_lines
from apps.ingestion.plugins.parsers.pdf_tables import MIN_DRAWN_PATHS, PageTable, TableFinder
from apps.ingestion.plugins.pdfium import LOCK
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers

#: A page with fewer characters than this and a picture over most of it is a scan with a stamp, not a text page.
FEW_CHARS = 25
BIG_PICTURE = 0.5
OCR_SCALE = 2.0  # 144 dpi
MAX_RENDER_PIXELS = 40_000_000


@dataclass(slots=True)
class Page:
    """What was read of one page."""

    number: int
    lines: list[Line] = field(default_factory=list)
    tables: list[PageTable] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    pictures: list[PagePicture] = field(default_factory=list)
    state: str = "text"  # text blank scan garbled damaged ocr
    note: str = ""


@parsers.register("pdf")
class PdfParser:
    media_types = ("application/pdf",)
    extensions = ("pdf",)

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        import pypdfium2 as pdfium

        builder = DocumentBuilder(request.max_chars)
        opened, locked = _open(pdfium, request)
        finder, pictures = TableFinder(request.path, request.password if locked else ""), PictureFinder()
        with LOCK, contextlib.closing(opened) as pdf:
            count = len(pdf)
            if count == 0:
                raise ParseFailure("empty", "the PDF is empty: it has no pages")
            if count > request.max_pages:
                raise ParseFailure("too_many_pages", f"too many pages: {count}, the limit is {request.max_pages}", pages=count)
            with contextlib.suppress(pdfium.PdfiumError):
                pdf.init_forms()
            pages = []
            for index in range(count):
                pages.append(self._page(pdfium, pdf, index, request, finder, pictures))
                progress(index + 1, count, "pages")
            title = _title(pdf)
        finder.close()
        _mark_damaged(request, pages)
        if all(page.state == "damaged" for page in pages):
            raise ParseFailure("corrupt", f"the PDF is damaged: none of its {count} pages can be read")
        if locked:
            builder.warn("opened_with_password", "it was opened with a password, which was not kept")
        self._compose(builder, pages)
        if pictures.is_full:
            builder.warn("images_skipped", "more pictures than are kept")
        if finder.spent:
            builder.warn(
                "tables_skipped", f"tables were looked for on the first {finder.pages} ruled pages only; later ones are read as lines"
            )
        return builder.finish(
            title=title,
            counts={"pages": count},
            needs_ocr_pages=[p.number for p in pages if p.state == "scan"],
            unreadable_pages=[p.number for p in pages if p.state == "garbled"],
            details={k: v for k, v in (("ocr_pages", [p.number for p in pages if p.state == "ocr"]),) if v},
        )

    def _page(self, pdfium: Any, pdf: Any, index: int, request: ParseRequest, finder: TableFinder, pictures: PictureFinder) -> Page:
        page = Page(index + 1)
        try:
            handle = pdf[index]
        except pdfium.PdfiumError as error:
            page.state, page.note = "damaged", str(error)
            return page
        with contextlib.closing(handle):
            try:
                self._read(pdfium, handle, page, request, finder)
                page.pictures = pictures.find(pdfium, handle)
            except pdfium.PdfiumError as error:
                page.state, page.note = "damaged", str(error)
        return page

    def _read(self, pdfium: Any, handle: Any, page: Page, request: ParseRequest, finder: TableFinder) -> None:
        width, height = handle.get_size()
        with contextlib.closing(handle.get_textpage()) as textpage:
            page.lines = page_lines(handle, textpage, height)
        text = "\n".join(line.text for line in page.lines)
        shapes = _shapes(pdfium, handle, width * height)
        page.fields = _form_values(handle)
        if is_garbled(text):
            page.state, page.lines = "garbled", []
        elif not text.strip():
            page.state = "scan" if shapes.pictures or shapes.paths >= 200 else "blank"
            page.note = "objects" if shapes.total else ""
        elif request.engine == "ocr" and text.strip():
            page.state = "scan"  # its text layer is not to be trusted; where OCR cannot be, it is all there is
        elif len(text) < FEW_CHARS and shapes.picture_share > BIG_PICTURE:
            page.state = "scan"
        if page.state in ("garbled", "scan") and request.ocr and (not request.ocr_pages or page.number in request.ocr_pages):
            self._ocr(handle, page, width, height)
        elif page.state == "text" and shapes.paths >= MIN_DRAWN_PATHS and handle.get_rotation() == 0:
            page.tables = finder.find(page.number)

    def _ocr(self, handle: Any, page: Page, width: float, height: float) -> None:
        from apps.ingestion.ocr import read_image

        scale = OCR_SCALE
        if width * height * scale * scale > MAX_RENDER_PIXELS:
            scale = (MAX_RENDER_PIXELS / (width * height)) ** 0.5
        found = read_image(handle.render(scale=scale).to_numpy())
        if found.lines and is_garbled(found.text):
            page.state, page.lines = "garbled", []
        elif found.lines:
            page.lines = [Line(line.text, line.box, line.size / scale) for line in found.lines]
            page.state = "ocr"
        elif page.state == "scan" and not page.lines:
            page.state = "blank"
            page.note = "ocr"

    def _compose(self, builder: DocumentBuilder, pages: list[Page]) -> None:
        furniture = find_furniture([(p.number, p.lines) for p in pages])
        sizes = heading_sizes([p.lines for p in pages if p.state == "text"])
        for page in pages:
            place = Position(page=page.number)
            if page.state == "damaged":
                builder.warn("page_damaged", f"page {page.number} is damaged and was left out", place, key=str(page.number))
                continue
            if page.state == "garbled":
                builder.warn(
                    "page_unreadable", f"the text layer of page {page.number} is unreadable and was left out", place, key=str(page.number)
                )
            add_page(builder, page.number, page.lines, page.tables, sizes, furniture)
            place_pictures(builder, page.number, page.pictures)
            if page.fields:
                builder.add("paragraph", "\n".join(page.fields), place)


def _open(pdfium: Any, request: ParseRequest) -> tuple[Any, bool]:
    """The open file, and whether it took the password to open it (an owner's password alone keeps nobody from reading).

    Raises: ParseFailure with locked, wrong_password or corrupt.
    """
    try:
        return pdfium.PdfDocument(request.path), False
    except pdfium.PdfiumError as error:
        if "password" not in str(error).lower():
            raise _cannot_open(error) from error
    if not request.password:
        raise ParseFailure("locked", "the PDF is encrypted: it opens with a password only")
    try:
        return pdfium.PdfDocument(request.path, password=request.password), True
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise ParseFailure("wrong_password", "the PDF is encrypted, and the password is wrong") from error
        raise _cannot_open(error) from error


def _cannot_open(error: Exception) -> ParseFailure:
    if "security" in str(error).lower():
        return ParseFailure("locked", "the PDF is encrypted in a way that cannot be opened, even with a password", by_password=False)
    return ParseFailure("corrupt", f"the PDF is damaged and cannot be opened: {error}")


@dataclass(slots=True)
class _Shapes:
    total: int = 0
    paths: int = 0
    pictures: int = 0
    picture_share: float = 0.0


def _shapes(pdfium: Any, handle: Any, area: float) -> _Shapes:
    """How many paths and pictures a page draws; counting stops when more would not change what is done."""
    import pypdfium2.raw as raw

    shapes = _Shapes()
    try:
        for item in handle.get_objects(max_depth=3):
            shapes.total += 1
            if item.type == raw.FPDF_PAGEOBJ_PATH:
                shapes.paths += 1
            elif item.type == raw.FPDF_PAGEOBJ_IMAGE:
                shapes.pictures += 1
                left, bottom, right, top = item.get_bounds() if hasattr(item, "get_bounds") else item.get_pos()
                share = abs((right - left) * (top - bottom)) / max(area, 1.0)
                shapes.picture_share = max(shapes.picture_share, share)
            if shapes.total >= 3000:
                break
    except pdfium.PdfiumError:
        pass  # a broken object ends the count; the text was read already
    return shapes


def _form_values(handle: Any) -> list[str]:
    """`name: value` of each filled form field on the page."""
    import ctypes

    import pypdfium2.raw as raw

    form = handle.formenv
    if form is None:
        return []
    values = []
    for index in range(min(raw.FPDFPage_GetAnnotCount(handle.raw), 2000)):
        annotation = raw.FPDFPage_GetAnnot(handle.raw, index)
        if not annotation:
            continue
        try:
            if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_WIDGET:
                continue
            texts = []
            for read in (raw.FPDFAnnot_GetFormFieldAlternateName, raw.FPDFAnnot_GetFormFieldName, raw.FPDFAnnot_GetFormFieldValue):
                size = read(form.raw, annotation, None, 0)
                buffer = ctypes.create_string_buffer(size)
                read(form.raw, annotation, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
                texts.append(buffer.raw[:size].decode("utf-16-le", "replace").rstrip("\0").strip())
            label, value = texts[0] or texts[1], texts[2]
            if value and value != "Off":
                values.append(f"{label}: {value}" if label else value)
        finally:
            raw.FPDFPage_CloseAnnot(annotation)
    return list(dict.fromkeys(values))


def _title(pdf: Any) -> str:
    """The document's own title, unless it is only a file name or a program's default."""
    title = pdf.get_metadata_value("Title").strip()
    if (
        is_garbled(title)
        or re.search(r"\.(?:docx?|pdf|indd|xlsx?|pptx?|tex|dvi|ps|qxd)$", title, re.I)
        or title.lower() in ("untitled", "(anonymous)")
    ):
        return ""
    return re.sub(r"^Microsoft (?:Word|PowerPoint|Excel) - ", "", title)


def _mark_damaged(request: ParseRequest, pages: list[Page]) -> None:
    """A page that shows nothing though its content stream is not empty could not be unpacked: name it instead of calling it blank."""
    blank = [p for p in pages if p.state == "blank" and not p.note][:50]
    if not blank:
        return
    from pdfminer.pdfdocument import PDFDocument
    from pdfminer.pdfpage import PDFPage
    from pdfminer.pdfparser import PDFParser as MinerParser
    from pdfminer.pdftypes import PDFException, PDFStream, resolve1
    from pdfminer.psexceptions import PSException

    broken = (
        PDFException,
        PSException,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        AssertionError,
        OSError,
        RecursionError,
    )
    wanted = {p.number: p for p in blank}
    try:
        with request.path.open("rb") as file:
            document = PDFDocument(MinerParser(file), password=request.password)
            for number, miner in enumerate(PDFPage.create_pages(document), 1):
                if number not in wanted:
                    continue
                for stream in map(resolve1, miner.contents):
                    if isinstance(stream, PDFStream) and _is_broken(stream):
                        wanted[number].state = "damaged"
    except broken:
        return  # what pdfminer cannot open tells nothing about the pages


def _is_broken(stream: Any) -> bool:
    import zlib

    from pdfminer.pdftypes import PDFException

    raw = stream.get_rawdata()
    if raw is None or len(raw) < 8:
        return False
    try:
        data = stream.get_data()
    except (PDFException, zlib.error, ValueError, TypeError, KeyError):
        return True
    if not data.strip():
        return bool(stream.get_filters())
    words = Counter(
        re.findall(rb"(?<![\w.])(?:re|m|l|BT|Do|Tj|TJ|cm|q|Q|f|S|n|W|gs|BI|sh|rg|RG|g|G|BMC|EMC|BDC|w)(?![\w.])", data[:20_000])
    )
    return not words
