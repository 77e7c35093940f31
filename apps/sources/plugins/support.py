"""What connectors share: settings checked against the declared inputs, safe XML, text and pages as files, times."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext_lazy as _

from apps.common.http import Fetched
from apps.common.text import clean_line, display_name
from apps.sources.plugins.protocol import ConnectorMeta, Content, Input, Link, Resource, SourceError
from apps.sources.web import temporary

T = TypeVar("T")

PAGE_SIZE = 200  # items of one page of a listing
MAX_LINES = 500
#: What is taken over from folders unless the settings say otherwise: what holds text. Pictures and settings files are asked for by name.
DOCUMENTS = tuple("md markdown mdown txt rst html htm pdf docx doc pptx ppt xlsx xls xlsb ods csv tsv epub eml mhtml json".split())
#: Everything the portal reads by name.
READABLE = frozenset(
    (*DOCUMENTS, *"bmp conf docm dot dotx gif ini jpeg jpg jsonl log mht mkd ndjson png pps ppsx pptm properties srt tex text".split())
) | frozenset("tif tiff toml vtt webp xhtml xlsm xml yaml yml".split())

EXTENSIONS_INPUT = Input(
    "extensions",
    _("File types"),
    kind="text",
    where="settings",
    hint=_("Extensions separated by commas, for example md, pdf, docx. Empty: all documents; pictures only when named."),
)
PATHS_INPUT = Input(
    "paths",
    _("Folders"),
    kind="lines",
    where="settings",
    hint=_("One per line, relative to the root. Empty: everything."),
)


class Plugin:
    """What most connectors have alike; see `protocol.Connector`."""

    meta: ConnectorMeta

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return cleaned(self.meta, settings)

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        return []

    def ancestors(self, link: Link, resource_ids: tuple[str, ...]) -> list[str]:
        return []


def bad(field: str, detail: Any) -> SourceError:
    """What is wrong with one setting."""
    return SourceError("bad_settings", str(detail), field=field)


def cleaned(meta: ConnectorMeta, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The declared settings alone, each of its kind; unknown keys are dropped. Raises: SourceError(bad_settings, field=...)."""
    return {
        declared.name: _value(declared, settings.get(declared.name, declared.default))
        for declared in meta.inputs
        if declared.where == "settings" and (declared.required or settings.get(declared.name, declared.default) not in ("", None))
    }


def _value(declared: Input, raw: Any) -> Any:
    name = declared.name
    if declared.kind == "boolean":
        return raw if isinstance(raw, bool) else str(raw).strip().lower() in ("1", "true", "on", "yes")
    if declared.kind == "number":
        if isinstance(raw, bool) or not re.fullmatch(r"\d{1,9}", str(raw).strip()):
            raise bad(name, _("Give a whole number."))
        return int(raw)
    if not isinstance(raw, str):
        raise bad(name, _("Give a text."))
    value = raw.replace("\r\n", "\n").strip() if declared.kind == "lines" else clean_line(raw)
    if declared.required and not value:
        raise bad(name, _("This is needed."))
    if len(value) > 20_000 or (declared.kind == "lines" and value.count("\n") >= MAX_LINES):
        raise bad(name, _("This is too long."))
    if declared.kind == "choice" and value not in {key for key, _label in declared.choices}:
        raise bad(name, _("Choose one of the values offered."))
    if declared.kind == "url":
        web_address(name, value)
    return value


def web_address(field: str, value: str) -> str:
    """An http or https address without user and password. Raises: SourceError(bad_settings)."""
    try:
        parts = urlsplit(value)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        fine = False
    if not fine or any(ord(sign) < 33 for sign in value):
        raise bad(field, _("This is not a web address. Write one like https://example.com/page."))
    if parts.username or parts.password:
        raise bad(field, _("Leave user name and password out of the address."))
    return value


def lines_of(value: Any) -> list[str]:
    """The lines of a "lines" setting, without blanks and repeats."""
    return list(dict.fromkeys(line.strip() for line in str(value or "").splitlines() if line.strip()))


def relative_paths(field: str, value: Any) -> list[str]:
    """Folder paths below a root: `/` between parts, no `..`, nested ones collapsed into the outer. Raises: SourceError(bad_settings)."""
    found: list[str] = []
    for line in lines_of(value):
        parts = line.strip("/").split("/")
        if "\\" in line or ".." in parts or "\0" in line:
            raise bad(field, _("Write paths relative to the root, with / between the parts and without .. in them."))
        found.append("/".join(part for part in parts if part not in ("", ".")))
    return [path for path in dict.fromkeys(found) if not any(path != outer and below(path, [outer]) for outer in found)]


def below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is one of the folders or in one of them; no folders at all: yes."""
    chosen = list(folders)
    return not chosen or any(not folder or path == folder or path.startswith(folder + "/") for folder in chosen)


def extensions_of(settings: Mapping[str, Any]) -> frozenset[str]:
    """The extensions a folder's files must have. Raises: SourceError(bad_settings) for one that cannot be read."""
    raw = str(settings.get("extensions") or "")
    names = {part.strip().lstrip("*").lstrip(".").lower() for part in re.split(r"[,;\s]+", raw)} - {""}
    if unknown := sorted(names - READABLE):
        raise bad("extensions", _("Files of this type cannot be read: %(names)s.") % {"names": ", ".join(unknown[:5])[:100]})
    return frozenset(names) or frozenset(DOCUMENTS)


def has_extension(name: str, wanted: frozenset[str]) -> bool:
    return "." in name and name.rpartition(".")[2].lower() in wanted


def readable_text(name: str) -> bool:
    """Whether a path or title is text people can have typed: valid Unicode without control characters."""
    return not any(ord(sign) < 32 or 0xD800 <= ord(sign) < 0xE000 for sign in name)


def batches(items: Iterable[T], size: int = PAGE_SIZE) -> Iterator[tuple[T, ...]]:
    """`items` in tuples of at most `size`; one empty tuple when there are none."""
    iterator = iter(items)
    yield tuple(islice(iterator, size))
    while batch := tuple(islice(iterator, size)):
        yield batch


_GB = frozenset(("gb2312", "gbk", "cp936", "x-gbk", "gb_2312-80"))
_SINGLE = frozenset(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii", "windows-1252", "cp1252"))
_CODECS = ("utf-8", "gb18030", "big5", "cp1252", "shift_jis", "euc_kr")


def decoded(data: bytes, *claims: str) -> str:
    """The text of bytes whose source claims these encodings: a byte order mark and valid UTF-8 beat a claim, a claim beats a guess.

    A claim of Latin 1 says nothing: it reads anything, and servers send it unasked.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    said = ["gb18030" if name.lower() in _GB else name for name in claims if name and name.lower() not in _SINGLE]
    for codec in ("utf-8-sig", *said, *_CODECS):
        try:
            return data.decode(codec)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("utf-8", "replace")


def mark(*parts: Any) -> str:
    """A short text that is different whenever a part is."""
    return hashlib.sha256("\x1f".join(str(part) for part in parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def moment(raw: Any) -> datetime | None:
    """A time as sources write it (ISO 8601, RFC 822, seconds since 1970), aware; None for what is none."""
    if isinstance(raw, (int, float)) or (isinstance(raw, str) and re.fullmatch(r"\d{9,13}", raw)):
        seconds = float(raw)
        try:
            return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
        except (OverflowError, ValueError, OSError):
            return None
    text = str(raw or "").strip()
    for read in (parse_datetime, parsedate_to_datetime):
        try:
            found = read(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
        if found is not None:
            try:
                return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
            except OverflowError:
                return None
    return None


def xml_root(data: bytes, *, recover: bool = False) -> Any:
    """The root of an XML document, parsed without network or huge nodes.

    SECURITY: a document type with declarations of its own is refused outright: none that a source sends needs them, and bombs are made of
    entities. What is left are the entities XML itself knows.

    Raises: SourceError(bad_answer).
    """
    from lxml import etree

    if _declares(data):
        raise SourceError("bad_answer", "the answer declares XML entities, which are not read")

    def parse(text: bytes, lenient: bool) -> Any:
        safe = etree.XMLParser(resolve_entities="internal", no_network=True, load_dtd=False, recover=lenient, remove_comments=True)
        return etree.fromstring(text, safe)

    try:
        root = parse(data, False)
    except (etree.XMLSyntaxError, ValueError) as error:
        said = SourceError("bad_answer", f"the answer is not XML: {error}"[:200])
        if not recover:
            raise said from None
        try:
            root = parse(_mended(data), True)
        except (etree.XMLSyntaxError, ValueError):
            raise said from None
    if root is None:
        raise SourceError("bad_answer", "the answer is not XML")
    return root


def _mended(data: bytes) -> bytes:
    """Ampersands as numbers: after its first error the parser forgets the names of entities."""

    def number(found: re.Match[bytes]) -> bytes:
        name = (found.group(1) or b"").decode()
        character = html.unescape(f"&{name};") if name else "&"
        if name and character == f"&{name};":
            return f"&#38;{name};".encode()
        return b"".join(f"&#{ord(sign)};".encode() for sign in character)

    return re.sub(rb"&(?!#\d{1,7};|#x[0-9a-fA-F]{1,6};)(?:([A-Za-z]\w{1,30});)?", number, data)


def _declares(data: bytes) -> bool:
    """Whether what stands before the root element has a document type with an internal part."""
    text = data.replace(b"\0", b"") if b"\0" in data[:8] else data  # UTF-16
    at = 0
    while True:
        at = text.find(b"<", at)
        if at < 0:
            return False
        for start, end in ((b"<?", b"?>"), (b"<!--", b"-->")):
            if text.startswith(start, at):
                at = text.find(end, at)
                break
        else:
            if text[at + 1 : at + 2] != b"!":
                return False
            close, inner = text.find(b">", at), text.find(b"[", at)
            if text[at + 2 : at + 8].upper() == b"ENTITY" or inner >= 0 and (close < 0 or inner < close):
                return True
            at = close
        if at < 0:
            return False


def local_name(node: Any) -> str:
    """The name of an element without its namespace, in lower case; "" for what is no element."""
    return node.tag.rpartition("}")[2].lower() if isinstance(node.tag, str) else ""


def taken(answer: Fetched, name: str, **more: Any) -> Content | None:
    """The body of an answer as a file called `name`, which takes over its temporary file; None when it is empty."""
    if not answer.path.stat().st_size:
        answer.close()
        return None
    return Content(answer.path, display_name(name), more.pop("media_type", answer.media_type), **more)


def text_file(text: str, title: str, extension: str, **more: Any) -> Content:
    """A text as a file named after its title."""
    name = display_name(clean_line(title).replace("/", "_"), fallback="document", max_bytes=200)
    return Content(
        temporary(text.encode("utf-8", "replace"), suffix="." + extension), f"{name}.{extension}", title=clean_line(title), **more
    )


def markdown_file(text: str, title: str, **more: Any) -> Content | None:
    """A text in Markdown as a file; None when there is nothing in it. The title becomes its first heading unless it has one."""
    body = text.replace("\0", "").strip()
    if not body:
        return None
    head = clean_line(title)
    if head and not re.match(r"#\s", body):
        body = f"# {head}\n\n{body}"
    return text_file(body + "\n", title, "md", media_type="text/markdown", **more)


def html_file(fragment: str, title: str, **more: Any) -> Content | None:
    """A piece of HTML as a whole page; None when it holds no text and no picture."""
    body = fragment.replace("\0", "")
    if not re.sub(r"<[^>]*>|&nbsp;|\s", "", body) and "<img" not in body.lower():
        return None
    page = (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>{html.escape(clean_line(title))}</title></head><body>{body}</body></html>'
    )
    return text_file(page, title, "html", media_type="text/html", **more)


def base_url(credentials: Mapping[str, Any], default: str) -> str:
    """Where a hosted service is: `base_url` of the credentials, else its public address. Raises: SourceError(bad_settings)."""
    return web_address("base_url", clean_line(str(credentials.get("base_url") or "")) or default).rstrip("/")


def needed(credentials: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """The credentials of these names. Raises: SourceError(auth) when one is missing, naming it."""
    found = tuple(str(credentials.get(name) or "").strip() for name in names)
    for name, value in zip(names, found, strict=True):
        if not value:
            raise SourceError("auth", "a credential is missing", field=name)
    return found


def listed(value: Any, *path: str) -> list[dict[str, Any]]:
    """The list of objects at a place in an answer. Raises: SourceError(bad_answer) when there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, list):
        raise SourceError("bad_answer", f"the answer has no list of {path[-1] if path else 'things'}")
    return [item for item in value if isinstance(item, dict)]
