"""Rows of entries, written in the caller's transaction; whoever calls has checked the drafts and the actor."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import F
from django.utils import timezone

from apps.common.events import publish
from apps.faq.drafts import Draft, key_of
from apps.faq.models import FaqEntry, FaqQuestion, joined
from apps.faq.passages import chunks_of
from apps.knowledge.events import DocumentsRefiled
from apps.knowledge.models import Chunk, Document, DocumentTag, KnowledgeBase, ParseStatus, Tag

ROWS_AT_ONCE = 500
TITLE = 1024


def taken_questions(base: KnowledgeBase, keys: Iterable[str]) -> dict[str, FaqQuestion]:
    """{key: the question of the base that has it} with its entry, of those that are taken."""
    wanted = sorted(set(keys))
    found: dict[str, FaqQuestion] = {}
    for start in range(0, len(wanted), ROWS_AT_ONCE):
        rows = FaqQuestion.objects.filter(kb=base, key__in=wanted[start : start + ROWS_AT_ONCE]).select_related("entry", "entry__document")
        found |= {row.key: row for row in rows}
    return found


def entries_create(base: KnowledgeBase, drafts: Sequence[tuple[Draft, Tag | None]], creator_id: uuid.UUID | None) -> list[FaqEntry]:
    """New entries in this order. Raises: IntegrityError when a question or a number is taken."""
    now = timezone.now()
    documents = [
        Document(
            space_id=base.space_id,
            kb=base,
            type=Document.Type.PAIR,
            title=draft.standard_question[:TITLE],
            channel="faq",
            parse_status=ParseStatus.COMPLETED,
            enabled=draft.is_enabled is not False,
            file_hash=draft.content_hash,
            index_rev=1,
            processed_at=now,
            creator_id=creator_id,
        )
        for draft, _tag in drafts
    ]
    chunks = [chunks_of(document, base, draft) for document, (draft, _tag) in zip(documents, drafts, strict=True)]
    for document, own in zip(documents, chunks, strict=True):
        document.chunk_count = len(own)
    Document.objects.bulk_create(documents, batch_size=ROWS_AT_ONCE)
    Chunk.objects.bulk_create([chunk for own in chunks for chunk in own], batch_size=ROWS_AT_ONCE)
    entries = [
        FaqEntry(space_id=base.space_id, document=document, kb=base, number=draft.number, **_columns(draft))
        for document, (draft, _tag) in zip(documents, drafts, strict=True)
    ]
    FaqEntry.objects.bulk_create(entries, batch_size=ROWS_AT_ONCE)
    FaqQuestion.objects.bulk_create(
        [row for entry, (draft, _tag) in zip(entries, drafts, strict=True) for row in question_rows(entry, draft.questions)],
        batch_size=ROWS_AT_ONCE,
    )
    links = [
        DocumentTag(space_id=base.space_id, document=document, tag=tag)
        for document, (_draft, tag) in zip(documents, drafts, strict=True)
        if tag is not None
    ]
    DocumentTag.objects.bulk_create(links, batch_size=ROWS_AT_ONCE)
    publish(DocumentsRefiled(space_id=base.space_id, document_ids=tuple(document.pk for document in documents)))
    return entries


def _columns(draft: Draft) -> dict[str, Any]:
    return {
        "standard_question": draft.standard_question,
        "similar_text": joined(draft.similar_questions),
        "negative_text": joined(draft.negative_questions),
        "answers_text": joined(draft.answers),
        "answer_strategy": draft.answer_strategy or FaqEntry.Strategy.ALL,
        "is_enabled": draft.is_enabled is not False,
        "is_recommended": bool(draft.is_recommended),
        "content_hash": draft.content_hash,
    }


def question_rows(entry: FaqEntry, questions: Iterable[str]) -> list[FaqQuestion]:
    """Unsaved rows of the questions an entry answers."""
    keys = dict.fromkeys(key_of(question) for question in questions)
    return [
        FaqQuestion(space_id=entry.space_id, entry=entry, kb_id=entry.kb_id, key=key, is_standard=place == 0)
        for place, key in enumerate(keys)
    ]


def entry_rewrite(base: KnowledgeBase, entry: FaqEntry, draft: Draft) -> None:
    """The entry becomes the draft; flags that are not said stay. Raises: IntegrityError when a question is taken."""
    values = _columns(draft)
    if draft.is_enabled is None:
        values["is_enabled"] = entry.is_enabled
    if draft.is_recommended is None:
        values["is_recommended"] = entry.is_recommended
    if draft.answer_strategy is None:
        values["answer_strategy"] = entry.answer_strategy
    for name, value in values.items():
        setattr(entry, name, value)
    entry.version += 1
    entry.save(update_fields=[*values, "version", "updated_at"])
    FaqQuestion.objects.filter(entry=entry).delete()
    FaqQuestion.objects.bulk_create(question_rows(entry, draft.questions))
    passages_rewrite(base, entry, draft)


def draft_of_entry(entry: FaqEntry) -> Draft:
    """The entry as a draft of itself."""
    return Draft(
        standard_question=entry.standard_question,
        similar_questions=tuple(entry.similar_questions),
        negative_questions=tuple(entry.negative_questions),
        answers=tuple(entry.answers),
        answer_strategy=entry.answer_strategy,
        is_enabled=entry.is_enabled,
        is_recommended=entry.is_recommended,
        number=entry.number,
    )


def passages_rewrite(base: KnowledgeBase, entry: FaqEntry, draft: Draft) -> None:
    """Its passages are made anew; the first keeps its id, by which the entry was quoted."""
    document = entry.document
    fresh = chunks_of(document, base, draft)
    head = Chunk.objects.filter(document=document, chunk_index=0).first()
    Chunk.objects.filter(document=document).exclude(pk=head.pk if head is not None else 0).delete()
    if head is not None:
        for name in ("content", "content_hash", "end_at", "metadata"):
            setattr(head, name, getattr(fresh[0], name))
        head.content_revision += 1
        head.save(update_fields=["content", "content_hash", "end_at", "metadata", "content_revision", "updated_at"])
        fresh = fresh[1:]
    Chunk.objects.bulk_create(fresh, batch_size=ROWS_AT_ONCE)
    Document.objects.filter(pk=document.pk).update(
        title=draft.standard_question[:TITLE],
        file_hash=draft.content_hash,
        enabled=entry.is_enabled,
        chunk_count=len(fresh) + (1 if head is not None else 0),
        vector_count=0,
        index_rev=F("index_rev") + 1,
        updated_at=timezone.now(),
    )
    publish(DocumentsRefiled(space_id=base.space_id, document_ids=(document.pk,)))


def flags_set(base: KnowledgeBase, pks: Sequence[int], *, is_enabled: bool | None = None, is_recommended: bool | None = None) -> None:
    """Flags of many entries; what is turned off leaves the index."""
    now = timezone.now()
    for start in range(0, len(pks), ROWS_AT_ONCE):
        rows = FaqEntry.objects.filter(pk__in=pks[start : start + ROWS_AT_ONCE])
        if is_recommended is not None:
            rows.exclude(is_recommended=is_recommended).update(is_recommended=is_recommended, updated_at=now)
        if is_enabled is None:
            continue
        documents = list(rows.exclude(is_enabled=is_enabled).order_by("document_id").values_list("document_id", flat=True))
        rows.filter(document_id__in=documents).update(is_enabled=is_enabled, updated_at=now)
        refile(base, documents, enabled=is_enabled)


def tags_set(base: KnowledgeBase, wanted: dict[int, Tag | None]) -> int:
    """The one tag of each entry, by its primary key; how many changed."""
    changed = 0
    pks = sorted(wanted)
    for start in range(0, len(pks), ROWS_AT_ONCE):
        part = pks[start : start + ROWS_AT_ONCE]
        documents = dict(FaqEntry.objects.filter(pk__in=part).values_list("pk", "document_id"))
        have: dict[int, set[int]] = {}
        for document, tag in DocumentTag.objects.filter(document_id__in=documents.values()).values_list("document_id", "tag_id"):
            have.setdefault(document, set()).add(tag)
        want = {documents[pk]: wanted[pk] for pk in part if pk in documents}
        moved = [d for d, tag in want.items() if have.get(d, set()) != ({tag.pk} if tag is not None else set())]
        DocumentTag.objects.filter(document_id__in=moved).delete()
        DocumentTag.objects.bulk_create(
            [DocumentTag(space_id=base.space_id, document_id=d, tag=tag) for d in moved if (tag := want[d]) is not None]
        )
        FaqEntry.objects.filter(document_id__in=moved).update(updated_at=timezone.now())
        refile(base, moved)
        changed += len(moved)
    return changed


def refile(base: KnowledgeBase, documents: Sequence[int], **values: Any) -> None:
    """The index follows these documents after commit."""
    if documents:
        Document.objects.filter(pk__in=documents).update(index_rev=F("index_rev") + 1, updated_at=timezone.now(), **values)
        publish(DocumentsRefiled(space_id=base.space_id, document_ids=tuple(documents)))
