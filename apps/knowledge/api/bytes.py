"""Answers that carry stored bytes: ranges, honest names, and no way for a stored file to run anything in the portal's origin."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from apps.knowledge.downloads import Original

BLOCK = 256 * 1024
_RANGE = re.compile(r"^bytes=(\d*)-(\d*)$")
_CODEC = re.compile(r"^[A-Za-z0-9._-]{1,32}$")

#: Media types a browser may show in place. SECURITY: nothing that can carry script is among them.
INLINE = frozenset({"application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"})
#: Shown in place as plain text, whatever they are.
AS_TEXT = frozenset({"txt", "md", "markdown", "csv", "json", "log", "tsv", "yaml", "yml", "manual"})
SANDBOX = "sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; frame-ancestors 'self'"
PDF_POLICY = "default-src 'none'; object-src 'self'; img-src 'self' data:; style-src 'unsafe-inline'; frame-ancestors 'self'"


class BytesResponse(StreamingHttpResponse):
    """Reads a file in pieces under WSGI and ASGI alike (Django would collect a plain iterator whole under ASGI)."""

    def __init__(self, source: IO[bytes], start: int, length: int, **kwargs: Any) -> None:
        self._source = source
        self._pieces = _pieces(source, start, length)
        super().__init__(self._pieces, **kwargs)
        self["Content-Length"] = str(length)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        following = sync_to_async(lambda: next(self._pieces, b""), thread_sensitive=False)
        while piece := await following():
            yield piece

    def close(self) -> None:
        super().close()
        self._source.close()


def _pieces(source: IO[bytes], start: int, length: int) -> Iterator[bytes]:
    source.seek(start)
    while length > 0 and (piece := source.read(min(BLOCK, length))):
        length -= len(piece)
        yield piece


def disposition(kind: str, name: str) -> str:
    """A Content-Disposition that carries any name: an ASCII stand-in, and the exact name after RFC 5987."""
    plain = re.sub(r'[^\x20-\x7e]|["\\%;]', "_", name) or "download"
    exact = quote(name.encode("utf-8", "replace"), safe="!#$&+-.^_`|~")
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{exact}"


def respond(
    request: HttpRequest, source: IO[bytes], size_bytes: int, *, media_type: str, kind: str, name: str, policy: str
) -> HttpResponseBase:
    """The bytes, or the range of them that was asked for (RFC 9110; several ranges at once are answered whole)."""
    start, end, status = 0, size_bytes - 1, 200
    asked = _RANGE.match(request.headers.get("Range", "").strip())
    if asked and (asked[1] or asked[2]) and len(asked[1]) < 19 and len(asked[2]) < 19:
        first, last = asked[1], asked[2]
        if first:
            start, end = int(first), min(int(last), size_bytes - 1) if last else size_bytes - 1
        else:
            start, end = max(0, size_bytes - int(last)), size_bytes - 1
        if first and last and int(first) > int(last):
            start, end = 0, size_bytes - 1
        elif start >= size_bytes or end < start:
            source.close()
            refused = HttpResponse(status=416)
            refused["Content-Range"] = f"bytes */{size_bytes}"
            return _guard(refused, policy)
        else:
            status = 206
    response = BytesResponse(source, start, end - start + 1, status=status, content_type=media_type)
    if status == 206:
        response["Content-Range"] = f"bytes {start}-{end}/{size_bytes}"
    response["Content-Disposition"] = disposition(kind, name)
    return _guard(response, policy)


def _guard(response: HttpResponseBase, policy: str) -> HttpResponseBase:
    response["Accept-Ranges"] = "bytes"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    response["Content-Security-Policy"] = policy
    return response


def as_download(request: HttpRequest, original: Original) -> HttpResponseBase:
    return respond(
        request,
        original.source,
        original.size_bytes,
        media_type="application/octet-stream",
        kind="attachment",
        name=original.file_name,
        policy=SANDBOX,
    )


def as_preview(request: HttpRequest, original: Original, *, file_type: str) -> HttpResponseBase:
    """In place for types that cannot run anything, else as a download."""
    if file_type in AS_TEXT:
        codec = original.encoding if _CODEC.match(original.encoding) else "utf-8"
        media_type, kind, policy = f"text/plain; charset={codec}", "inline", SANDBOX
    elif original.media_type in INLINE:
        media_type, kind = original.media_type, "inline"
        policy = PDF_POLICY if media_type == "application/pdf" else SANDBOX
    else:
        media_type, kind, policy = "application/octet-stream", "attachment", SANDBOX
    return respond(request, original.source, original.size_bytes, media_type=media_type, kind=kind, name=original.file_name, policy=policy)


def as_file(request: HttpRequest, original: Original, *, cache: str) -> HttpResponseBase:
    """A file some text refers to: pictures and PDF in place, everything else as a download; `cache` is its Cache-Control."""
    is_inline = original.media_type in INLINE
    response = respond(
        request,
        original.source,
        original.size_bytes,
        media_type=original.media_type if is_inline else "application/octet-stream",
        kind="inline" if is_inline else "attachment",
        name=original.file_name,
        policy=PDF_POLICY if original.media_type == "application/pdf" else SANDBOX,
    )
    response["Cache-Control"] = cache
    return response


def as_archive(request: HttpRequest, path: Path, name: str) -> HttpResponseBase:
    """A finished archive; its file has no name any more, so that it is gone when the answer is."""
    source = path.open("rb")
    size_bytes = path.stat().st_size
    path.unlink()
    return respond(request, source, size_bytes, media_type="application/zip", kind="attachment", name=name, policy=SANDBOX)
