"""What a file really is: its content first, its name second. Standard library only; reads a few kilobytes and ZIP or OLE directories."""

from __future__ import annotations

import mmap
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from apps.ingestion.plugins.encodings import utf16_without_mark

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLSB = "application/vnd.ms-excel.sheet.binary.macroEnabled.12"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ENCRYPTED = "application/x-encrypted-office"


@dataclass(frozen=True, slots=True)
class FileType:
    media_type: str
    extension: str  # the one a download gets
    family: str  # the parser that reads it
    also: tuple[str, ...] = ()  # further extensions that mean the same


#: Everything that is accepted, in one place: uploads, URL import, data sources and the portal's file dialog read it.
ACCEPTED: tuple[FileType, ...] = (
    FileType("application/pdf", "pdf", "pdf"),
    FileType(
        "text/plain", "txt", "text", ("log", "text", "yaml", "yml", "ini", "toml", "rst", "srt", "vtt", "tex", "xml", "conf", "properties")
    ),
    FileType(DOCX, "docx", "docx", ("docm", "dotx")),
    FileType("application/msword", "doc", "legacy", ("dot",)),
    FileType("application/epub+zip", "epub", "epub"),
    FileType("text/html", "html", "html", ("htm", "xhtml")),
    FileType("multipart/related", "mhtml", "mhtml", ("mht",)),
    FileType("text/markdown", "md", "markdown", ("markdown", "mdown", "mkd")),
    FileType("image/png", "png", "image"),
    FileType("image/jpeg", "jpg", "image", ("jpeg",)),
    FileType("image/gif", "gif", "image"),
    FileType("image/webp", "webp", "image"),
    FileType("image/tiff", "tiff", "image", ("tif",)),
    FileType("image/bmp", "bmp", "image"),
    FileType("text/csv", "csv", "csv"),
    FileType("text/tab-separated-values", "tsv", "csv"),
    FileType(XLSX, "xlsx", "sheets", ("xlsm",)),
    FileType("application/vnd.ms-excel", "xls", "sheets"),
    FileType(XLSB, "xlsb", "sheets"),
    FileType(ODS, "ods", "sheets"),
    FileType(PPTX, "pptx", "pptx", ("pptm", "ppsx")),
    FileType("application/vnd.ms-powerpoint", "ppt", "legacy", ("pps",)),
    FileType("application/json", "json", "json", ("jsonl", "ndjson")),
    FileType("message/rfc822", "eml", "eml"),
)
BY_EXTENSION = {ext: t for t in ACCEPTED for ext in (t.extension, *t.also)}
BY_MEDIA_TYPE = {t.media_type: t for t in ACCEPTED}
EXTENSIONS = tuple(BY_EXTENSION)
_TEXT_FAMILIES = {"text", "html", "mhtml", "markdown", "csv", "json", "eml"}
_HEADERS = re.compile(
    rb"^(?:from|to|cc|subject|date|received|return-path|message-id|mime-version|content-type|delivered-to|reply-to|x-[\w-]+):", re.I | re.M
)


@dataclass(frozen=True, slots=True)
class Sniffed:
    """What a file is. `family` is "" when nothing reads it, "empty" for zero bytes, "locked" for an encrypted Office file.

    `mismatch`: the name's extension claims another kind (the content was believed).
    """

    media_type: str
    extension: str
    family: str
    mismatch: bool = False


def extension_of(file_name: str) -> str:
    """The lower-case extension without its dot; "" when the name has none."""
    name = re.split(r"[/\\]", file_name)[-1].rstrip(" .")
    stem, dot, extension = name.rpartition(".")
    return extension.lower() if dot and len(extension) <= 10 else ""


def sniff(path: Path, file_name: str) -> Sniffed:
    """What the file at `path` is; `file_name` (the name it came under) decides only between kinds of text."""
    claimed = extension_of(file_name)
    with path.open("rb") as file:
        head = file.read(8192)
    if not head:
        return Sniffed("application/x-empty", claimed, "empty")
    found = _binary(path, head, claimed)
    if found is None:
        found = _text(head, claimed)
    known = BY_EXTENSION.get(claimed)
    return Sniffed(found.media_type, found.extension, found.family, mismatch=bool(known and found.family and known.family != found.family))


def _as(extension: str, media_type: str = "", family: str | None = None) -> Sniffed:
    known = BY_EXTENSION.get(extension)
    if known and not media_type:
        return Sniffed(known.media_type, known.extension, known.family)
    return Sniffed(media_type or "application/octet-stream", extension, family or "")


def _binary(path: Path, head: bytes, claimed: str) -> Sniffed | None:
    if b"%PDF-" in head[:1024] and not head.startswith(b"PK\x03\x04"):
        return _as("pdf")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _zip(path, head, claimed)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return _ole(path, claimed)
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _as("png")
    if head.startswith(b"\xff\xd8\xff"):
        return _as("jpg")
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _as("gif")
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _as("webp")
    if head.startswith((b"II*\0", b"MM\0*")):
        return _as("tiff")
    if head.startswith(b"BM") and head[6:10] == b"\0\0\0\0" and claimed == "bmp":
        return _as("bmp")
    for magic, extension, media_type in (
        (b"{\\rtf", "rtf", "application/rtf"),
        (b"\x7fELF", "elf", "application/x-executable"),
        (b"MZ", "exe", "application/x-msdownload"),
        (b"Rar!", "rar", "application/vnd.rar"),
        (b"7z\xbc\xaf\x27\x1c", "7z", "application/x-7z-compressed"),
        (b"\x1f\x8b", "gz", "application/gzip"),
        (b"ID3", "mp3", "audio/mpeg"),
        (b"OggS", "ogg", "audio/ogg"),
        (b"fLaC", "flac", "audio/flac"),
    ):
        if head.startswith(magic) and not (extension == "exe" and b"\0" not in head):
            return _as(extension, media_type)
    if head[4:8] == b"ftyp" or (head.startswith(b"RIFF") and head[8:12] in (b"WAVE", b"AVI ")):
        return _as("mp4", "video/mp4")
    return None


def _zip(path: Path, head: bytes, claimed: str) -> Sniffed:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist()[:20_000])
            kind = archive.read("mimetype")[:100].decode("ascii", "ignore").strip() if _small(archive, "mimetype") else ""
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError, EOFError):
        # Cut off: the directory at the end is missing, but the first entry names tell what it was.
        names, kind = set(), ""
        for mark, extension in ((b"word/", "docx"), (b"ppt/", "pptx"), (b"xl/", "xlsx"), (b"epub", "epub")):
            if mark in head:
                return _as(extension)
        known = BY_EXTENSION.get(claimed)
        return _as(claimed) if known and known.family in {"docx", "pptx", "sheets", "epub"} else _as("zip", "application/zip")
    if kind == "application/epub+zip" or "META-INF/container.xml" in names and any(n.endswith(".opf") for n in names):
        return _as("epub")
    if kind.startswith("application/vnd.oasis.opendocument"):
        return _as("ods") if kind.startswith(ODS) else _as("odt", kind)
    if "word/document.xml" in names or any(n.startswith("word/document") and n.endswith(".xml") for n in names):
        return _as("docx")
    if "ppt/presentation.xml" in names:
        return _as("pptx")
    if "xl/workbook.bin" in names:
        return _as("xlsb")
    if "xl/workbook.xml" in names or any(n.startswith("xl/worksheets/") for n in names):
        return _as("xlsx")
    if "[Content_Types].xml" in names and BY_EXTENSION.get(claimed, FileType("", "", "")).family in {"docx", "pptx", "sheets"}:
        return _as(claimed)
    return _as("zip", "application/zip")


def _small(archive: zipfile.ZipFile, name: str) -> bool:
    try:
        return archive.getinfo(name).file_size < 1000
    except KeyError:
        return False


def _ole(path: Path, claimed: str) -> Sniffed:
    """Which streams the compound file's directory names (UTF-16 names)."""

    def has(name: str) -> bool:
        return data.find(name.encode("utf-16-le")) >= 0

    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if has("EncryptedPackage"):
            known = BY_EXTENSION.get(claimed)
            return Sniffed(ENCRYPTED, known.extension if known else "docx", "locked")
        if has("WordDocument"):
            return _as("doc")
        if has("PowerPoint Document"):
            return _as("ppt")
        if has("Workbook") or has("Book"):
            return _as("xls")
        if has("__substg1.0_"):
            return _as("msg", "application/vnd.ms-outlook")
    known = BY_EXTENSION.get(claimed)
    return _as(claimed) if known and claimed in {"doc", "xls", "ppt"} else _as("ole", "application/x-ole-storage")


def _looks_like_text(head: bytes) -> bool:
    """Text has next to no control characters; NULs it has only here and there, or at every second place (UTF-16)."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return True
    if utf16_without_mark(head):
        return True
    controls = sum(1 for b in head if b < 32 and b not in (0, 7, 8, 9, 10, 12, 13, 27))
    return controls <= 0.03 * len(head) and head.count(0) <= 0.2 * len(head)


def _text(head: bytes, claimed: str) -> Sniffed:
    known = BY_EXTENSION.get(claimed)
    if not _looks_like_text(head):
        return _as("bin", "application/octet-stream")
    plain = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe").lstrip()
    opening = re.sub(rb"^(?:\s*(?:<\?xml.*?\?>|<!--.*?-->))+", b"", plain, flags=re.S).lstrip()[:200].lower()
    if opening.startswith((b"<!doctype html", b"<html")):
        return _as("html")
    top = plain.split(b"\n\n", 1)[0].split(b"\r\n\r\n", 1)[0]
    headers = _HEADERS.findall(top)
    if plain[:1].isalpha() and _HEADERS.match(plain) and len(headers) >= 2 and claimed in {"", "eml", "mht", "mhtml", "html", "htm"}:
        related = re.search(rb"content-type:\s*multipart/related", top, re.I)
        saved = re.search(rb"snapshot-content-location|saved by|from:\s*<saved", top, re.I)
        return _as("mhtml") if claimed in {"mht", "mhtml"} or (related and saved) else _as("eml")
    if known and known.family in _TEXT_FAMILIES:
        return Sniffed(known.media_type, claimed, known.family)
    if known and known.family not in _TEXT_FAMILIES:
        # A text under a binary's name: too poor to be one, and not worth guessing what it was meant to be.
        return Sniffed("application/octet-stream", claimed, known.family)
    return Sniffed("text/plain", claimed or "txt", "text" if b"\0" not in head else "")
