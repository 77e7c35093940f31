"""Steps workers run: finishing deletions, moving documents. In slices; stopped anywhere and begun again, they end the same."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.events import publish
from apps.common.jobs.claims import Claim
from apps.common.jobs.models import RunState
from apps.knowledge import files
from apps.knowledge.events import DocumentsRefiled, DocumentStored
from apps.knowledge.models import Chunk, Document, DocumentImage, DocumentTag, KnowledgeBase, MoveRun, ParseStatus, Tag
from apps.knowledge.reasons import move_problem
from apps.knowledge.rules.documents import has_source

CHUNKS_AT_ONCE = 500


def work_cleanup(claim: Claim) -> None:
    """Passages, then files, then the row of each tombstone: a row that still names a file is only removed after the file."""
    run: Any = claim.run
    waiting = _tombstones(run)
    total = max(run.progress_total, waiting.count())
    done = total - waiting.count()
    while (document := waiting.select_related("kb").order_by("pk").first()) is not None:
        _remove_passages(claim, document.pk)
        files.delete_files(list(files.document_keys(document)))
        claim.check()
        with transaction.atomic():
            claim.hold()
            Document.objects.filter(pk=document.pk, deleted_at__isnull=False, purge_at__isnull=True).delete()
        done += 1
        claim.progress(done, total, "documents")
    with transaction.atomic():
        if run.kb_ref and not Document.objects.filter(kb_id=run.kb_ref).exists():
            Tag.objects.filter(kb_id=run.kb_ref).delete()
            KnowledgeBase.objects.filter(pk=run.kb_ref, deleted_at__isnull=False, purge_at__isnull=True).delete()
        claim.finish(RunState.DONE)


def _tombstones(run: Any) -> Any:
    named = Q(pk__in=run.document_refs)
    if run.kb_ref:
        named |= Q(kb_id=run.kb_ref)
    return Document.objects.filter(named, deleted_at__isnull=False, purge_at__isnull=True)


def _remove_passages(claim: Claim, document_pk: int) -> None:
    while ids := list(Chunk.objects.filter(document_id=document_pk).order_by("pk").values_list("pk", flat=True)[:CHUNKS_AT_ONCE]):
        claim.check()
        with transaction.atomic():
            claim.hold()
            Chunk.objects.filter(pk__in=ids).delete()


def work_move(claim: Claim) -> None:
    """Move one document per transaction; a document that is gone or clashes is counted as failed, the others go on."""
    run: Any = claim.run
    actor = Actor.system(run.space_id, f"move {run.task_id}")
    target = KnowledgeBase.objects.filter(pk=run.target_ref, deleted_at__isnull=True).first()
    done, failures = 0, []
    for pk in run.document_refs:
        claim.check()
        with transaction.atomic():
            claim.hold()
            problem = _move_one(actor, run, target, pk)
        done += 1
        if problem:
            failures.append(problem)
        claim.progress(done, len(run.document_refs), "documents", failed=len(failures))
    everything_failed = bool(failures) and len(failures) == len(run.document_refs)
    state = RunState.FAILED if everything_failed else RunState.DONE
    with transaction.atomic():
        claim.rows().update(progress_done=done, progress_failed=len(failures))
        if claim.finish(state, reason="move_failed" if everything_failed else "", error="\n".join(failures)[:4000]):
            _record_end(actor, run, len(failures), everything_failed)


def _move_one(actor: Actor, run: Any, target: KnowledgeBase | None, pk: int) -> str:
    """Why a document could not be moved; "" when it is in the target now (also when it was there already)."""
    document = Document.objects.select_for_update(of=("self",)).filter(pk=pk, deleted_at__isnull=True).first()
    if target is None:
        return move_problem("target_deleted")
    if document is None:
        return move_problem("deleted")
    if document.kb_id == target.pk:
        return ""
    if document.kb_id != run.source_ref:
        return move_problem("elsewhere", document.title)
    values: dict[str, Any] = {"kb": target, "index_rev": F("index_rev") + 1, "updated_at": timezone.now()}
    again = run.mode == MoveRun.Mode.REPARSE and has_source(document)
    if again:
        values |= {"parse_status": ParseStatus.PENDING, "enabled": False, "processed_at": None, "description": "", "summary_status": "none"}
    try:
        with transaction.atomic():
            Document.objects.filter(pk=pk).update(**values)
    except IntegrityError:
        return move_problem("same_content", document.title)
    Chunk.objects.filter(document_id=pk).update(kb=target)
    DocumentImage.objects.filter(document_id=pk).update(kb=target)
    DocumentTag.objects.filter(document_id=pk).delete()
    publish(DocumentsRefiled(space_id=document.space_id, document_ids=(pk,)))
    if again:
        publish(DocumentStored(space_id=document.space_id, document_id=pk, trigger="reparse"))
    return ""


def _record_end(actor: Actor, run: Any, failed: int, everything_failed: bool) -> None:
    for uid in (run.source_uid, run.target_uid):
        audit(
            actor,
            "knowledge.move_failed" if everything_failed else "knowledge.move_completed",
            base=uid,
            target_type="knowledge_base",
            target_id=str(uid),
            outcome="failed" if everything_failed else "partial" if failed else "success",
            task_id=run.task_id,
            source_kb_id=str(run.source_uid),
            target_kb_id=str(run.target_uid),
            mode=run.mode,
            count=len(run.document_refs) - failed,
            failed=failed,
            trigger="system",
        )


def end_move(run: Any) -> None:
    """A move that ended without its worker having ended it still leaves a record."""
    _record_end(Actor.system(run.space_id, f"move {run.task_id}"), run, len(run.document_refs) - run.progress_done, True)
