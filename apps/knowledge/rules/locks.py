"""What keeps two pieces of work off one document."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict
from apps.common.jobs.models import LIVE
from apps.knowledge.models import KnowledgeBase, MoveRun


def check_not_moving(base: KnowledgeBase, document_pks: Sequence[int]) -> None:
    """Raises: Conflict while one of the documents is on its way to another base."""
    for refs in MoveRun.objects.filter(space_id=base.space_id, state__in=LIVE).values_list("document_refs", flat=True):
        if not set(document_pks).isdisjoint(refs):
            raise Conflict(_("A document is being moved to another knowledge base. Try again when that is done."), code="being_moved")
