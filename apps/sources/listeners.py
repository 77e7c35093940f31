"""What this context does about the news of lower ones."""

from __future__ import annotations

from apps.common.events import listen
from apps.common.jobs.models import LIVE
from apps.knowledge.events import BaseDeleted
from apps.sources.endings import runs_cancel
from apps.sources.models import SyncRun


@listen(BaseDeleted)
def stop_runs(event: BaseDeleted) -> None:
    """The sources of a deleted base rest with it: they come back with it from the trash, or go with it for good."""
    live = SyncRun.objects.filter(source__kb_id=event.kb_id, state__in=LIVE)
    for source_pk in set(live.values_list("source_id", flat=True)):
        runs_cancel(source_pk, why="knowledge base deleted")
