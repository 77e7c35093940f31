"""Reading uploads: capped before they are read, with the names they really came under."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from rest_framework.exceptions import ParseError
from rest_framework.parsers import DataAndFiles
from rest_framework.parsers import MultiPartParser as DrfMultiPartParser

from apps.knowledge.intake import check_space, too_large

ROOM_FOR_FIELDS = 2 * 1024 * 1024


class _NamingParser(MultiPartParser):
    """Keeps the name each file part carried: Django unescapes HTML in it and drops what it cannot print."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.raw_names: list[str] = []

    def sanitize_file_name(self, file_name: str) -> str | None:
        self.raw_names.append(file_name)
        return super().sanitize_file_name(file_name) or "document"


class UploadParser(DrfMultiPartParser):
    """Refuses a body larger than a file may be without reading it. Raises: InvalidInput(too_large, no_space); ParseError."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> DataAndFiles[Any, Any]:
        request = (parser_context or {})["request"]
        meta = request.META.copy()
        meta["CONTENT_TYPE"] = media_type
        length = int(meta.get("CONTENT_LENGTH") or 0)
        if length > settings.MAX_FILE_SIZE + ROOM_FOR_FIELDS:
            raise too_large()
        check_space(length)
        encoding = (parser_context or {}).get("encoding", settings.DEFAULT_CHARSET)
        try:
            parser = _NamingParser(meta, stream, request.upload_handlers, encoding)
            data, parts = parser.parse()
        except MultiPartParserError as error:
            raise ParseError(str(error)) from error
        uploads = [upload for _field, found in parts.lists() for upload in found]
        if len(uploads) == 1 and len(parser.raw_names) == 1:
            uploads[0].raw_name = parser.raw_names[0]
        return DataAndFiles(data, parts)
