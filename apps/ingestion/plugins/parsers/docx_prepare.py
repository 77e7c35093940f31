"""Makes visible to mammoth what it would lose: automatic numbers, text boxes, equations, heading styles under any name."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apps.ingestion.plugins.archives import read_part
from apps.ingestion.plugins.builder import one_line
from apps.ingestion.plugins.parsers.docx_numbering import Numbering, W, _int, _value
from apps.ingestion.plugins.protocol import ParseFailure

MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_HEADING = re.compile(r"^(?:heading|标题|標題|titre|überschrift)\s*([1-9])$", re.I)
STYLE_MAP = "\n".join(
    [
        "p.KbTitle => h1:fresh",
        *(f"p.KbHeading{n} => h{min(n, 6)}:fresh" for n in range(1, 10)),
        "p.KbCode => pre:separator('\\n')",
        "b => ",
        "i => ",
        "u => ",
        "strike => ",
        "comment-reference => ",
    ]
)


@dataclass(slots=True)
class Style:
    name: str = ""
    based_on: str = ""
    outline: int | None = None
    num_id: str | None = None
    num_level: int | None = None


@dataclass(slots=True)
class Prepared:
    """The changed file for mammoth, and what stands outside its body."""

    file: io.BytesIO
    headers: list[str] = field(default_factory=list)
    footers: list[str] = field(default_factory=list)
    title: str = ""


def parse_xml(data: bytes, name: str) -> Any:
    """Raises: ParseFailure("corrupt")."""
    from lxml import etree

    try:
        return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True))
    except etree.XMLSyntaxError as error:
        raise ParseFailure("corrupt", f"{name} is damaged: {error}") from error


def prepare(path: Path) -> Prepared:
    """Raises: ParseFailure when the file is no Word document or its main part is damaged."""
    from lxml import etree

    try:
        with zipfile.ZipFile(path) as archive:
            main = _main_part(archive)
            folder = main.rpartition("/")[0]
            body = parse_xml(read_part(archive, main), main)
            styles = _styles(_optional(archive, f"{folder}/styles.xml"))
            numbering_root = _optional(archive, f"{folder}/numbering.xml")
            _hoist_text_boxes(body)
            _flatten_equations(body)
            _number(body, styles, Numbering.read(numbering_root))
            changed = {main: etree.tostring(body, xml_declaration=True, encoding="UTF-8", standalone=True)}
            if numbering_root is not None:
                for link in list(numbering_root.iter(f"{W}pStyle")):
                    link.getparent().remove(link)
                changed[f"{folder}/numbering.xml"] = etree.tostring(numbering_root, xml_declaration=True, encoding="UTF-8", standalone=True)
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as copy:
                for name in dict.fromkeys(archive.namelist()):
                    if not name.endswith("/") and not name.startswith(f"{folder}/embeddings/"):
                        copy.writestr(name, changed[name] if name in changed else read_part(archive, name))
            out.seek(0)
            names = sorted(archive.namelist())
            headers = _furniture(archive, [n for n in names if re.fullmatch(rf"{re.escape(folder)}/header\d*\.xml", n)])
            footers = _furniture(archive, [n for n in names if re.fullmatch(rf"{re.escape(folder)}/footer\d*\.xml", n)])
            return Prepared(out, headers, footers, _core_title(archive))
    except zipfile.BadZipFile as error:
        raise ParseFailure("corrupt", f"the file is damaged: {error}") from error


def _main_part(archive: zipfile.ZipFile) -> str:
    rels = read_part(archive, "_rels/.rels", 1_000_000)
    names = set(archive.namelist())
    if rels:
        for rel in parse_xml(rels, "_rels/.rels").iter("{*}Relationship"):
            if (rel.get("Type") or "").endswith("/officeDocument") and (target := (rel.get("Target") or "").lstrip("/")) in names:
                return target
    if "word/document.xml" in names:
        return "word/document.xml"
    raise ParseFailure("corrupt", "not a valid Word document: its main part is missing")


def _optional(archive: zipfile.ZipFile, name: str) -> Any | None:
    data = read_part(archive, name)
    try:
        return parse_xml(data, name) if data else None
    except ParseFailure:
        return None  # damaged styles or numbering cost looks, not text


def _core_title(archive: zipfile.ZipFile) -> str:
    root = _optional(archive, "docProps/core.xml")
    if root is None:
        return ""
    return next((one_line(t.text or "") for t in root.iter("{http://purl.org/dc/elements/1.1/}title")), "")


def _furniture(archive: zipfile.ZipFile, names: list[str]) -> list[str]:
    """The text of headers or footers, each once; a bare page number is none."""
    found: list[str] = []
    for name in names:
        root = _optional(archive, name)
        if root is None:
            continue
        text = "\n".join(filter(None, (one_line(paragraph_text(p)) for p in root.iter(f"{W}p"))))
        if text and text not in found and not re.fullmatch(r"[\d\W_]*(?:page|of|第|页|共)?[\d\W_]*(?:页|of)?[\d\W_]*", text, re.I):
            found.append(text)
    return found


def paragraph_text(paragraph: Any) -> str:
    out = []
    for node in paragraph.iter(f"{W}t", f"{W}tab", f"{W}br"):
        out.append(node.text or "" if node.tag == f"{W}t" else " ")
    return "".join(out)


def _styles(root: Any | None) -> dict[str, Style]:
    styles: dict[str, Style] = {}
    for element in root.iter(f"{W}style") if root is not None else ():
        if element.get(f"{W}type") not in (None, "paragraph"):
            continue
        style = Style(name=_value(element, "name") or "", based_on=_value(element, "basedOn") or "")
        properties = element.find(f"{W}pPr")
        if properties is not None:
            outline = _value(properties, "outlineLvl")
            style.outline = _int(outline, 9) if outline is not None else None
            numbering = properties.find(f"{W}numPr")
            if numbering is not None:
                style.num_id, level = _value(numbering, "numId"), _value(numbering, "ilvl")
                style.num_level = _int(level, 0) if level is not None else None
        styles[element.get(f"{W}styleId") or ""] = style
    return styles


def _chain(styles: dict[str, Style], key: str) -> list[tuple[str, Style]]:
    """The style and those it is based on, nearest first."""
    chain: list[tuple[str, Style]] = []
    while key in styles and len(chain) < 20:
        chain.append((key, styles[key]))
        key = styles[key].based_on
    return chain


def _heading(chain: list[tuple[str, Style]], properties: Any | None) -> int:
    """Heading level 1..9 of a paragraph, 0 for none."""
    own = _value(properties, "outlineLvl") if properties is not None else None
    if own is not None:
        return _int(own, 9) + 1 if _int(own, 9) < 9 else 0
    for _, style in chain:
        if found := _HEADING.match(style.name):
            return int(found[1])
        if style.outline is not None:
            return style.outline + 1 if style.outline < 9 else 0
    return 0


def _number(body: Any, styles: dict[str, Style], numbering: Numbering) -> None:
    """Write automatic numbers into the text, and give headings the style names STYLE_MAP knows."""
    default = next((k for k, s in styles.items() if s.name.lower() == "normal"), "")
    for paragraph in body.iter(f"{W}p"):
        properties = paragraph.find(f"{W}pPr")
        key = (_value(properties, "pStyle") if properties is not None else None) or default
        chain = _chain(styles, key)
        num_id, level = _numbering_of(properties, chain, numbering)
        label = numbering.label(num_id, level) if num_id and paragraph_text(paragraph).strip() else None
        heading = _heading(chain, properties)
        name = chain[0][1].name.lower() if chain else ""
        if properties is None:
            properties = paragraph.makeelement(f"{W}pPr")
            paragraph.insert(0, properties)
        if name in ("title", "标题", "標題"):
            _set_style(properties, "KbTitle")
        elif heading:
            _set_style(properties, f"KbHeading{heading}")
        elif name in ("html preformatted", "code", "source code", "代码", "code block"):
            _set_style(properties, "KbCode")
        if num_id and (label is not None or heading):
            _set_numbering(properties, "0", 0)
            if label:
                _prepend(paragraph, properties, label)
        elif num_id:
            _set_numbering(properties, num_id, level)  # a bullet that came from the style


def _numbering_of(properties: Any | None, chain: list[tuple[str, Style]], numbering: Numbering) -> tuple[str, int]:
    own = properties.find(f"{W}numPr") if properties is not None else None
    num_id = _value(own, "numId") if own is not None else None
    level = _value(own, "ilvl") if own is not None else None
    if num_id is None:
        for key, style in chain:
            if style.num_id is not None:
                num_id = style.num_id
                if level is None:
                    # The list says which of its levels belongs to which style; the style's own number comes after.
                    named = numbering.level_of_style(num_id, chain[0][0]) or numbering.level_of_style(num_id, key)
                    level = str(named or style.num_level or next((s.num_level for _, s in chain if s.num_level is not None), 0))
                break
    if num_id is None or num_id == "0":
        return "", 0
    return num_id, _int(level, 0)


def _set_style(properties: Any, name: str) -> None:
    style = properties.find(f"{W}pStyle")
    if style is None:
        style = properties.makeelement(f"{W}pStyle")
        properties.insert(0, style)
    style.set(f"{W}val", name)


def _set_numbering(properties: Any, num_id: str, level: int) -> None:
    numbering = properties.find(f"{W}numPr")
    if numbering is not None:
        properties.remove(numbering)
    numbering = properties.makeelement(f"{W}numPr")
    for name, value in (("ilvl", str(level)), ("numId", num_id)):
        child = numbering.makeelement(f"{W}{name}")
        child.set(f"{W}val", value)
        numbering.append(child)
    properties.append(numbering)


def _run(parent: Any, text: str) -> Any:
    run = parent.makeelement(f"{W}r")
    node = run.makeelement(f"{W}t")
    node.text = text
    node.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
    run.append(node)
    return run


def _prepend(paragraph: Any, properties: Any, label: str) -> None:
    paragraph.insert(paragraph.index(properties) + 1, _run(paragraph, label))


def _flatten_equations(body: Any) -> None:
    """An equation becomes its characters in their order; better a flat formula than none."""
    for math in list(body.iter(f"{M}oMath")):
        parent = math.getparent()
        text = "".join(t.text or "" for t in math.iter(f"{M}t"))
        if parent is None or not text:
            continue
        if parent.tag == f"{M}oMathPara":
            outer = parent.getparent()
            if outer is not None:
                outer.insert(outer.index(parent), _run(outer, text))
        else:
            parent.replace(math, _run(parent, text))


def _hoist_text_boxes(body: Any) -> None:
    """Move the paragraphs of text boxes behind the paragraph they hang on; of two renderings of one box the first counts."""
    for _ in range(10):
        boxes = list(body.iter(f"{W}txbxContent"))
        if not boxes:
            return
        box = boxes[0]
        alternate = next((a for a in box.iterancestors(f"{MC}AlternateContent")), None)
        host = next((p for p in box.iterancestors(f"{W}p") if next(p.iterancestors(f"{W}txbxContent"), None) is None), None)
        if host is None:
            return
        place = host
        for box in [b for b in host.iter(f"{W}txbxContent") if next(b.iterancestors(f"{W}txbxContent"), None) is None]:
            alternate = next(box.iterancestors(f"{MC}AlternateContent"), None)
            if alternate is not None and next(box.iterancestors(f"{MC}Fallback"), None) is not None and alternate.get("kb") == "read":
                continue
            if alternate is not None:
                alternate.set("kb", "read")
            for child in list(box):
                if child.tag in (f"{W}p", f"{W}tbl", f"{W}sdt"):
                    place.addnext(child)
                    place = child
        for box in list(host.iter(f"{W}txbxContent")):
            container = next(
                (a for a in box.iterancestors() if a.tag in (f"{MC}AlternateContent", f"{W}pict", f"{W}drawing", f"{W}object")), box
            )
            outer = next(container.iterancestors(f"{MC}AlternateContent"), None)
            container = outer if outer is not None else container
            if container.getparent() is not None:
                container.getparent().remove(container)
    _hoist_text_boxes(body)
