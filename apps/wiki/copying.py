"""The wiki of a base comes along when the base is copied. Runs in the transaction of each slice; links wait for pages of later ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.knowledge.models import Chunk, Document
from apps.wiki.foldering import folder_made
from apps.wiki.linking import links_mend, links_write
from apps.wiki.models import PageAlias, PageClaim, PageLink, PageRevision, PageSlug, PageSource, WikiFolder, WikiPage

ROWS_AT_ONCE = 500
OWN = frozenset("id uid kb document folder trashed created_at updated_at".split())


def _columns(model: Any, own: frozenset[str]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields if field.name not in own]


def pages_copy(space_id: int, kb_id: int, copies: Mapping[int, int]) -> None:
    """Pages for those of the copied documents that are pages. `copies`: {document: its copy}."""
    pages = list(WikiPage.objects.live().filter(document_id__in=copies).select_related("folder").order_by("pk"))
    if not pages:
        return
    made: dict[int, WikiPage] = {}
    for page in pages:
        values = {name: getattr(page, name) for name in _columns(WikiPage, OWN)}
        folder = folder_made(space_id, kb_id, page.folder.path) if page.folder else None
        PageSlug.objects.filter(kb_id=kb_id, slug=page.slug).delete()  # a mirror holds its old pages until the new ones are there
        made[page.pk] = WikiPage.objects.create(**values, kb_id=kb_id, document_id=copies[page.document_id], folder=folder)
    _copy_rows(PageSlug, made, frozenset(("id", "page", "kb")), kb_id)
    _copy_rows(PageAlias, made, frozenset(("id", "page", "kb")), kb_id)
    _copy_rows(PageRevision, made, frozenset(("id", "uid", "page", "created_at")), None)
    _copy_rows(PageSource, made, frozenset(("id", "page")), None)
    _copy_rows(PageClaim, made, frozenset(("id", "uid", "page", "created_at")), None)
    for old, page in made.items():
        links_write(page, _known(old, kb_id))
    for page in made.values():
        links_mend(page)


def _copy_rows(model: Any, made: Mapping[int, WikiPage], own: frozenset[str], kb_id: int | None) -> None:
    names = _columns(model, own)
    more = {} if kb_id is None else {"kb_id": kb_id}
    rows = model.objects.filter(page_id__in=made).order_by("pk")
    fresh = [model(**{name: getattr(row, name) for name in names}, **more, page=made[row.page_id]) for row in rows]
    model.objects.bulk_create(fresh, batch_size=ROWS_AT_ONCE, ignore_conflicts=model is PageSlug)


def _known(old: int, kb_id: int) -> dict[str, int]:
    """{key: the page of the other wiki that the copied page's link leads to}, of those that are there by now."""
    rows = PageLink.objects.filter(page_id=old, target__isnull=False)
    slugs = dict(rows.values_list("key", "target__slug"))
    there = dict(PageSlug.objects.filter(kb_id=kb_id, slug__in=slugs.values(), is_current=True).values_list("slug", "page_id"))
    return {key: there[slug] for key, slug in slugs.items() if slug in there}


def folders_copy(space_id: int, source_kb_id: int, target_kb_id: int) -> None:
    """Every folder of a wiki in another one, empty ones too."""
    for folder in WikiFolder.objects.filter(kb_id=source_kb_id).order_by("depth", "pk"):
        folder_made(space_id, target_kb_id, folder.path)


def sources_follow(kb_id: int) -> int:
    """Claims and sources of a copied wiki rest on the copies of their documents from now on; how many claims do."""
    rows = PageClaim.objects.filter(page__kb_id=kb_id, document__isnull=False).exclude(document__kb_id=kb_id)
    claims = list(rows.select_related("document"))
    sources = list(
        PageSource.objects.filter(page__kb_id=kb_id, document__isnull=False).exclude(document__kb_id=kb_id).select_related("document")
    )
    copies = _copies(kb_id, {row.document for row in [*claims, *sources] if row.document is not None})
    chunks = _passages([pk for row in claims for pk in row.chunk_ids], {copy.pk: old for old, copy in copies.items()})
    for row in [*claims, *sources]:
        if (copy := copies.get(row.document_id)) is not None:
            row.document, row.document_uid = copy, copy.uid
    for row in claims:
        found = [chunks[pk] for pk in row.chunk_ids if pk in chunks]
        row.chunk_ids, row.chunk_uids = [pk for pk, _uid in found], [str(uid) for _pk, uid in found]
    PageClaim.objects.bulk_update(claims, ["document", "document_uid", "chunk_ids", "chunk_uids"], batch_size=ROWS_AT_ONCE)
    PageSource.objects.bulk_update(sources, ["document", "document_uid"], batch_size=ROWS_AT_ONCE)
    return len(claims)


def _copies(kb_id: int, documents: set[Document]) -> dict[int, Document]:
    """{document: its copy in the base}: the one of the same name, folder and content."""
    found: dict[int, Document] = {}
    for document in documents:
        same = {"title": document.title, "file_hash": document.file_hash, "folder_path": document.folder_path, "type": document.type}
        copy = Document.objects.filter(kb_id=kb_id, deleted_at__isnull=True, **same).order_by("pk").first()
        if copy is not None:
            found[document.pk] = copy
    return found


def _passages(pks: list[int], copies: Mapping[int, int]) -> dict[int, tuple[int, Any]]:
    """{passage: (its copy, its public id)} by place in the document."""
    old = {(row[1], row[2]): row[0] for row in Chunk.objects.filter(pk__in=pks).values_list("pk", "document_id", "chunk_index")}
    rows = Chunk.objects.filter(document_id__in=copies, chunk_type=Chunk.Type.TEXT).values_list("pk", "uid", "document_id", "chunk_index")
    return {old[key]: (pk, uid) for pk, uid, document, index in rows if (key := (copies[document], index)) in old}
