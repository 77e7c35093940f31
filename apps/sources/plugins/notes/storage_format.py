"""Confluence's storage format (XHTML with macros) as Markdown."""

from __future__ import annotations

import html
import re
from typing import Any

from apps.sources.plugins.notes.marks import fenced

LIMIT = 10_000_000
_QUOTES = ("info", "note", "tip", "warning", "panel", "quote", "excerpt")
_SILENT = ("toc", "children", "pagetree", "livesearch", "recently-updated", "contributors", "attachments", "gallery", "profile", "anchor")


def to_markdown(storage: str) -> str:
    """The text of a page; macros that hold text are kept, those that draw something from elsewhere are left out."""
    from html_to_markdown import convert
    from lxml import etree

    text = re.sub(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);)(\w{2,10});", _named, storage[:LIMIT].replace("\0", ""))
    if re.search(r"<!(?:DOCTYPE|ENTITY)", text, re.I):
        text = re.sub(r"<!DOCTYPE[^>\[]*(?:\[[^\]]*\])?\s*>|<!ENTITY[^>]*>", "", text, flags=re.I)
    wrapped = f'<root xmlns:ac="urn:ac" xmlns:ri="urn:ri" xmlns:at="urn:at">{text}</root>'
    root = etree.fromstring(wrapped.encode(), etree.XMLParser(recover=True, resolve_entities=False, no_network=True, remove_comments=True))
    if root is None:
        return ""
    codes: list[str] = []
    _plain(root, codes)
    markup = etree.tostring(root, encoding="unicode", method="html")
    markdown = convert(re.sub(r"\A<root[^>]*>|</root>\Z", "", markup)).content or ""
    markdown = re.sub(r"(?m)^(?!>)(.+)\n(?=>)", r"\1\n\n", markdown)
    for number, code in enumerate(codes):
        markdown = markdown.replace(f"KBCODEBLOCK{number}END", code)
    return re.sub(r"\n{3,}", "\n\n", markdown).strip()


def _named(found: re.Match[str]) -> str:
    character = html.unescape(found.group(0))
    return html.escape(character) if character != found.group(0) else f"&amp;{found.group(1)};"


def _plain(root: Any, codes: list[str]) -> None:
    """Every element of Confluence's own becomes one of HTML, innermost first."""
    for node in reversed(list(root.iter("{urn:ac}*", "{urn:ri}*", "{urn:at}*"))):
        name = node.tag.rpartition("}")[2]
        if name in ("structured-macro", "macro"):
            _macro(node, codes)
        elif name == "image":
            node.tag, node.text = "span", node.get("{urn:ac}alt") or ""
            _empty(node)
        elif name == "link":
            _link(node)
        elif name == "task":
            _task(node)
        elif name == "task-list":
            node.tag = "ul"
        elif name in ("parameter", "task-id", "task-uuid", "emoticon", "placeholder") and _macro_of(node) is None:
            node.tag, node.text = "span", (node.get("{urn:ac}emoji-fallback") or "") if name == "emoticon" else ""
            _empty(node)
        elif name in ("layout", "layout-section", "layout-cell", "rich-text-body"):
            node.tag = "div"
    for node in root.iter("{urn:ac}*", "{urn:ri}*", "{urn:at}*"):
        node.tag = "span"
    for node in root.iter():
        if isinstance(node.tag, str):
            for key in [key for key in node.attrib if key.startswith("{")]:
                del node.attrib[key]


def _macro_of(node: Any) -> Any:
    parent = node.getparent()
    return parent if parent is not None and isinstance(parent.tag, str) and parent.tag.endswith("macro") else None


def _empty(node: Any) -> None:
    for child in list(node):
        node.remove(child)


def _macro(node: Any, codes: list[str]) -> None:
    name = (node.get("{urn:ac}name") or "").lower()
    parameters = {child.get("{urn:ac}name") or "": (child.text or "").strip() for child in node if child.tag == "{urn:ac}parameter"}
    plain = next((child.text or "" for child in node if child.tag == "{urn:ac}plain-text-body"), None)
    for child in [child for child in node if child.tag == "{urn:ac}parameter"]:
        node.remove(child)
    node.attrib.clear()
    if plain is not None:
        codes.append(fenced(plain.strip("\n"), re.sub(r"[^\w+#-]", "", parameters.get("language", ""))))
        _empty(node)
        node.tag, node.text = "p", f"KBCODEBLOCK{len(codes) - 1}END"
        return
    if name in _SILENT:
        _empty(node)
        node.tag, node.text = "span", ""
        return
    node.tag = "blockquote" if name in _QUOTES else "div"
    if name == "status":
        node.tag, node.text = "span", parameters.get("title", "")
    elif parameters.get("title"):
        title = node.makeelement("p")
        title.text = parameters["title"]
        node.insert(0, title)


def _link(node: Any) -> None:
    """The text of a link inside Confluence; its target has no address outside of it."""
    body = next((child for child in node if isinstance(child.tag, str) and child.tag.endswith("link-body")), None)
    target = next((child for child in node if isinstance(child.tag, str) and child.tag.startswith("{urn:ri}")), None)
    named = ""
    if target is not None:
        named = target.get("{urn:ri}content-title") or target.get("{urn:ri}filename") or ""
    text = "".join(body.itertext()) if body is not None else ""
    tail = node.tail
    _empty(node)
    node.tag, node.text, node.tail = "span", text.strip() or named, tail


def _task(node: Any) -> None:
    status = "".join(child.text or "" for child in node if child.tag.endswith("task-status"))
    body = next((child for child in node if child.tag.endswith("task-body")), None)
    text = "".join(body.itertext()).strip() if body is not None else ""
    _empty(node)
    node.tag, node.text = "li", f"[{'x' if status == 'complete' else ' '}] {text}"
