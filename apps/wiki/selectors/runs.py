"""Reading imports of a wiki."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.wiki.models import WikiImportItem, WikiRun

IMPORT = "wiki_import"
FAILED_SHOWN = 100


@dataclass(frozen=True, slots=True)
class ImportState:
    """`state`: none, queued, running, done, failed or cancelled; `failed`: (path, why) of entries that could not be taken over."""

    state: str
    done: int = 0
    total: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)
    file_name: str = ""


def import_state(*, actor: Actor, base: KnowledgeBase) -> ImportState:
    """How the latest import of a wiki is."""
    authorize(actor, "wiki.import", base)
    run = WikiRun.objects.filter(space_id=base.space_id, kb_ref=base.pk, kind=IMPORT).order_by("-pk").first()
    if run is None:
        return ImportState("none")
    failed = WikiImportItem.objects.filter(run=run, state=WikiImportItem.State.FAILED).order_by("index")
    counts = {name: run.counts.get(name, 0) for name in ("created", "changed", "same", "failed")}
    rows = list(failed.values_list("path", "error")[:FAILED_SHOWN])
    return ImportState(run.state, run.progress_done, run.progress_total, counts, rows, str(run.options.get("file_name", "")))
