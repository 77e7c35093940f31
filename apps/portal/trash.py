"""What a toast offers after something was deleted."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.actor import Actor
from apps.common.policy import allowed
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import trash_days

UNDONE_AT_ONCE = 50  # ids that fit into an address


def documents_text(count: int) -> str:
    return ngettext("%(count)s document", "%(count)s documents", count) % {"count": f"{count:,}"}


def days_text() -> str:
    """For how long what is deleted can come back, in words; "" when it cannot."""
    days = trash_days()
    if days <= 0:
        return ""
    return ngettext("%(days)g day", "%(days)g days", int(days)) % {"days": days}


def documents_undo(actor: Actor, base: KnowledgeBase, documents: Sequence[Document]) -> str:
    """Where to POST to bring documents back that were just deleted; "" when the actor may not, or they are too many for one address."""
    if trash_days() <= 0 or not 0 < len(documents) <= UNDONE_AT_ONCE or not allowed(actor, "trash.restore", base):
        return ""
    ids = ",".join(document.uid.hex for document in documents)
    return f"{reverse('base-trash-restore', args=[base.space_id, base.uid])}?ids={ids}"


def base_undo(actor: Actor, base: KnowledgeBase) -> str:
    """The same for a base."""
    if trash_days() <= 0 or not allowed(actor, "trash.restore"):
        return ""
    return reverse("trash-base-restore", args=[base.space_id, base.uid])


def kept_text() -> str:
    """The line under what was deleted."""
    words = days_text()
    return _("An admin can bring it back from the trash for %(days)s.") % {"days": words} if words else ""
