"""Keeping the index in step with the database (SEARCH: the index is derived; a stale one can miss, never leak).

These run for the system: listeners, pipeline, sweeps and commands call them inside a scope or name why they need none.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db.models import F, Q
from django.utils import timezone

from apps.common.actor import Actor
from apps.common.scope import unscoped
from apps.knowledge.models import Chunk, Document, DocumentTag, KnowledgeBase
from apps.knowledge.selectors import without_references
from apps.knowledge.services import document_indexed, questions_of
from apps.llm.plugins.protocol import Matrix
from apps.retrieval.engine import bare_engine, engine, forget_engine
from apps.retrieval.models import BaseIndex, PassageVector, RetiredSpace
from apps.retrieval.pairs import compared_texts, indexed_text, question_key, token_share
from apps.retrieval.plugins.protocol import INDEX_FAILURES, Filing, IndexChunk, IndexDocument, SearchBackend, Vector, folder_key

__all__ = ["compared_texts", "question_key", "token_share"]  # what others may use of pairs, beside all that is defined here

log = logging.getLogger(__name__)

BATCH_DOCUMENTS = 50
SLICE = 500  # documents whose rows are looked at, or refiled, in one go
#: What a passage that holds nothing but pictures without words is embedded as.
NOTHING_SAID = "-"
INDEXED_TYPES = (Chunk.Type.TEXT, Chunk.Type.IMAGE_OCR, Chunk.Type.IMAGE_CAPTION, Chunk.Type.FAQ, Chunk.Type.WIKI)


def words_of(document: Document, chunk: Chunk, tag_names: Iterable[str] | None = None) -> str:
    """The text a passage is found by: headings, itself, its questions, and for the first passage the document's title, file name, tags.

    `tag_names`: those of the document, where they are known already.
    """
    if chunk.chunk_type == Chunk.Type.FAQ:
        return "\n".join([*_tags(document, tag_names), indexed_text(chunk)])
    parts = [title for title in chunk.heading_path if title not in chunk.content]
    if chunk.chunk_index == 0 and chunk.chunk_type == Chunk.Type.TEXT:
        tags = _tags(document, tag_names)
        parts = [document.title, document.file_name if document.file_name != document.title else "", *tags, *parts]
    elif chunk.chunk_index == 0 and chunk.chunk_type == Chunk.Type.WIKI:
        parts = [document.title, *_names(chunk), *parts]
    return "\n".join([*filter(None, parts), without_references(chunk.content), *_asked(chunk)])


def _names(chunk: Chunk) -> list[str]:
    """What else a page of the wiki goes by."""
    return [str(name) for name in ((chunk.metadata or {}).get("wiki") or {}).get("names") or []]


def _tags(document: Document, names: Iterable[str] | None) -> list[str]:
    return sorted(tag.name for tag in document.tags.all()) if names is None else sorted(names)


def meaning_of(chunk: Chunk) -> str:
    """The text a passage is embedded as: its headings, outermost first, then itself and its questions."""
    if chunk.chunk_type == Chunk.Type.FAQ:
        return indexed_text(chunk)
    above = " > ".join(title for title in chunk.heading_path if title not in chunk.content)
    text = without_references(chunk.content).strip() if "](" in chunk.content else chunk.content
    return "\n".join(filter(None, [above, text, *_asked(chunk)])) or NOTHING_SAID


def _asked(chunk: Chunk) -> list[str]:
    return [str(row["question"]) for row in questions_of(chunk)]


def meaning_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Serving:
    """The vectors that answer for a base and the model that made them; empty when it has words only. `moving`: a switch is under way."""

    space: str = ""
    model_id: str = ""
    moving: bool = False


def serving_of(kb_id: int) -> Serving:
    """What answers for a base now."""
    row = BaseIndex.objects.filter(kb_id=kb_id).first()
    return Serving(row.vector_space, row.model_id, bool(row.previous_space)) if row is not None else Serving()


def serving_space(kb_id: int) -> str:
    """The vector space that answers for a base; empty when it has words only."""
    return serving_of(kb_id).space


def missing_vectors(space_id: int, vector_space: str, hashes: Iterable[str]) -> set[str]:
    """Those of the content hashes that have no vector yet in a vector space."""
    wanted = set(hashes)
    missing = set(wanted)
    ordered = sorted(wanted)
    for start in range(0, len(ordered), 500):
        rows = PassageVector.objects.filter(space_id=space_id, vector_space=vector_space, content_hash__in=ordered[start : start + 500])
        missing.difference_update(rows.values_list("content_hash", flat=True))
    return missing


def stored_vectors(space_id: int, vector_space: str, hashes: Iterable[str]) -> dict[str, Vector]:
    """{content hash: unit vector} of those already made. Shapes: each (dimension,) float32."""
    found: dict[str, Vector] = {}
    wanted = sorted(set(hashes))
    for start in range(0, len(wanted), 500):
        rows = PassageVector.objects.filter(space_id=space_id, vector_space=vector_space, content_hash__in=wanted[start : start + 500])
        for content_hash, data in rows.values_list("content_hash", "data"):
            found[content_hash] = np.frombuffer(bytes(data), dtype="<f2").astype(np.float32)
    return found


def store_vectors(space_id: int, vector_space: str, hashes: Sequence[str], vectors: Matrix) -> None:
    """Keep vectors by content. Shapes: (len(hashes), dimension) float32; kept as float16 (loses nothing measurable)."""
    PassageVector.objects.bulk_create(
        [
            PassageVector(space_id=space_id, vector_space=vector_space, content_hash=h, data=v.astype("<f2").tobytes())
            for h, v in zip(hashes, vectors, strict=True)
        ],
        ignore_conflicts=True,
    )


def index_entries(document_ids: Sequence[int]) -> list[IndexDocument]:
    """What the engine should hold for these documents; a document that must not be found is left out."""
    documents = {
        d.pk: d
        for d in Document.objects.select_related("kb")
        .prefetch_related("tags")
        .filter(pk__in=document_ids, deleted_at__isnull=True, kb__deleted_at__isnull=True)
        if d.is_answerable
    }
    chunks: dict[int, list[Chunk]] = {pk: [] for pk in documents}
    for chunk in Chunk.objects.filter(document_id__in=documents, chunk_type__in=INDEXED_TYPES).order_by("document_id", "chunk_index", "pk"):
        chunks[chunk.document_id].append(chunk)
    spaces = {kb_id: serving_space(kb_id) for kb_id in {d.kb_id for d in documents.values()}}
    hashes = {pk: [meaning_hash(meaning_of(chunk)) for chunk in of] for pk, of in chunks.items()}
    wanted: dict[tuple[int, str], list[str]] = {}
    for pk, document in documents.items():
        if vector_space := spaces[document.kb_id]:
            wanted.setdefault((document.space_id, vector_space), []).extend(hashes[pk])
    vectors = {key: stored_vectors(*key, of) for key, of in wanted.items()}
    return [
        _entry(d, chunks[pk], hashes[pk], spaces[d.kb_id], vectors.get((d.space_id, spaces[d.kb_id]), {})) for pk, d in documents.items()
    ]


def _entry(document: Document, chunks: list[Chunk], hashes: list[str], vector_space: str, vectors: Mapping[str, Vector]) -> IndexDocument:
    return IndexDocument(
        id=document.pk,
        tenant_id=document.space_id,
        kb_id=document.kb_id,
        rev=document.index_rev,
        folder_id=folder_key(document.folder_path),
        tag_ids=tuple(sorted(tag.pk for tag in document.tags.all())),
        enabled=True,
        vector_space=vector_space,
        chunks=tuple(IndexChunk(c.pk, words_of(document, c), vectors.get(h), c.is_enabled) for c, h in zip(chunks, hashes, strict=True)),
    )


def index_documents(space_id: int, document_ids: Sequence[int], *, into: SearchBackend | None = None) -> None:
    """Make the index hold exactly what the database says of these documents of one space: replaced, or removed when not to be found."""
    backend = into or engine()
    for start in range(0, len(document_ids), SLICE):
        wanted = document_ids[start : start + SLICE]
        due = _to_be_found(wanted)
        done: set[int] = set()
        for first in range(0, len(due), BATCH_DOCUMENTS):
            if entries := index_entries(due[first : first + BATCH_DOCUMENTS]):
                backend.put(entries)
                done.update(entry.id for entry in entries)
        if gone := sorted(set(wanted) - done):
            backend.delete(space_id, doc_ids=gone)


def _to_be_found(document_ids: Sequence[int]) -> list[int]:
    rows = Document.objects.filter(pk__in=document_ids, deleted_at__isnull=True, kb__deleted_at__isnull=True)
    return sorted(d.pk for d in rows.only("pk", "enabled", "parse_status", "deleted_at") if d.is_answerable)


def filings_of(document_ids: Sequence[int], *, words: bool) -> list[Filing]:
    """What filters see of the documents that are to be found, as of now: call it in the transaction that raised their `index_rev` by one.

    `words`: with the words of their first passages, for tags changed and are among them.
    """
    found: list[Filing] = []
    for start in range(0, len(document_ids), SLICE):
        rows = Document.objects.filter(pk__in=document_ids[start : start + SLICE], deleted_at__isnull=True, kb__deleted_at__isnull=True)
        seen = rows.only("title", "file_name", "folder_path", "index_rev", "enabled", "parse_status", "deleted_at")
        documents = {d.pk: d for d in seen if d.is_answerable}
        tags: dict[int, dict[int, str]] = {pk: {} for pk in documents}
        links = DocumentTag.objects.filter(document_id__in=documents).order_by()
        for document_id, tag_id, name in links.values_list("document_id", "tag_id", "tag__name"):
            tags[document_id][tag_id] = name
        heads: dict[int, list[IndexChunk]] = {}
        if words:
            told = Q(chunk_index=0) | Q(chunk_type=Chunk.Type.FAQ)  # passages that are found by tags too
            firsts = Chunk.objects.filter(told, document_id__in=documents, chunk_type__in=INDEXED_TYPES).order_by("pk")
            for chunk in firsts.only("document_id", "chunk_index", "chunk_type", "content", "heading_path", "metadata", "is_enabled"):
                text = words_of(documents[chunk.document_id], chunk, tags[chunk.document_id].values())
                heads.setdefault(chunk.document_id, []).append(IndexChunk(chunk.pk, text, enabled=chunk.is_enabled))
        found += [
            Filing(d.pk, d.index_rev, folder_key(d.folder_path), tuple(sorted(tags[pk])), tuple(heads.get(pk, ())))
            for pk, d in documents.items()
        ]
    return found


def refile_documents(space_id: int, filings: Sequence[Filing]) -> None:
    """Let the index follow a change of folders or tags; a document it does not hold in the revision before is indexed whole."""
    for start in range(0, len(filings), SLICE):
        if left := engine().refile(space_id, filings[start : start + SLICE]):
            index_documents(space_id, left)


def index_edited(space_id: int, document_id: int) -> None:
    """Index a document whose passages were edited, and tell the waiting passages how it went."""
    document = Document.objects.filter(pk=document_id, deleted_at__isnull=True).first()
    if document is None:
        return
    failed = False
    try:
        index_documents(space_id, [document_id])
    except INDEX_FAILURES:
        log.exception("the edited passages of document %s could not be indexed", document_id)
        failed = True
    document_indexed(actor=Actor.system(space_id, "index follows an edit"), document=document, rev=document.index_rev, failed=failed)


def set_serving_space(kb_id: int, space_id: int, vector_space: str, model_id: str) -> None:
    """From now on this vector space answers for the base, alone."""
    values = {"space_id": space_id, "vector_space": vector_space, "model_id": model_id, "previous_space": "", "previous_model_id": ""}
    BaseIndex.objects.update_or_create(kb_id=kb_id, defaults=values)


def switch_serving_space(kb_id: int, space_id: int, vector_space: str, model_id: str) -> None:
    """The new vectors answer from the commit on, together with the old ones as long as the index holds some of those.

    Call it in the transaction that raises the documents' revisions; `settle_serving_space` ends it once the index has followed.
    """
    row, _made = BaseIndex.objects.select_for_update(of=("self",)).get_or_create(kb_id=kb_id, defaults={"space_id": space_id})
    if row.vector_space == vector_space:
        return
    if not row.previous_space:  # a switch that follows an unfinished one keeps asking the oldest, which the index may still hold
        row.previous_space, row.previous_model_id = row.vector_space, row.model_id
    row.vector_space, row.model_id = vector_space, model_id
    row.save(update_fields=["vector_space", "model_id", "previous_space", "previous_model_id", "updated_at"])


def settle_serving_space(kb_id: int, vector_space: str) -> None:
    """The index holds nothing of the former vectors any more."""
    BaseIndex.objects.filter(kb_id=kb_id, vector_space=vector_space).update(previous_space="", previous_model_id="")


def unsettled_bases(space_id: int) -> list[int]:
    """Bases of the space whose index may still hold vectors of before a switch."""
    return list(BaseIndex.objects.filter(space_id=space_id).exclude(previous_space="").values_list("kb_id", flat=True))


def share_serving_space(source_kb_id: int, target_kb_id: int) -> None:
    """Let a base that nothing answers for be served like another one; one that has an answer, or is searched by words only, keeps it."""
    target = KnowledgeBase.objects.filter(pk=target_kb_id, index_state__isnull=True).first()
    serving = serving_of(source_kb_id)
    if target is not None and serving.space and (target.indexing_strategy or {}).get("vector_enabled", True):
        set_serving_space(target_kb_id, target.space_id, serving.space, serving.model_id)


def forget_serving_space(kb_id: int) -> None:
    """Nothing answers for the base any more; runs only while it has no documents."""
    BaseIndex.objects.filter(kb_id=kb_id).delete()


def spaces_in_use(space_id: int) -> set[str]:
    """Vector spaces some base of the space is served by."""
    rows = BaseIndex.objects.filter(space_id=space_id, kb__deleted_at__isnull=True).values_list("vector_space", "previous_space")
    return {name for pair in rows for name in pair if name}


def vectors_forget(space_id: int, *, used: set[str], before: Any, limit: int = 2000) -> dict[str, int]:
    """Delete vectors of the space that no vector space in `used` names and that were last wanted before `before`; {vector space: how many}.

    At most `limit` a vector space and call, so that no transaction is long.
    """
    gone: dict[str, int] = {}
    rows = PassageVector.objects.filter(space_id=space_id).exclude(vector_space__in=used)
    for name in rows.order_by().values_list("vector_space", flat=True).distinct():
        of_space = rows.filter(vector_space=name)
        if of_space.filter(created_at__gte=before).exists() or _served_lately(space_id, name, before):
            continue
        pks = list(of_space.order_by("pk").values_list("pk", flat=True)[:limit])
        gone[name] = PassageVector.objects.filter(pk__in=pks).delete()[0]
    return gone


def _served_lately(space_id: int, vector_space: str, before: Any) -> bool:
    """Whether a base gave these vectors up after `before`: changing back is quick as long as they are kept."""
    return RetiredSpace.objects.filter(space_id=space_id, vector_space=vector_space, retired_at__gte=before).exists()


def retire_space(space_id: int, vector_space: str) -> None:
    """Remember when a base stopped using a vector space."""
    if vector_space:
        RetiredSpace.objects.update_or_create(space_id=space_id, vector_space=vector_space, defaults={"retired_at": timezone.now()})


def touch(document_ids: Sequence[int]) -> None:
    """Raise `index_rev`; call it in the transaction of the change the index must follow."""
    Document.objects.filter(pk__in=document_ids).update(index_rev=F("index_rev") + 1)


@dataclass(slots=True)
class Drift:
    """Where index and database disagree: documents the index misses, holds in an old revision, or should not hold."""

    missing: list[int] = field(default_factory=list)
    stale: list[int] = field(default_factory=list)
    orphaned: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        return len(self.missing) + len(self.stale) + len(self.orphaned)


def index_drift(space_id: int) -> Drift:
    """Compare the index's revisions with the database's for one space; call it inside that space's scope."""
    return _drift(engine().revisions(space_id))


def _drift(held: dict[int, int]) -> Drift:
    rows = Document.objects.filter(deleted_at__isnull=True, kb__deleted_at__isnull=True, enabled=True).exclude(parse_status="draft")
    due = dict(rows.filter(chunk_count__gt=0).values_list("pk", "index_rev"))
    return Drift(
        missing=sorted(pk for pk in due if pk not in held),
        stale=sorted(pk for pk, rev in due.items() if pk in held and held[pk] != rev),
        orphaned=sorted(pk for pk in held if pk not in due),
    )


def reconcile_base(space_id: int, kb_id: int) -> int:
    """Put what the index misses of one base; how many documents that were. Call it inside the space's scope."""
    drift = index_drift(space_id)
    lost = sorted({*drift.missing, *drift.stale} & set(Document.objects.filter(kb_id=kb_id).values_list("pk", flat=True)))
    if lost:
        index_documents(space_id, lost)
    return len(lost)


def index_lag() -> Drift:
    """`index_drift` of all spaces at once, in two queries."""
    held = engine().revisions()
    with unscoped("comparison of the whole index with the rows"):
        return _drift(held)


def reconcile_index(space_id: int) -> Drift:
    """Repair what `index_drift` finds; what was found."""
    drift = index_drift(space_id)
    if drift.total:
        log.info(
            "index of space %s: %s missing, %s stale, %s orphaned", space_id, len(drift.missing), len(drift.stale), len(drift.orphaned)
        )
        index_documents(space_id, sorted({*drift.missing, *drift.stale, *drift.orphaned}))
    return drift


def rebuild_index() -> dict[str, Any]:
    """Make the whole index again from the database beside the old one, then swap; searches go on meanwhile.

    Documents that change during the rebuild are caught by the comparison of revisions after the swap.
    """
    backend = bare_engine()
    fresh = backend.begin_rebuild()
    documents = 0
    with unscoped("rebuild of the whole index"):
        for space_id, batch in _all_documents():
            index_documents(space_id, batch, into=fresh)
            documents += len(batch)
    backend.swap(fresh)
    forget_engine()
    return {"documents": documents, "chunks": engine().stats().chunks}


def drop_index() -> None:
    """Remove the search index; the next start makes an empty one, `rebuild_index` a full one. Nothing else may use it meanwhile."""
    bare_engine().drop()
    forget_engine()


def _all_documents() -> Iterator[tuple[int, list[int]]]:
    rows = Document.objects.filter(deleted_at__isnull=True, chunk_count__gt=0).order_by("space_id", "pk").values_list("space_id", "pk")
    batch: list[int] = []
    current = 0
    for space_id, pk in rows.iterator(chunk_size=2000):
        if batch and (space_id != current or len(batch) >= BATCH_DOCUMENTS):
            yield current, batch
            batch = []
        current = space_id
        batch.append(pk)
    if batch:
        yield current, batch
