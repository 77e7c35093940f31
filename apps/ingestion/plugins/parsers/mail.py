"""E-mail: headers, body, and the text of attachments that are text; pictures and files are named only."""

from __future__ import annotations

import email
import email.errors
import email.header
import email.policy
import re
from email.message import Message

from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.encodings import decode, decode_html
from apps.ingestion.plugins.markdown_blocks import Context, add_markdown
from apps.ingestion.plugins.parsers.plain import add_plain
from apps.ingestion.plugins.parsers.web import add_html, page_context
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers

MAX_DEPTH = 40
MAX_PARTS = 2000
MAX_ATTACHMENT_CHARS = 2_000_000
_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_TEXT_ATTACHMENTS = (".txt", ".md", ".csv", ".tsv", ".log", ".json", ".yaml", ".yml", ".xml", ".ini")
_BOUNDARY = re.compile(rb"^content-type:\s*multipart/", re.I | re.M)


def _header(message: Message, name: str) -> str:
    raw = message.get(name)
    if raw is None:
        return ""
    parts = []
    try:
        pieces = email.header.decode_header(raw)
    except (email.errors.HeaderParseError, ValueError):
        return one_line(str(raw))
    for piece, charset in pieces:
        parts.append(piece if isinstance(piece, str) else decode(piece, "", (charset,) if charset else ()).text)
    return one_line("".join(parts))


def _file_name(part: Message) -> str:
    try:
        name = part.get_filename() or ""
        pieces = email.header.decode_header(name)
    except (email.errors.HeaderParseError, ValueError, LookupError):
        return ""
    return one_line("".join(p if isinstance(p, str) else decode(p, "", (c,) if c else ()).text for p, c in pieces))


def _payload(part: Message) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _text(part: Message, override: str = "") -> str:
    charset = part.get_content_charset() or ""
    read = decode_html if part.get_content_type() == "text/html" else decode
    if read is decode_html:
        return decode_html(_payload(part), override, charset).text
    return decode(_payload(part), override, (charset,) if charset else ()).text


@parsers.register("eml")
class MailParser:
    media_types = ("message/rfc822",)
    extensions = ("eml",)

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        data = request.path.read_bytes()
        if len(_BOUNDARY.findall(data)) > MAX_DEPTH * 20:
            raise ParseFailure("too_large", "the message is nested too deep: too many multipart levels, over the limit")
        try:
            message = email.message_from_bytes(data, policy=email.policy.compat32)
        except (RecursionError, ValueError, LookupError) as error:
            raise ParseFailure("corrupt", f"the message is damaged: {error}") from error
        if not message.keys():
            raise ParseFailure("corrupt", "not a valid e-mail: it has no headers")
        builder = DocumentBuilder(request.max_chars)
        subject = _header(message, "Subject")
        builder.heading(subject, 1)
        head = [f"{name}: {value}" for name in _SHOWN if name != "Subject" and (value := _header(message, name))]
        builder.add("header", "\n".join(head))
        self.seen = 0
        attachments = self._message(builder, message, request, depth=0)
        progress(1, 1, "files")
        details = {"attachments": attachments} if attachments else {}
        return builder.finish(title=subject, details=details)

    def _message(self, builder: DocumentBuilder, message: Message, request: ParseRequest, depth: int) -> list[str]:
        bodies, attachments = _leaves(message)
        for part in bodies:
            if part.get_content_type() == "text/html":
                add_html(builder, _text(part, request.encoding), page_context(builder))
            else:
                add_plain_body(builder, _text(part, request.encoding))
        names = []
        for part in attachments:
            name = _file_name(part) or part.get_content_type()
            names.append(name)
            self._attachment(builder, part, name, request, depth)
        return names

    def _attachment(self, builder: DocumentBuilder, part: Message, name: str, request: ParseRequest, depth: int) -> None:
        kind = part.get_content_type()
        place = Position(part=name[:200])
        if kind == "message/rfc822":
            inner = part.get_payload()
            if isinstance(inner, list) and inner and isinstance(inner[0], Message) and depth < 5:
                builder.heading(_header(inner[0], "Subject") or name, 2, place)
                head = [f"{n}: {v}" for n in _SHOWN if n != "Subject" and (v := _header(inner[0], n))]
                builder.add("header", "\n".join(head), place)
                self._message(builder, inner[0], request, depth + 1)
            return
        readable = kind.startswith("text/") or name.lower().endswith(_TEXT_ATTACHMENTS)
        if kind.startswith("image/") and part.get("Content-ID"):
            return
        builder.heading(name, 2, place)
        if not readable:
            builder.warn("attachment_not_read", f"attachment {name[:100]!r} ({kind}) is named but not read", place, key=name)
            return
        text = _text(part)
        if len(text) > MAX_ATTACHMENT_CHARS:
            builder.warn("attachment_cut", f"attachment {name[:100]!r} is cut after {MAX_ATTACHMENT_CHARS} characters", place, key=name)
            text = text[:MAX_ATTACHMENT_CHARS]
        if kind == "text/html":
            add_html(builder, text, page_context(builder, place))
        elif name.lower().endswith(".md") or kind == "text/markdown":
            add_markdown(builder, text, Context(place=lambda first, last: Position(line=first, line_end=last, part=place.part)))
        else:
            add_plain(builder, text, part=place.part)


def add_plain_body(builder: DocumentBuilder, text: str) -> None:
    """A plain body: paragraphs, quoted lines as quotes; format=flowed is not undone."""
    for paragraph in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line.rstrip() for line in paragraph.split("\n") if line.strip()]
        quoted = bool(lines) and all(line.startswith(">") for line in lines)
        builder.add("quote" if quoted else "paragraph", "\n".join(lines))


def _leaves(message: Message) -> tuple[list[Message], list[Message]]:
    """The parts to read as body (one of each alternative) and the attachments, in their order.

    Raises: ParseFailure("too_large") when it is nested too deep.
    """
    bodies: list[Message] = []
    attachments: list[Message] = []
    stack: list[tuple[Message, int]] = [(message, 0)]
    count = 0
    while stack:
        part, depth = stack.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_PARTS:
            raise ParseFailure("too_large", f"the message is nested too deep or has too many parts, over the limit of {MAX_DEPTH} levels")
        kind = part.get_content_type()
        payload = part.get_payload()
        if kind == "message/rfc822" and part is not message:
            attachments.append(part)
        elif part.is_multipart() and isinstance(payload, list):
            children = [p for p in payload if isinstance(p, Message)]
            if kind == "multipart/alternative" and children:
                children = [_preferred(children)]
            stack.extend((child, depth + 1) for child in reversed(children))
        elif part.get_content_disposition() == "attachment" or _file_name(part):
            attachments.append(part)
        elif kind in ("text/plain", "text/html"):
            bodies.append(part)
        elif kind.startswith("text/") or not kind.startswith(("image/", "multipart/")):
            attachments.append(part)
    return bodies, attachments


def _preferred(children: list[Message]) -> Message:
    """Of alternatives the richest that can be read; an empty one does not count."""

    def rank(part: Message) -> int:
        kind = part.get_content_type()
        if part.is_multipart():
            return 3
        if not _payload(part).strip():
            return -1
        return {"text/html": 2, "text/plain": 1}.get(kind, 0)

    best = max(range(len(children)), key=lambda i: (rank(children[i]), i))
    return children[best]
