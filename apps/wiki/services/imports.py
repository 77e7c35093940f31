"""Starting an import of a wiki."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.jobs.service import enqueue
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.wiki.archives import ReadItem
from apps.wiki.enabling import check_wiki
from apps.wiki.models import WikiImportItem, WikiRun

WIKI_IMPORT = "wiki_import"


def wiki_import_start(*, actor: Actor, base: KnowledgeBase, items: Sequence[ReadItem], file_name: str = "") -> WikiRun:
    """Import what `archive_read` gave, in the background. A page whose address is taken becomes the next version of the page that has it.

    Raises: InvalidInput without a wiki; Conflict (`import_running`) while another import of this wiki is under way.
    """
    authorize(actor, "wiki.import", base)
    check_wiki(base)
    try:
        with transaction.atomic():
            run = WikiRun.objects.create(
                space_id=base.space_id,
                kind=WIKI_IMPORT,
                kb_ref=base.pk,
                kb_uid=base.uid,
                options={"file_name": file_name[:255]},
                starter_id=actor.user_id,
                progress_total=len(items),
                progress_unit="entries",
            )
            WikiImportItem.objects.bulk_create(
                [
                    WikiImportItem(
                        space_id=base.space_id,
                        run=run,
                        index=index,
                        kind=item.kind,
                        path=item.path,
                        data=item.data,
                        blob=item.blob,
                        state=WikiImportItem.State.FAILED if item.error else WikiImportItem.State.WAITING,
                        error=item.error,
                    )
                    for index, item in enumerate(items)
                ],
                batch_size=100,
            )
            audit(
                actor,
                "wiki.import_started",
                base,
                outcome="accepted",
                target_type="knowledge_base",
                title=file_name or base.name,
                count=sum(item.kind == "page" for item in items),
            )
            enqueue(run)
    except IntegrityError:
        raise Conflict(_("Another import of this wiki is under way. Wait until it is done."), code="import_running") from None
    return run  # type: ignore[no-any-return]
