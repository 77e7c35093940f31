"""Starting, stopping and showing imports; the work itself is `apps.faq.importing`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.jobs.models import RunState
from apps.common.jobs.service import cancel_run, enqueue
from apps.common.policy import authorize
from apps.faq.drafts import MAX_ROWS, IncomingRow, too_many_rows
from apps.faq.models import FaqImportRow, FaqImportRun
from apps.faq.planning import submitted_draft
from apps.faq.selectors.entries import check_faq, import_last, import_live, task_parts
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.knowledge.services import pairs_container

FAQ_IMPORT = "faq_import"
RUNS_KEPT = 5
ROWS_AT_ONCE = 500


def import_start(
    *,
    actor: Actor,
    base: KnowledgeBase,
    rows: Sequence[IncomingRow],
    mode: str,
    dry_run: bool = False,
    task_id: str = "",
    file_name: str = "",
) -> FaqImportRun:
    """Start an import (contract content F11). A `task_id` of an earlier one that has ended is used again: so corrected rows are retried.

    Raises: InvalidInput for no rows, too many, an unknown mode, a task id of another shape, or while another import of the base runs.
    """
    authorize(actor, "faq.import", base)
    check_faq(base)
    if mode not in FaqImportRun.Mode.values:
        words = _("The mode must be `append` or `replace`.")
        raise InvalidInput(words, field="mode", api_code=1000, known=list(FaqImportRun.Mode.values))
    if not rows:
        raise InvalidInput(_("There is nothing to import: send at least one entry."), field="entries", code="no_rows", api_code=1000)
    if len(rows) > MAX_ROWS:
        raise too_many_rows(len(rows))
    if task_id:
        _check_task(base, task_id)
    if (live := import_live(actor=actor, base=base)) is not None:
        raise _running(live)
    try:
        with transaction.atomic():
            return _start(actor, base, rows, mode, dry_run, task_id, file_name)
    except IntegrityError:
        live = import_live(actor=actor, base=base)
        raise _running(live) from None


def _check_task(base: KnowledgeBase, task_id: str) -> None:
    space, kb = task_parts(task_id)
    if space != base.space_id or as_uuid(kb) != base.uid:
        raise InvalidInput(_("This task id belongs to another base. Leave it out, and one is made."), field="task_id", api_code=1000)


def _running(live: FaqImportRun | None) -> InvalidInput:
    task = live.task_id if live is not None else ""
    words = _("An import of this base is under way: %(task)s. Wait until it is done, or stop it.") % {"task": task}
    return InvalidInput(words, code="import_running", field="task_id", api_code=1000, task_id=task)


def _start(
    actor: Actor, base: KnowledgeBase, rows: Sequence[IncomingRow], mode: str, dry_run: bool, task_id: str, file_name: str
) -> FaqImportRun:
    made = f"faq_import_{base.space_id}_{int(timezone.now().timestamp() * 1000)}_{secrets.token_hex(4)}_{base.uid}"
    run = FaqImportRun.objects.create(
        space_id=base.space_id,
        kind=FAQ_IMPORT,
        task_id=task_id or made,
        kb_ref=base.pk,
        kb_uid=base.uid,
        mode=mode,
        dry_run=dry_run,
        file_name=file_name[:255],
        starter_id=actor.user_id,
        progress_total=len(rows),
        progress_unit="rows",
    )
    waiting = [
        FaqImportRow(
            space_id=base.space_id,
            run=run,
            index=index,
            raw=row.raw,
            draft=row.draft.to_json() if row.draft is not None else None,
            reason=row.reason,
            facts=row.facts,
        )
        for index, row in enumerate(rows)
    ]
    FaqImportRow.objects.bulk_create(waiting, batch_size=ROWS_AT_ONCE)
    _forget(base)
    if not dry_run:
        pairs_container(actor=actor, base=base)
        audit(
            actor,
            "faq.import_started",
            base,
            outcome="accepted",
            target_type="knowledge_base",
            title=file_name or base.name,
            task_id=run.task_id,
            count=len(rows),
            mode=mode,
        )
    enqueue(run)
    return run


def _forget(base: KnowledgeBase) -> None:
    """Rows of all but the last few imports of a base go."""
    kept = list(FaqImportRun.objects.filter(kb_ref=base.pk).order_by("-pk").values_list("pk", flat=True)[:RUNS_KEPT])
    shown = FaqImportRun.objects.filter(kb_ref=base.pk, dry_run=False, state=RunState.DONE).order_by("-pk").values_list("pk", flat=True)
    FaqImportRun.objects.filter(kb_ref=base.pk, pk__lt=kept[-1]).exclude(pk__in=list(shown[:1])).delete()


def import_cancel(*, actor: Actor, base: KnowledgeBase, run: FaqImportRun) -> bool:
    """Stop an import: what is in the base by then stays. False when it had ended already."""
    authorize(actor, "faq.import", base)
    from apps.faq.importing import end_import

    with transaction.atomic():
        run.refresh_from_db()
        if not run.is_live:
            return False
        was_queued = run.state == RunState.QUEUED
        cancel_run(run)
        if was_queued and run.state == RunState.CANCELLED:
            end_import(run)
    return True


def import_show(*, actor: Actor, base: KnowledgeBase, shown: str) -> FaqImportRun:
    """Show the last result above the list, or put it away (contract content F13). Raises: InvalidInput; NotFound when there is none."""
    authorize(actor, "faq.write", base)
    if shown not in ("open", "close"):
        raise InvalidInput(_("Send `open` or `close`."), field="display_status", api_code=1000, known=["open", "close"])
    run = import_last(actor=actor, base=base)
    if run is None:
        raise NotFound(_("Nothing has been imported here yet."))
    run.shown = shown
    run.save(update_fields=["shown", "updated_at"])
    return run


def incoming_again(*, actor: Actor, run: FaqImportRun) -> list[IncomingRow]:
    """The rows of an import as they were submitted, to be imported after they were only checked."""
    authorize(actor, "faq.import")
    rows = FaqImportRow.objects.filter(run=run).order_by("index")
    again = []
    for row in rows:
        failed_early = row.draft is None
        draft = submitted_draft(row)  # what was taken out is tried, and told, once more
        again.append(
            IncomingRow(
                raw=row.raw,
                draft=draft,
                reason=row.reason if failed_early else "",
                facts=row.facts if failed_early else {},
            )
        )
    return again
