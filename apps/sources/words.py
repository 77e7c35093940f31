"""Why a source, or an item of it, could not be taken over: in words, with the next step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _now
from django.utils.translation import gettext_lazy as _

from apps.knowledge.reasons import REASONS


@dataclass(frozen=True, slots=True)
class Words:
    why: Any
    next: Any = ""


WORDS: dict[str, Words] = {
    "auth": Words(_("The source does not accept these credentials."), _("Enter them again; they may have expired.")),
    "forbidden": Words(_("The source does not allow reading this."), _("Give the account or application the right to read it.")),
    "not_found": Words(_("The source has nothing at this address."), _("Check the address and what is selected.")),
    "rate_limited": Words(_("The source asked to be left alone for a while."), _("It is asked again later by itself.")),
    "timeout": Words(_("The source took too long to answer."), _("It is tried again with the next run.")),
    "unavailable": Words(_("The source cannot be reached at the moment."), _("It is tried again with the next run.")),
    "bad_answer": Words(_("The source answered something that cannot be read."), _("Check that the address is that of the source itself.")),
    "too_large": Words(_("It is larger than may be taken in."), _("Split it at the source, or leave it out.")),
    "refused_address": Words(
        _("The address is in a private network, which sources may not reach."), _("Ask an administrator to allow it (KB_FETCH_ALLOW).")
    ),
    "redirect_loop": Words(_("The address redirects in circles or too often."), _("Give the final address.")),
    "too_many": Words(_("There are more items than one source may have."), _("Select a smaller part.")),
    "bad_settings": Words(_("A setting of this source is wrong."), _("Change the source and correct it.")),
    "bad_url": Words(_("This is not a web address."), _("Write one like https://example.com/page.")),
    "unknown_host": Words(_("No server of this name was found."), _("Check the address.")),
    "feishu_auth_or_permission": Words(
        _("Feishu does not accept the application, or has not given it the right."), _("Check its permissions in the developer console.")
    ),
    "feishu_rate_limited": Words(_("Feishu asked to be left alone for a while."), _("It is asked again later by itself.")),
    "feishu_timeout": Words(_("Feishu took too long to answer."), _("It is tried again with the next run.")),
    "feishu_server_unavailable": Words(_("Feishu cannot be reached at the moment."), _("It is tried again with the next run.")),
    "feishu_api_error": Words(_("Feishu answered with an error.")),
    "feishu_api_error_generic": Words(_("Feishu answered with an error.")),
    "sync_failed": Words(_("Nothing could be taken over."), _("The reasons stand beside the items.")),
    "deletion_failed": Words(_("It is gone at the source, but could not be deleted here."), _("It is tried again with the next run.")),
    "deleted": Words(_("The data source was deleted.")),
    "base_deleted": Words(_("The knowledge base was deleted.")),
    "cancelled": Words(_("Somebody stopped it."), _("What was taken over until then stays; the next run goes on.")),
    "stalled": Words(_("Its worker stopped every time it was tried."), _("Start it again; if that does not help, tell an administrator.")),
    "secret_unreadable": Words(_("The stored credentials cannot be read: the portal's own keys have changed."), _("Enter them again.")),
    "being_moved": Words(_("The document is being moved to another knowledge base."), _("It is tried again with the next run.")),
    "duplicate_file": Words(_("Another document of this base has the same content."), _("It is looked at again with the next run.")),
    "no_space": Words(_("There is not enough disk space for it."), _("Delete what is not needed, or ask an administrator for space.")),
    "suspicious_listing": Words(
        _("So much was missing at once that nothing was deleted: it waits for a decision."), _("See what is gone, and delete or keep it.")
    ),
    "partial_listing": Words(_("Parts of the source could not be listed, so nothing counts as gone."), _("The next run tries them again.")),
    "removed_here": Words(_("It was deleted here, and stays deleted."), _("Bring it back from the trash, or start a full sync.")),
    "kept_local": Words(_("It was changed here, and that was kept."), _("Choose to overwrite, and start a full sync, to take the source's.")),
    "nothing": Words(_("There is nothing in it that could be read.")),
    "internal": Words(_("Something unexpected happened."), _("Start it again; if that does not help, tell an administrator.")),
}


def words_of(code: str) -> Words:
    """The words for a code of a source, an intake or a run; the code itself where there are none."""
    if code in WORDS:
        return WORDS[code]
    if code in REASONS:
        return Words(REASONS[code].why, REASONS[code].next)
    return Words(code)


def sentence(code: str, detail: str = "") -> str:
    """One line for whoever asked the source: why, what it said itself, what to do."""
    words = words_of(code)
    own = f" ({detail})" if detail and detail != code else ""
    return _now("%(why)s%(detail)s %(next)s") % {"why": words.why, "detail": own, "next": words.next}
