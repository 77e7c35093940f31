"""HTML and MHTML: what a reader of the page reads, without its furniture."""

from __future__ import annotations

import email
import email.policy
import re
from typing import Any

from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.encodings import decode_html
from apps.ingestion.plugins.markdown_blocks import Context, add_markdown
from apps.ingestion.plugins.parsers.markdown import data_uri
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers

#: libxml2 stops at 256 levels for us, html-to-markdown loses the text beyond a few thousand.
MAX_DEPTH = 200
_NOISE = (
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "nav",
    "iframe",
    "object",
    "embed",
    "head",
    "select",
    "button",
    "dialog",
    "canvas",
)
_UNWRAP = ["a", "strong", "b", "em", "i", "u", "span", "font", "mark", "small", "s", "del", "ins", "sub", "sup", "abbr", "code-inline"]
_OPENING = re.compile(r"<(/?)([a-zA-Z][\w:-]*)\b[^<>]*?(/?)>")
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr p li td th tr option dt dd".split())
_BOXES = re.compile(
    r"</?(?:div|span|section|article|main|font|center|form|b|i|u|em|strong|small|big|ins|del|a|blockquote|ul|ol|table|tbody)\b[^<>]*>", re.I
)


def _depth(markup: str) -> int:
    depth = deepest = 0
    for closing, name, own in _OPENING.findall(markup):
        if name.lower() in _VOID or own:
            continue
        depth += -1 if closing else 1
        depth = max(depth, 0)
        deepest = max(deepest, depth)
    return deepest


def read_html(markup: str) -> tuple[str, str]:
    """Markdown of the readable part of a page, and its title."""
    from lxml import etree
    from lxml import html as lxml_html

    markup = re.sub(r"\A\s*<\?xml[^>]*\?>", "", markup.replace("\x00", ""))
    if _depth(markup) > MAX_DEPTH:
        markup = _BOXES.sub("\n", markup)
    if not markup.strip():
        return "", ""
    try:
        root = lxml_html.document_fromstring(markup, parser=lxml_html.HTMLParser(huge_tree=True, remove_comments=True, remove_pis=True))
    except (etree.ParserError, etree.XMLSyntaxError):
        return "", ""  # nothing but comments or white space
    found = root.find(".//title")
    title = one_line(found.text_content()) if found is not None else ""
    _clean(root)
    return _convert(lxml_html.tostring(root, encoding="unicode")), title


def _clean(root: Any) -> None:
    """Take out what nobody reads, and square the tables."""
    for element in list(root.iter(*_NOISE)):
        if element.tag == "head" or element.getparent() is None:
            for child in list(element):
                element.remove(child)
            element.text = None
            continue
        element.drop_tree()
    for element in list(root.iter()):
        if not isinstance(element.tag, str) or element.getparent() is None:
            continue
        style = (element.get("style") or "").replace(" ", "").lower()
        if element.get("hidden") is not None or "display:none" in style or "visibility:hidden" in style:
            element.drop_tree()
        elif element.tag in ("code", "kbd", "samp", "tt") and not any(a.tag == "pre" for a in element.iterancestors()):
            element.drop_tag()
    for table in list(root.iter("table")):
        if next(table.iterdescendants("table"), None) is not None:
            _flatten_layout(table)
    for table in list(root.iter("table")):
        fill_spans(table)


def _flatten_layout(table: Any) -> None:
    """A table around tables is page layout: its cells are just boxes."""
    for element in list(table.iter("table", "tbody", "thead", "tfoot", "tr", "td", "th")):
        owner = element if element.tag == "table" else next(element.iterancestors("table"), None)
        if owner is table:
            element.tag = "div"
            for name in list(element.attrib):
                del element.attrib[name]


def fill_spans(table: Any) -> None:
    """Copy a merged cell's content through its range, so that every row says all it means."""
    from copy import deepcopy

    rows = [row for row in table.iter("tr") if next(row.iterancestors("table"), None) is table]
    cells_of = [[c for c in row if c.tag in ("td", "th")] for row in rows]
    if not any(c.get("rowspan") or c.get("colspan") for cells in cells_of for c in cells):
        return
    hanging: dict[int, tuple[int, Any]] = {}  # column -> (rows left, cell)
    for row, cells in zip(rows, cells_of, strict=True):
        out: list[Any] = []
        queue = list(cells)
        while (queue or any(column >= len(out) for column in hanging)) and len(out) < 2000:
            column = len(out)
            if column in hanging:
                left, cell = hanging.pop(column)
                out.append(deepcopy(cell))
                if left > 1:
                    hanging[column] = (left - 1, cell)
                continue
            if not queue:
                blank = deepcopy(cells[0]) if cells else row.makeelement("td")
                for child in list(blank):
                    blank.remove(child)
                blank.text = None
                out.append(blank)
                continue
            cell = queue.pop(0)
            across, down = _span(cell, "colspan", 200), _span(cell, "rowspan", len(rows))
            cell.tail = None
            for step in range(across):
                copy = cell if step == 0 else deepcopy(cell)
                out.append(copy)
                if down > 1:
                    hanging[column + step] = (down - 1, deepcopy(cell))
        for child in list(row):
            row.remove(child)
        row.extend(out)


def _span(cell: Any, name: str, most: int) -> int:
    value = (cell.attrib.pop(name, "") or "").strip()
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 1
    return max(1, min(number or most, most))


def _convert(markup: str) -> str:
    import html_to_markdown as converter

    options = converter.ConversionOptions(
        strip_tags=_UNWRAP,
        extract_metadata=False,
        autolinks=False,
        br_in_tables=False,
        highlight_style="none",
        preprocessing=converter.PreprocessingOptions(enabled=False),
    )
    try:
        return converter.convert(markup, options).content or ""
    except converter.ConversionError as error:
        raise ParseFailure("corrupt", f"the page cannot be read: {error}") from error


def add_html(builder: DocumentBuilder, markup: str, context: Context | None = None) -> str:
    """Append a page's blocks; gives its title."""
    text, title = read_html(markup)
    add_markdown(builder, text, context or page_context(builder))
    return title


def page_context(
    builder: DocumentBuilder, position: Position | None = None, pictures: dict[str, tuple[str, bytes]] | None = None
) -> Context:
    """Blocks of a page have no lines; `position` is what they all share. `pictures` are the ones that came along, by address."""
    place = position or Position()

    def keep(address: str, alt: str) -> None:
        found = (pictures or {}).get(address) or data_uri(address)
        if found:
            builder.image(f"image-{len(builder.images) + 1}.{found[0].split('/')[-1]}", found[0], found[1], place, alt)

    return Context(place=lambda first, last: place, on_image=keep)


@parsers.register("html")
class HtmlParser:
    media_types = ("text/html", "application/xhtml+xml")
    extensions = ("html", "htm", "xhtml")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        decoded = decode_html(request.path.read_bytes(), request.encoding, request.charset_hint)
        builder = DocumentBuilder(request.max_chars)
        context = page_context(builder)
        title = add_html(builder, decoded.text, context)
        if decoded.replaced:
            builder.warn("replaced_characters", f"{decoded.replaced} characters could not be read as {decoded.encoding}")
        progress(1, 1, "files")
        details = {"links": context.links} if context.links else {}
        return builder.finish(title=title or builder.first_heading(), encoding=decoded.encoding, details=details)


@parsers.register("mhtml")
class MhtmlParser:
    media_types = ("multipart/related", "application/x-mimearchive")
    extensions = ("mhtml", "mht")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        message = email.message_from_bytes(request.path.read_bytes(), policy=email.policy.compat32)
        pages, pictures = [], {}
        for part in message.walk():
            if part.is_multipart():
                continue
            kind = part.get_content_type()
            data = part.get_payload(decode=True)
            if not isinstance(data, bytes):
                continue
            if kind in ("text/html", "application/xhtml+xml"):
                pages.append((part, data))
            elif kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
                for name in (part.get("Content-Location"), f"cid:{(part.get('Content-ID') or '').strip('<> ')}"):
                    if name:
                        pictures[str(name)] = (kind, data)
        if not pages:
            raise ParseFailure("corrupt", "not a valid MHTML file: it holds no page")
        builder = DocumentBuilder(request.max_chars)
        title = encoding = ""
        for index, (part, data) in enumerate(pages):
            decoded = decode_html(data, request.encoding, part.get_content_charset() or "")
            place = Position(part=str(part.get("Content-Location") or "")[:300] or None) if index else Position()
            found = add_html(builder, decoded.text, page_context(builder, place, pictures))
            title, encoding = title or found, encoding or decoded.encoding
            progress(index + 1, len(pages), "parts")
        return builder.finish(title=title or builder.first_heading(), encoding=encoding)
