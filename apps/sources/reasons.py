"""Every code a run, an item or a refusal of a source may carry, in words: those of sources, of runs and of files that may not come in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.knowledge.reasons import REASONS
from apps.sources.words import WORDS, Words, words

OWN: dict[str, Words] = {
    "deleted": Words(_("The data source was deleted"), "", tone="warning"),
    "base_deleted": Words(_("The knowledge base was deleted"), "", tone="warning"),
    "cancelled": Words(_("Somebody stopped it"), _("What was taken over until then stays; the next sync goes on."), tone="warning"),
    "stalled": Words(
        _("Its worker stopped every time it was tried"), _("Start it again; if that does not help, tell the operator."), "operator"
    ),
    "secret_unreadable": Words(
        _("The stored credentials cannot be read: the portal's own keys have changed"), _("Enter them again."), "credentials"
    ),
    "being_moved": Words(_("The document is being moved to another knowledge base"), _("The next sync tries again."), "wait", "warning"),
    "duplicate_file": Words(
        _("Another document of this base has the same content"), _("The next sync looks at it again."), "wait", "warning"
    ),
    "suspicious_listing": Words(
        _("So much was missing at once that nothing was deleted"), _("See what is gone, and delete or keep it."), "source", "warning"
    ),
    "partial_listing": Words(
        _("Parts of the source could not be listed, so nothing counts as gone"), _("The next sync tries them again."), "wait", "warning"
    ),
    "removed_here": Words(
        _("It was deleted here, and stays deleted"), _("Bring it back from the trash, or sync everything again."), tone="warning"
    ),
    "kept_local": Words(
        _("It was changed here, and that was kept"),
        _("To have the source's, choose to overwrite and sync everything again."),
        tone="warning",
    ),
    "nothing": Words(_("There is nothing in it that could be read"), "", tone="warning"),
    "internal": Words(_("Something unexpected happened"), _("Start it again; if that does not help, tell the operator."), "operator"),
}


def words_of(code: str, params: Mapping[str, Any] | None = None) -> Words:
    """The words for a code, with its parameters; for one that nobody knows, that the sync failed."""
    if code in OWN:
        return OWN[code]
    if code in REASONS and code not in WORDS:
        return Words(REASONS[code].title, REASONS[code].next)
    return words(code, params)


def knows(code: str) -> bool:
    """Whether there are words for exactly this code."""
    return code in OWN or code in WORDS or code in REASONS


def sentence(code: str, detail: str = "", params: Mapping[str, Any] | None = None) -> str:
    """One line for whoever asked the source: what happened, what it said itself, what to do."""
    if code == "bad_settings" and detail:
        return detail
    found = words_of(code, params)
    own = str(_(" (%(detail)s)") % {"detail": detail}) if detail and detail != code else ""
    return str(_("%(title)s%(detail)s. %(next)s") % {"title": found.title, "detail": own, "next": found.next}).strip()
