"""Which keys of the file store the rows of a database name."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from apps.knowledge.models import Document, DocumentImage


def named_keys(alias: str) -> dict[str, int]:
    """{key: bytes as far as the row knows} of every living document of one database. What a tombstone names is on its way out."""
    rows: QuerySet[Any] = QuerySet(model=Document, using=alias).filter(deleted_at__isnull=True).order_by("pk")
    found: dict[str, int] = {}
    for original, parsed, size_bytes in rows.values_list("storage_path", "parsed_path", "file_size").iterator(chunk_size=2000):
        if original:
            found[original] = int(size_bytes or 0)
        if parsed:
            found.setdefault(parsed, 0)
    pictures: QuerySet[Any] = QuerySet(model=DocumentImage, using=alias).filter(document__deleted_at__isnull=True).order_by("pk")
    for key, size_bytes in pictures.values_list("storage_path", "size_bytes").iterator(chunk_size=2000):
        found.setdefault(key, int(size_bytes))
    return found
