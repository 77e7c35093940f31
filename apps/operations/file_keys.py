"""Which keys of the file store the rows of a database name."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from apps.knowledge.models import Document, DocumentImage, DocumentVersion


def named_keys(alias: str) -> dict[str, int]:
    """{key: bytes as far as the row knows} of every document of one database that is there or in the trash. The rest is on its way out."""
    kept = Q(deleted_at__isnull=True) | Q(purge_at__isnull=False)
    rows: QuerySet[Any] = QuerySet(model=Document, using=alias).filter(kept).order_by("pk")
    found: dict[str, int] = {}
    for original, parsed, size_bytes in rows.values_list("storage_path", "parsed_path", "file_size").iterator(chunk_size=2000):
        if original:
            found[original] = int(size_bytes or 0)
        if parsed:
            found.setdefault(parsed, 0)
    earlier: QuerySet[Any] = QuerySet(model=DocumentVersion, using=alias).filter(document__in=rows.values("pk")).order_by("pk")
    for original, parsed, size_bytes in earlier.values_list("storage_path", "parsed_path", "file_size").iterator(chunk_size=2000):
        found[original] = int(size_bytes or 0)
        if parsed:
            found.setdefault(parsed, 0)
    pictures: QuerySet[Any] = QuerySet(model=DocumentImage, using=alias).filter(document__in=rows.values("pk")).order_by("pk")
    for key, size_bytes in pictures.values_list("storage_path", "size_bytes").iterator(chunk_size=2000):
        found.setdefault(key, int(size_bytes))
    return found
