"""EPUB: the chapters in the order of the spine."""

from __future__ import annotations

import posixpath
import re
import zipfile
from typing import Any
from urllib.parse import unquote

from apps.ingestion.plugins.archives import check_archive, know_old_names, read_part
from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.encodings import decode_html
from apps.ingestion.plugins.markdown_blocks import add_markdown
from apps.ingestion.plugins.parsers.web import page_context, read_html
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers

_XHTML = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_ENTITY = re.compile(rb"<!ENTITY", re.I)


def _xml(data: bytes, name: str) -> Any:
    from lxml import etree

    if _ENTITY.search(data):
        raise ParseFailure("unsafe", f"unsafe: {name} declares entities")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, recover=True, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise ParseFailure("corrupt", f"{name} is damaged: {error}") from error
    if root is None:
        raise ParseFailure("corrupt", f"{name} is damaged")
    return root


@parsers.register("epub")
class EpubParser:
    media_types = ("application/epub+zip",)
    extensions = ("epub",)

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        # Chapters are XHTML and may carry the usual DOCTYPE; the package files may not declare entities.
        check_archive(request.path, request.max_unpacked_bytes, allow_doctype=True)
        try:
            with zipfile.ZipFile(request.path) as archive:
                know_old_names(archive)
                return self._read(archive, request, progress)
        except zipfile.BadZipFile as error:
            raise ParseFailure("corrupt", f"the EPUB is damaged: {error}") from error

    def _read(self, archive: zipfile.ZipFile, request: ParseRequest, progress: Progress) -> ParsedDocument:
        root, package = self._package(archive)
        items = {i.get("id"): i for i in package.iter("{*}item")}
        spine = [items[ref.get("idref")] for ref in package.iter("{*}itemref") if ref.get("idref") in items]
        chapters = [i for i in spine if i.get("media-type") in _XHTML] or [i for i in items.values() if i.get("media-type") in _XHTML]
        if not chapters:
            raise ParseFailure("corrupt", "not a valid EPUB: its package lists no chapters")
        builder = DocumentBuilder(request.max_chars)
        kinds = {posixpath.normpath(posixpath.join(root, unquote(i.get("href") or ""))): i.get("media-type") for i in items.values()}
        for index, item in enumerate(chapters):
            path = posixpath.normpath(posixpath.join(root, unquote(item.get("href") or "")))
            data = read_part(archive, path, 50_000_000)
            if not data:
                builder.warn("missing_part", f"chapter {path[:200]!r} is missing", Position(part=path[:200]), key=path)
                continue
            self._chapter(builder, archive, path, data, kinds, request)
            progress(index + 1, len(chapters), "parts")
        title = next((one_line("".join(t.itertext())) for t in package.iter("{http://purl.org/dc/elements/1.1/}title")), "")
        language = next((one_line(t.text or "") for t in package.iter("{http://purl.org/dc/elements/1.1/}language")), "")
        author = next((one_line(t.text or "") for t in package.iter("{http://purl.org/dc/elements/1.1/}creator")), "")
        details = {"author": author} if author else {}
        return builder.finish(title=title, language=language, counts={"parts": len(chapters)}, details=details)

    def _package(self, archive: zipfile.ZipFile) -> tuple[str, Any]:
        container = read_part(archive, "META-INF/container.xml", 1_000_000)
        path = ""
        if container:
            path = next((r.get("full-path") or "" for r in _xml(container, "container.xml").iter("{*}rootfile")), "")
        path = path or next((n for n in archive.namelist() if n.endswith(".opf")), "")
        data = read_part(archive, path, 20_000_000) if path else b""
        if not data:
            raise ParseFailure("corrupt", "not a valid EPUB: its package file is missing")
        return posixpath.dirname(path), _xml(data, "the package file")

    def _chapter(
        self,
        builder: DocumentBuilder,
        archive: zipfile.ZipFile,
        path: str,
        data: bytes,
        kinds: dict[str, str | None],
        request: ParseRequest,
    ) -> None:
        pictures: dict[str, tuple[str, bytes]] = {}
        markup = decode_html(data, request.encoding).text
        for address in set(re.findall(r"""<img\b[^>]*?\bsrc\s*=\s*["']([^"']{1,500})""", markup)):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(address)))
            kind = kinds.get(target)
            if kind in _PICTURES and len(builder.images) < 300:
                pictures[address] = (kind, read_part(archive, target, 20_000_000))
        text, title = read_html(markup)
        place = Position(part=(title or posixpath.basename(path))[:200])
        add_markdown(builder, text, page_context(builder, place, pictures))
