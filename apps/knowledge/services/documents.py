"""Changing and removing documents that exist: texts, folders, tags, states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Substr
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, Forbidden, InvalidInput
from apps.common.events import publish
from apps.common.jobs.service import enqueue
from apps.common.policy import authorize
from apps.common.text import folder_path as normal_folder
from apps.knowledge.events import DocumentParseCancelled, DocumentsDeleted, DocumentsRefiled, DocumentsReparsed, DocumentStored
from apps.knowledge.models import IN_FLIGHT, CleanupRun, Document, DocumentTag, KnowledgeBase, ParseStatus
from apps.knowledge.rules.documents import clean_folder, has_source, is_pdf, opened_with_password, tags_of
from apps.knowledge.rules.locks import check_not_moving
from apps.knowledge.rules.texts import clean_custom_metadata, clean_title, with_overrides
from apps.knowledge.rules.trash import purge_time, tombstone
from apps.knowledge.rules.wishes import clean_process_config
from apps.knowledge.selectors import as_uuid, folder_count, in_folder
from apps.knowledge.services.bases import CLEANUP
from apps.knowledge.services.summaries import summary_refresh

SLICE = 500


@dataclass(frozen=True, slots=True)
class Deleted:
    """`task_id` names the clean-up (there is no progress route for it), `count` the documents that were live until now."""

    task_id: str
    count: int


@dataclass(frozen=True, slots=True)
class Refiled:
    moved_count: int
    folder_path: str


def document_update(
    *,
    actor: Actor,
    document: Document,
    title: str = "",
    description: str | None = None,
    custom_metadata: dict[str, Any] | None = None,
    seen: Mapping[str, Any] | None = None,
) -> Document:
    """The document with its new title, summary, custom metadata (contract knowledge 4.10); None, and an empty title, mean unchanged.

    `seen`: what the editor saw in the fields they change. Other metadata refreshes a summary that is there, if a model writes for the base.

    Raises: InvalidInput naming the key at fault in `details`; Conflict with the current values when a field is not what was seen.
    """
    authorize(actor, "document.update", document)
    if document.type in (Document.Type.FAQ, Document.Type.PAIR):
        raise InvalidInput(_("This is an entry of an FAQ base. Change it there."), code="faq_entry", api_code=1000)
    with transaction.atomic():
        document = _locked(document)
        before = {"title": document.title, "description": document.description, "custom_metadata": document.custom_metadata}
        if theirs := {name: before[name] for name, value in (seen or {}).items() if before[name] != value}:
            raise Conflict(
                _("Someone changed this in the meantime. Compare theirs with yours and save again."), code="revision_conflict", **theirs
            )
        if title.strip():
            document.title = clean_title(title)
        if description is not None:
            document.description = description
            document.summary_status = "completed" if description else "none"
        if custom_metadata is not None:
            document.custom_metadata = clean_custom_metadata(custom_metadata)
        changed = [name for name, value in before.items() if getattr(document, name) != value]
        if changed:
            document.index_rev += 1
            document.save(update_fields=[*changed, "summary_status", "index_rev", "updated_at"])
            if "custom_metadata" in changed and description is None:
                summary_refresh(document)
            changes = {name: {"before": before[name], "after": getattr(document, name)} for name in changed}
            audit(
                actor, "knowledge.updated", document, target_type="knowledge", title=document.title, changed_fields=changed, changes=changes
            )
            publish(DocumentsRefiled(space_id=document.space_id, document_ids=(document.pk,)))
    return document


def documents_delete(*, actor: Actor, base: KnowledgeBase, documents: Sequence[Document]) -> Deleted:
    """Make documents of one base tombstones: invisible in the same transaction, and gone from the index.

    For as many days as the trash keeps them they can be brought back; without a trash, rows and files follow in the background.

    Raises: Conflict while one of them is being moved. A second call changes nothing.
    """
    authorize(actor, "document.delete", base)
    now = timezone.now()
    purge_at = purge_time(now)
    ids = [document.pk for document in documents]
    with transaction.atomic():
        check_not_moving(base, ids)
        live = list(Document.objects.filter(kb=base, pk__in=ids, deleted_at__isnull=True).order_by("pk").values_list("pk", flat=True))
        for start in range(0, len(live), SLICE):
            part = live[start : start + SLICE]
            if purge_at is not None:
                _keep_tags(part)
            Document.objects.filter(pk__in=part, deleted_at__isnull=True).update(**tombstone(now, purge_at))
            DocumentTag.objects.filter(document_id__in=part).delete()
        if not live:
            latest = CleanupRun.objects.filter(space_id=base.space_id).order_by("-pk").values_list("pk", flat=True).first()
            return Deleted(f"cleanup-{latest or 0}", 0)
        gone = [document for document in documents if document.pk in set(live)]
        titles = [document.title for document in gone]
        uids = [str(document.uid) for document in gone]
        if all(document.type == Document.Type.PAIR for document in gone):
            audit(actor, "faq.deleted", base, target_type="knowledge_base", title=base.name, titles=titles[:50], count=len(live))
        elif len(live) == 1:
            audit(actor, "knowledge.deleted", gone[0], target_type="knowledge", title=titles[0], type=documents[0].type)
        else:
            audit(
                actor, "knowledge.batch_deleted", base, target_type="knowledge_base", titles=titles[:50], count=len(live), document_ids=uids
            )
        publish(DocumentsDeleted(space_id=base.space_id, kb_id=base.pk, document_ids=tuple(live)))
        if purge_at is not None:
            return Deleted(f"trash-{int(now.timestamp() * 1000)}", len(live))
        run = CleanupRun.objects.create(space_id=base.space_id, kind=CLEANUP, document_refs=live, progress_total=len(live))
        enqueue(run)
    return Deleted(f"cleanup-{run.pk}", len(live))


def _keep_tags(pks: Sequence[int]) -> None:
    """Remember the tags of documents that go into the trash: there they count for nothing."""
    tags: dict[int, list[int]] = {}
    for document, tag in DocumentTag.objects.filter(document_id__in=pks).order_by("pk").values_list("document_id", "tag_id"):
        tags.setdefault(document, []).append(tag)
    rows = [Document(pk=pk, trashed_tags=found) for pk, found in tags.items()]
    if rows:
        Document.objects.bulk_update(rows, ["trashed_tags"], batch_size=SLICE)


def documents_reparse(
    *, actor: Actor, base: KnowledgeBase, documents: Sequence[Document], process_config: dict[str, Any] | None = None
) -> list[Document]:
    """Send documents through the pipeline again (contract knowledge 4.11): pending, not findable until done, earlier summary gone.

    Raises: InvalidInput when one has nothing to parse, or does not open without its password;
    Conflict when it is being moved, or its bytes came in again meanwhile.
    """
    authorize(actor, "document.reparse", base)
    overrides = clean_process_config(process_config) if process_config is not None else None
    with transaction.atomic():
        ids = [document.pk for document in documents]
        check_not_moving(base, ids)
        rows = Document.objects.select_related("kb").select_for_update(of=("self",)).filter(kb=base, pk__in=ids, deleted_at__isnull=True)
        found = list(rows.order_by("pk"))
        again = [document for document in found if _to_reparse(document, overrides)]
        if again:
            _back_to_pending(again, overrides)
            _say_reparsed(actor, base, again)
    order = {pk: at for at, pk in enumerate(ids)}
    return sorted(found, key=lambda document: order[document.pk])


def _say_reparsed(actor: Actor, base: KnowledgeBase, documents: Sequence[Document]) -> None:
    titles = [document.title for document in documents]
    if len(documents) == 1:
        one = documents[0]
        audit(actor, "knowledge.reparse_started", one, outcome="accepted", target_type="knowledge", title=one.title, type=one.type)
    else:
        audit(
            actor,
            "knowledge.reparse_started",
            base,
            outcome="accepted",
            target_type="knowledge_base",
            titles=titles[:50],
            count=len(titles),
        )
    ids = tuple(document.pk for document in documents)
    options = {document.pk: (document.metadata or {}).get("process_overrides") or {} for document in documents}
    publish(DocumentsRefiled(space_id=base.space_id, document_ids=ids))
    publish(DocumentsReparsed(space_id=base.space_id, document_ids=ids, options=options))


NOTHING_TO_PARSE = _("There is nothing to parse: the document has no file, address or text. Upload it again.")


def document_reparse(*, actor: Actor, document: Document, process_config: dict[str, Any] | None = None, password: str = "") -> Document:
    """One document, see `documents_reparse`. A document that has nothing to parse is left `failed`, as its state truly is.

    `password` opens a locked PDF this once and is not kept.

    Raises: InvalidInput(password_unsupported) for files that no password opens here.
    """
    authorize(actor, "document.reparse", document)
    if password and not is_pdf(document):
        raise InvalidInput(
            _("Only PDF files can be opened with a password here. Save a copy without the password and upload that."),
            code="password_unsupported",
            field="password",
        )
    if not has_source(document):
        Document.objects.filter(pk=document.pk).exclude(parse_status=ParseStatus.DELETING).update(
            parse_status=ParseStatus.FAILED, reason="empty", error_message=str(NOTHING_TO_PARSE), updated_at=timezone.now()
        )
    overrides = clean_process_config(process_config) if process_config is not None else None
    with transaction.atomic():
        check_not_moving(document.kb, [document.pk])
        return _reparse(actor, _locked(document), overrides, password)


def _reparse(actor: Actor, document: Document, overrides: dict[str, Any] | None, password: str = "") -> Document:
    if not _to_reparse(document, overrides, password):
        return document
    _back_to_pending([document], overrides)
    audit(
        actor, "knowledge.reparse_started", document, outcome="accepted", target_type="knowledge", title=document.title, type=document.type
    )
    publish(DocumentsRefiled(space_id=document.space_id, document_ids=(document.pk,)))
    publish(
        DocumentStored(
            space_id=document.space_id,
            document_id=document.pk,
            trigger="reparse",
            options=(document.metadata or {}).get("process_overrides") or {},
            password=password,
        )
    )
    return document


def _to_reparse(document: Document, overrides: dict[str, Any] | None, password: str = "") -> bool:
    """Whether there is anything to do. Raises: InvalidInput when it cannot be done."""
    if not has_source(document):
        raise InvalidInput(NOTHING_TO_PARSE, code="nothing_to_parse", api_code=1000, knowledge_id=str(document.uid))
    if document.parse_status == ParseStatus.PENDING and overrides is None and not password:
        return False  # a double click: it is waiting already
    if not password and opened_with_password(document):
        raise InvalidInput(
            _("“%(title)s” was opened with a password, which was not kept. Enter it to parse the document again.")
            % {"title": document.title},
            code="password_needed",
            field="password",
            knowledge_id=str(document.uid),
        )
    return True


_AGAIN: dict[str, Any] = {
    "parse_status": ParseStatus.PENDING,
    "enabled": False,
    "description": "",
    "summary_status": "none",
    "processed_at": None,
    "pending_subtasks_count": 0,
    "reason": "",
    "error_message": "",
}


def _back_to_pending(documents: Sequence[Document], overrides: dict[str, Any] | None) -> None:
    """Locked documents wait to be parsed, as rows and in memory: one statement for what is alike in all, one for wishes."""
    changes = {**_AGAIN, "updated_at": timezone.now()}
    for document in documents:
        document.metadata = with_overrides(document.metadata, overrides)
        document.index_rev += 1
        for name, value in changes.items():
            setattr(document, name, value)
    try:
        with transaction.atomic():
            Document.objects.filter(pk__in=[document.pk for document in documents]).update(**changes, index_rev=F("index_rev") + 1)
            if overrides is not None:
                Document.objects.bulk_update(documents, ["metadata"])
    except IntegrityError:
        ids = {"knowledge_id": str(documents[0].uid)} if len(documents) == 1 else {}
        raise Conflict(
            _("The same content was added again in the meantime. Delete one of the two documents."), code="duplicate_file", **ids
        ) from None


CANCELLED = _("Stopped by a user. Parse it again to go on.")


def document_cancel(*, actor: Actor, document: Document) -> Document:
    """Stop the work on a document; passages it has already are kept (contract knowledge 4.12). Twice changes nothing.

    Raises: InvalidInput when there is nothing to stop.
    """
    authorize(actor, "document.cancel", document)
    now = timezone.now()
    with transaction.atomic():
        rows = Document.objects.filter(pk=document.pk, deleted_at__isnull=True)
        stopped = rows.filter(parse_status__in=[*IN_FLIGHT, ParseStatus.DRAFT]).update(
            parse_status=ParseStatus.CANCELLED,
            reason="cancelled",
            error_message=str(CANCELLED),
            pending_subtasks_count=0,
            updated_at=now,
        )
        document.refresh_from_db()
        if stopped:
            audit(actor, "knowledge.parse_canceled", document, outcome="canceled", target_type="knowledge", title=document.title)
            publish(DocumentParseCancelled(space_id=document.space_id, document_id=document.pk))
        elif document.parse_status != ParseStatus.CANCELLED:
            raise InvalidInput(
                _("Nothing is being done with this document, so there is nothing to stop."),
                code="not_in_flight",
                parse_status=document.parse_status,
                api_code=1000,
            )
    return document


def documents_into_folder(*, actor: Actor, base: KnowledgeBase, documents: Sequence[Document], path: str) -> Refiled:
    """File documents of one base under a folder; no parse follows. `moved_count`: rows whose path was written."""
    authorize(actor, "folder.update", base)
    target = clean_folder(path)
    with transaction.atomic():
        moved = _refile(actor, Document.objects.filter(kb=base, pk__in=[d.pk for d in documents], deleted_at__isnull=True), Value(target))
        if moved:
            titles = [document.title for document in documents][:50]
            audit(
                actor, "knowledge.updated", base, target_type="knowledge_base", titles=titles, count=moved, changed_fields=["folder_path"]
            )
    return Refiled(moved, target)


def folder_rename(*, actor: Actor, base: KnowledgeBase, source: str, target: str) -> Refiled:
    """Move a folder with everything below it; an existing target takes it in (contract knowledge 5.2).

    Raises: InvalidInput when a path is empty, or the target lies inside the source.
    """
    authorize(actor, "folder.update", base)
    old, new = clean_folder(source, field="from"), clean_folder(target, field="to")
    if not old or not new:
        raise InvalidInput(_("Name both folders."), field="from" if not old else "to")
    if new == old:
        return Refiled(0, new)
    if new.startswith(f"{old}/"):
        raise InvalidInput(_("A folder cannot go into itself."), field="to")
    with transaction.atomic():
        rows = Document.objects.filter(in_folder(old, recursive=True), kb=base, deleted_at__isnull=True)
        for path in rows.order_by().values_list("folder_path", flat=True).distinct():
            if normal_folder(f"{new}{path[len(old) :]}") != f"{new}{path[len(old) :]}":
                raise InvalidInput(_("Folders below it would become too deep or too long."), field="to")
        moved = _refile(actor, rows, Concat(Value(new), Substr("folder_path", len(old) + 1)))
        if moved:
            audit(
                actor,
                "knowledge.updated",
                base,
                target_type="knowledge_base",
                count=moved,
                changed_fields=["folder_path"],
                changes={"folder_path": {"before": old, "after": new}},
            )
    return Refiled(moved, new)


def folder_drop(*, actor: Actor, base: KnowledgeBase, path: str) -> str:
    """The folder's path, when nothing lies in it or below: then there is nothing left to remove, for folders are where documents lie.

    Raises: InvalidInput(folder_in_use) with the `count` of documents when some do; nothing changes.
    """
    authorize(actor, "folder.update", base)
    folder = clean_folder(path, field="folder")
    if not folder:
        raise InvalidInput(_("Name the folder."), field="folder")
    if count := folder_count(actor=actor, base=base, path=folder):
        raise InvalidInput(
            ngettext_lazy(
                "%(count)d document lies in this folder. Move or delete it first.",
                "%(count)d documents lie in this folder. Move or delete them first.",
                count,
            )
            % {"count": count},
            code="folder_in_use",
            field="folder",
            count=count,
        )
    return folder


def _refile(actor: Actor, rows: Any, path: Any) -> int:
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    now = timezone.now()
    for start in range(0, len(ids), SLICE):
        Document.objects.filter(pk__in=ids[start : start + SLICE]).update(folder_path=path, index_rev=F("index_rev") + 1, updated_at=now)
    if ids:
        publish(DocumentsRefiled(space_id=actor.space, document_ids=tuple(ids)))
    return len(ids)


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
        _put_tags(base, documents, by_uid)
        Document.objects.filter(pk__in=ids).update(index_rev=F("index_rev") + 1, updated_at=timezone.now())
        audit(
            actor,
            "knowledge.updated",
            base,
            target_type="knowledge_base",
            titles=[document.title for document in documents][:50],
            count=len(ids),
            changed_fields=["tags"],
        )
        publish(DocumentsRefiled(space_id=base.space_id, document_ids=tuple(ids)))


def _put_tags(base: KnowledgeBase, documents: Sequence[Document], by_uid: Mapping[Any, Sequence[Any]]) -> None:
    """The same number of queries however many documents there are."""
    known = {tag.uid: tag.pk for tag in tags_of(base, list({str(name) for names in by_uid.values() for name in names}))}
    wanted = {document.pk: {known[uid] for name in by_uid[document.uid] if (uid := as_uuid(str(name).strip()))} for document in documents}
    links = DocumentTag.objects.filter(document_id__in=list(wanted))
    there = {(document_id, tag_id): pk for pk, document_id, tag_id in links.values_list("pk", "document_id", "tag_id")}
    DocumentTag.objects.filter(pk__in=[pk for (document_id, tag_id), pk in there.items() if tag_id not in wanted[document_id]]).delete()
    DocumentTag.objects.bulk_create(
        [
            DocumentTag(space_id=base.space_id, document_id=document_id, tag_id=tag_id)
            for document_id, tags in wanted.items()
            for tag_id in tags
            if (document_id, tag_id) not in there
        ],
        ignore_conflicts=True,
    )


def _locked(document: Document) -> Document:
    return Document.objects.select_related("kb").select_for_update(of=("self",)).get(pk=document.pk, deleted_at__isnull=True)
