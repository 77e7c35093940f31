"""Why a source, or one item of it, could not be taken over: what happened and what to do next, in words.

The codes are those of `plugins.protocol.SourceError` and of the contract (content 7.2). A code that is not listed is shown as
`sync_failed`, never raw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext_lazy as _

#: Where the next step is taken: in the settings, the credentials, at the source itself, by waiting, by the operator.
Where = Literal["settings", "credentials", "source", "wait", "operator"]


@dataclass(frozen=True, slots=True)
class Words:
    """`title`: what happened; `next`: what to do about it. `tone` is "warning" where waiting is enough."""

    title: Any
    next: Any
    where: Where = "source"
    tone: Literal["danger", "warning"] = "danger"


WORDS: dict[str, Words] = {
    "auth": Words(
        _("The source does not accept the credentials"),
        _("Check that they are complete and have not expired, enter them again and test the connection."),
        "credentials",
    ),
    "forbidden": Words(
        _("The credentials may not read this"),
        _("At the source, give the account or app the right to read what is selected, or select less."),
        "credentials",
    ),
    "not_found": Words(
        _("It is not there any more, or not visible to these credentials"),
        _("Check the address and what is selected; at the source it may have been moved, deleted or not shared."),
        "settings",
    ),
    "rate_limited": Words(
        _("The source asks to be left alone for a while"),
        _("Nothing needs to be done: the next sync goes on. Sync less often if it happens often."),
        "wait",
        "warning",
    ),
    "timeout": Words(
        _("The source took too long to answer"),
        _("The next sync tries again. If it stays, select less or ask those who run the source."),
        "wait",
        "warning",
    ),
    "unavailable": Words(
        _("The source cannot be reached"),
        _("The next sync tries again. If it stays, check that the address is right and the source is running."),
        "wait",
        "warning",
    ),
    "unknown_host": Words(_("No server of this name was found"), _("Check the address for typing mistakes."), "settings"),
    "tls": Words(
        _("The server's certificate was not accepted"),
        _("Ask those who run the source to renew the certificate, or check the address."),
    ),
    "bad_answer": Words(
        _("The source sent something that could not be understood"),
        _("Check that the address is that of the right kind of source; open it in a browser to see what it sends."),
        "settings",
    ),
    "too_large": Words(_("It is larger than may be taken over"), _("Make it smaller at the source, or leave it out of what is selected.")),
    "refused_address": Words(
        _("The address is in a private network, which may not be reached"),
        _("Ask the operator to allow it (KB_FETCH_ALLOW), or use a public address."),
        "operator",
    ),
    "redirect_loop": Words(
        _("The address redirects in circles or too often"), _("Give the final address, as the browser shows it."), "settings"
    ),
    "too_many": Words(
        _("There is more than one source may hold"),
        _("What was read is kept and nothing was deleted. Select less, or split it into several sources."),
        "settings",
        "warning",
    ),
    "robots": Words(
        _("The site asks programs not to read it"),
        _("Ask those who run the site to allow this portal in robots.txt, or choose other start addresses."),
    ),
    "bad_settings": Words(_("A setting is missing or wrong"), _("Correct the setting and test the connection."), "settings"),
    "ingest_failed": Words(
        _("The document could not be stored"), _("The next sync tries again. If it stays, open the document's page at the source."), "wait"
    ),
    "deletion_failed": Words(_("A document could not be deleted"), _("The next full sync tries again."), "wait"),
    "deletion_lookup_failed": Words(_("A deleted document could not be looked up"), _("The next full sync tries again."), "wait"),
    "sync_failed": Words(_("The sync failed"), _("Try again. If it fails again, ask the operator to look at the log."), "operator"),
    "feishu_auth_or_permission": Words(
        _("Feishu or Lark refuses: wrong app credentials or missing permissions"),
        _("Check App ID and App Secret, give the app the permissions to read, publish it, and share the space or folder with it."),
        "credentials",
    ),
    "feishu_rate_limited": Words(
        _("Feishu or Lark asks to be left alone for a while"), _("Nothing needs to be done: the next sync goes on."), "wait", "warning"
    ),
    "feishu_timeout": Words(_("Feishu or Lark took too long to answer"), _("The next sync tries again."), "wait", "warning"),
    "feishu_server_unavailable": Words(_("Feishu or Lark cannot be reached"), _("The next sync tries again."), "wait", "warning"),
    "feishu_api_error": Words(
        _("Feishu or Lark answered with error %(code)s"), _("Look the number up in the documentation of the open platform.")
    ),
    "feishu_api_error_generic": Words(
        _("Feishu or Lark answered with an error"), _("Try again. If it stays, check the app at the open platform.")
    ),
}


def words(code: str, params: Mapping[str, Any] | None = None) -> Words:
    """The words for a code, its parameters filled in."""
    found = WORDS.get(code) or WORDS["sync_failed"]
    if "%(" not in str(found.title):
        return found
    number = str((params or {}).get("code", ""))[:40]
    if not number:
        return WORDS["feishu_api_error_generic"]
    return Words(found.title % {"code": number}, found.next, found.where, found.tone)
