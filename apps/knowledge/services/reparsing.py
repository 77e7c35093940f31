"""Sending documents through the pipeline again, and stopping what is going on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.knowledge.events import DocumentParseCancelled, DocumentsRefiled, DocumentsReparsed, DocumentStored
from apps.knowledge.models import IN_FLIGHT, Document, KnowledgeBase, ParseStatus
from apps.knowledge.rules.documents import has_source, is_pdf, opened_with_password
from apps.knowledge.rules.locks import check_not_moving
from apps.knowledge.rules.texts import with_overrides
from apps.knowledge.rules.wishes import clean_process_config
from apps.knowledge.services.documents import locked_document


def documents_reparse(
    *, actor: Actor, base: KnowledgeBase, documents: Sequence[Document], process_config: dict[str, Any] | None = None
) -> list[Document]:
    """Send documents through the pipeline again (contract knowledge 4.11): pending, not findable until done, earlier summary gone.

    Raises: InvalidInput when one has nothing to parse, or does not open without its password;
    Conflict when it is being moved, or its bytes came in again meanwhile.
    """
    authorize(actor, "document.reparse", base)
    overrides = clean_process_config(process_config, base=base) if process_config is not None else None
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
    overrides = clean_process_config(process_config, base=document.kb) if process_config is not None else None
    with transaction.atomic():
        check_not_moving(document.kb, [document.pk])
        return _reparse(actor, locked_document(document), overrides, password)


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
    now, before = timezone.now(), document.parse_status
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
            changes = {"parse_status": {"before": before, "after": document.parse_status}}
            audit(
                actor, "knowledge.parse_canceled", document, outcome="canceled", target_type="knowledge", title=document.title,
                changes=changes,
            )  # fmt: skip
            publish(DocumentParseCancelled(space_id=document.space_id, document_id=document.pk))
        elif document.parse_status != ParseStatus.CANCELLED:
            raise InvalidInput(
                _("Nothing is being done with this document, so there is nothing to stop."),
                code="not_in_flight",
                parse_status=document.parse_status,
                api_code=1000,
            )
    return document
