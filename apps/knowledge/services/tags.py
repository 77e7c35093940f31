"""Tags of a base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, DomainError, Forbidden, InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.knowledge.events import DocumentsRefiled
from apps.knowledge.models import Document, DocumentTag, KnowledgeBase, Tag
from apps.knowledge.rules.documents import tags_of
from apps.knowledge.selectors import as_uuid
from apps.knowledge.services.documents import documents_delete

UNCATEGORIZED = "未分类"
MAX_NAME = 128


def tag_create(*, actor: Actor, base: KnowledgeBase, name: str, color: str = "", sort_order: int = 0) -> Tag:
    """A new tag. Raises: InvalidInput on a blank or too long name; Conflict when the base has a tag of this name."""
    authorize(actor, "tag.write", base)
    name = _clean_name(name)
    if name == UNCATEGORIZED:
        sort_order = -1
    tag = Tag(space_id=base.space_id, kb=base, name=name, color=color, sort_order=sort_order)
    _save(tag)
    audit(actor, "tag.created", tag, title=tag.name)
    return tag


def tag_update(*, actor: Actor, tag: Tag, name: str | None = None, color: str | None = None, sort_order: int | None = None) -> Tag:
    """The tag with what is given changed. Raises: InvalidInput; Conflict when the name is taken."""
    authorize(actor, "tag.write", tag)
    before = {"name": tag.name, "color": tag.color, "sort_order": tag.sort_order}
    if name is not None:
        tag.name = _clean_name(name)
    if color is not None:
        tag.color = color
    if sort_order is not None:
        tag.sort_order = sort_order
    changed = [field for field, value in before.items() if getattr(tag, field) != value]
    if not changed:
        return tag
    with transaction.atomic():
        _save(tag, [*changed, "updated_at"])
        if "name" in changed:  # documents are found by the names of their tags
            carriers = Document.objects.visible_to(actor).filter(tag_links__tag=tag).order_by("pk")
            ids = tuple(carriers.select_for_update(of=("self",)).values_list("pk", flat=True))
            Document.objects.filter(pk__in=ids).update(index_rev=F("index_rev") + 1)
            publish(DocumentsRefiled(space_id=tag.space_id, document_ids=ids, only="tags"))
        changes = {field: {"before": before[field], "after": getattr(tag, field)} for field in changed}
        audit(actor, "tag.updated", tag, title=tag.name, changed_fields=changed, changes=changes)
    return tag


def tag_delete(*, actor: Actor, tag: Tag, force: bool = False, content_only: bool = False, keep_tag: bool = False) -> None:
    """Remove a tag nothing carries. `force`: also delete the documents that carry it; `content_only`: delete those, keep the tag.

    Raises: InvalidInput when the tag is in use and neither was asked for; then nothing has changed.
    """
    authorize(actor, "tag.write", tag)
    with transaction.atomic():
        Tag.objects.select_for_update(of=("self",)).filter(pk=tag.pk).first()
        rows = Document.objects.visible_to(actor).filter(kb_id=tag.kb_id, tag_links__tag=tag).select_related("kb")
        documents = list(rows.order_by("pk"))
        if documents and not (force or content_only):
            raise InvalidInput(
                _("%(count)d documents carry this tag. Take it off them first.") % {"count": len(documents)},
                code="tag_in_use",
                count=len(documents),
                api_code=1000,
            )
        if documents:
            authorize(actor, "document.delete", tag)
            documents_delete(actor=actor, base=tag.kb, documents=documents)
        if content_only or keep_tag:
            return
        DocumentTag.objects.filter(tag=tag).delete()  # links of tombstones
        audit(actor, "tag.deleted", tag, title=tag.name, force=force or None, content_cleared=bool(documents) or None)
        tag.delete()


BATCH = 200
NAMED = 50  # documents an entry of the log names


@dataclass(frozen=True, slots=True)
class Detached:
    """What a detach-then-delete came to. `count`: documents whose tag is confirmed to be off; `failed_at`: `detach`, `delete`, or ""
    when the tag is gone; `why`: what stopped it."""

    count: int
    failed_at: str = ""
    why: str = ""


def tag_detach_delete(*, actor: Actor, tag: Tag) -> Detached:
    """Take a tag off every document, 200 at a time, then delete it; the documents stay.

    Each batch stands by itself: what a failure stops is said in the answer, and calling again goes on from there.
    """
    authorize(actor, "tag.write", tag)
    authorize(actor, "document.update", tag)
    count = 0
    try:
        while taken := _detach_batch(actor, tag):
            count += taken
    except (DomainError, DatabaseError) as error:
        return Detached(count, "detach", _why(error))
    try:
        tag_delete(actor=actor, tag=tag)
    except (DomainError, DatabaseError) as error:
        return Detached(count, "delete", _why(error))
    return Detached(count)


def _detach_batch(actor: Actor, tag: Tag) -> int:
    with transaction.atomic():
        carriers = Document.objects.visible_to(actor).filter(kb_id=tag.kb_id, tag_links__tag=tag).order_by("pk")
        documents = list(carriers.select_for_update(of=("self",)).only("pk", "title", "space_id")[:BATCH])
        ids = tuple(document.pk for document in documents)
        if not ids:
            return 0
        DocumentTag.objects.filter(tag=tag, document_id__in=ids).delete()
        Document.objects.filter(pk__in=ids).update(index_rev=F("index_rev") + 1, updated_at=timezone.now())
        publish(DocumentsRefiled(space_id=tag.space_id, document_ids=ids, only="tags"))
        titles = [document.title for document in documents][:50]
        changes = {"tags": {"before": [tag.name], "after": []}}
        audit(
            actor,
            "knowledge.updated",
            tag.kb,
            target_type="knowledge_base",
            titles=titles,
            count=len(ids),
            changed_fields=["tags"],
            changes=changes,
        )
    return len(ids)


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, DomainError) else str(_("The database did not answer."))


def _clean_name(name: str) -> str:
    name = name.strip()
    if not name:
        raise InvalidInput(_("Give the tag a name."), field="name", api_code=1000)
    if len(name) > MAX_NAME:
        raise InvalidInput(
            _("The name may have at most %(max)d characters.") % {"max": MAX_NAME}, field="name", api_code=1000, max=MAX_NAME
        )
    return name


def _save(tag: Tag, fields: list[str] | None = None) -> None:
    options: dict[str, Any] = {"update_fields": fields} if fields else {"force_insert": True}
    try:
        with transaction.atomic():
            tag.save(**options)
    except IntegrityError:
        raise Conflict(_("There is a tag of this name already."), code="tag_exists", field="name") from None


def tags_replace(*, actor: Actor, base: KnowledgeBase, updates: Mapping[Any, Sequence[Any]]) -> None:
    """Give documents of one base exactly these tags; an empty list takes all away (contract knowledge 4.14). All or nothing.

    Raises: Forbidden when a document is not in the base; InvalidInput when a tag is not.
    """
    authorize(actor, "document.update", base)
    if not updates:
        raise InvalidInput(_("Name at least one document."), field="updates", api_code=1000)
    by_uid = {as_uuid(name): tags for name, tags in updates.items()}
    with transaction.atomic():
        rows = Document.objects.visible_to(actor).filter(kb=base, uid__in=[uid for uid in by_uid if uid])
        documents = list(rows.order_by("pk").select_for_update(of=("self",)))
        if len(documents) != len(by_uid):
            raise Forbidden(_("Some of these documents are not in this knowledge base."), code="other_base")
        ids = [document.pk for document in documents]
        changes = _put_tags(base, documents, by_uid)
        Document.objects.filter(pk__in=ids).update(index_rev=F("index_rev") + 1, updated_at=timezone.now())
        audit(
            actor,
            "knowledge.updated",
            base,
            target_type="knowledge_base",
            titles=[document.title for document in documents][:50],
            count=len(ids),
            changed_fields=["tags"],
            changes={"tags": changes},
        )
        publish(DocumentsRefiled(space_id=base.space_id, document_ids=tuple(ids), only="tags"))


def _put_tags(base: KnowledgeBase, documents: Sequence[Document], by_uid: Mapping[Any, Sequence[Any]]) -> dict[str, Any]:
    """The tags before and after, for the activity log. The same number of queries however many documents there are."""
    known = {tag.uid: tag for tag in tags_of(base, list({str(name) for names in by_uid.values() for name in names}))}
    wanted = {
        document.pk: {known[uid].pk: known[uid].name for name in by_uid[document.uid] if (uid := as_uuid(str(name).strip()))}
        for document in documents
    }
    there: dict[int, dict[int, str]] = {pk: {} for pk in wanted}
    doomed: list[int] = []
    links = DocumentTag.objects.filter(document_id__in=list(wanted)).order_by("pk")
    for pk, document_id, tag_id, name in links.values_list("pk", "document_id", "tag_id", "tag__name"):
        there[document_id][tag_id] = name
        if tag_id not in wanted[document_id]:
            doomed.append(pk)
    DocumentTag.objects.filter(pk__in=doomed).delete()
    DocumentTag.objects.bulk_create(
        [
            DocumentTag(space_id=base.space_id, document_id=document_id, tag_id=tag_id)
            for document_id, tags in wanted.items()
            for tag_id in tags
            if tag_id not in there[document_id]
        ],
        ignore_conflicts=True,
    )
    return {"before": _told(documents, there), "after": _told(documents, wanted)}


def _told(documents: Sequence[Document], tags: Mapping[int, Mapping[int, str]]) -> Any:
    """Names of tags: one list where all documents have the same, else a list for each title, the first NAMED."""
    lists = [sorted(tags[document.pk].values()) for document in documents]
    if all(names == lists[0] for names in lists):
        return lists[0]
    titles = Counter(document.title for document in documents[:NAMED])
    named = [document.title if titles[document.title] == 1 else f"{document.title} ({document.uid})" for document in documents[:NAMED]]
    return dict(zip(named, lists, strict=False))
