"""What a moderator can do to a person, space, base, document or run: each act says what it changes, and why it cannot be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.accounts.services import moderator_set, sessions_end, user_activation_set
from apps.common.actor import Actor
from apps.common.jobs.models import LIVE, RunState
from apps.common.jobs.registry import job_kinds
from apps.knowledge.models import IN_FLIGHT, Document, ParseStatus
from apps.knowledge.services import base_delete, document_cancel, document_reparse, documents_delete, documents_reparse
from apps.moderation.services import run_cancel, run_retry
from apps.sources.services import source_pause, source_resume, sync_start
from apps.spaces.services.space import space_delete

RETRIED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Act:
    """`explain(obj)`: what goes and what stays. `refuse(request, obj)`: why not, "" when it can be done. `perform` gives what was done.

    `typed(obj)`: what has to be typed to confirm, for what cannot be undone.
    """

    code: str
    label: Any
    explain: Callable[[Any], str]
    perform: Callable[[Actor, Any], str]
    refuse: Callable[[Any, Any], str] = lambda _request, _obj: ""
    danger: bool = False
    typed: Callable[[Any], str] | None = None
    icon: str = ""


def _own(request: Any, user: Any) -> str:
    return _("This is your own account; ask another moderator.") if request.user.pk == user.pk else ""


def _activate(actor: Actor, user: Any) -> str:
    user_activation_set(actor=actor, user=user, is_active=True)
    return _("The account is active again.")


def _deactivate(actor: Actor, user: Any) -> str:
    user_activation_set(actor=actor, user=user, is_active=False)
    return _("The account is closed; sessions, tokens and keys ended.")


def _sign_out(actor: Actor, user: Any) -> str:
    count = sessions_end(actor=actor, user=user)
    return ngettext("Signed out everywhere; %(count)d token ended.", "Signed out everywhere; %(count)d tokens ended.", count) % {
        "count": count
    }


def _promote(actor: Actor, user: Any) -> str:
    moderator_set(actor=actor, user=user, is_moderator=True)
    return _("%(name)s moderates the site now.") % {"name": user.username}


def _demote(actor: Actor, user: Any) -> str:
    moderator_set(actor=actor, user=user, is_moderator=False)
    return _("%(name)s no longer moderates the site.") % {"name": user.username}


USER = (
    Act(
        "deactivate",
        gettext_lazy("Deactivate"),
        lambda user: (
            _(
                "%(name)s can no longer sign in. Browser sessions, bearer tokens and the API keys they made end at once; "
                "keys do not come back. What they wrote stays, with their name."
            )
            % {"name": user.username}
        ),
        _deactivate,
        lambda request, user: _own(request, user) or ("" if user.is_active else _("The account is deactivated already.")),
        danger=True,
        icon="person_off",
    ),
    Act(
        "activate",
        gettext_lazy("Activate"),
        lambda user: _("%(name)s can sign in again with the password they had.") % {"name": user.username},
        _activate,
        lambda _request, user: _("The account is active.") if user.is_active else "",
        icon="person_check",
    ),
    Act(
        "sign-out",
        gettext_lazy("Sign out everywhere"),
        lambda user: (
            _("Every browser session and bearer token of %(name)s ends; they can sign in again. API keys stay.") % {"name": user.username}
        ),
        _sign_out,
        icon="logout",
    ),
    Act(
        "promote",
        gettext_lazy("Make moderator"),
        lambda user: (
            _("%(name)s will see every space's metadata, run these actions, and may make others moderators.") % {"name": user.username}
        ),
        _promote,
        lambda _request, user: (
            _("Moderates the site already.") if user.is_staff else "" if user.is_active else _("The account is deactivated.")
        ),
        icon="shield_person",
    ),
    Act(
        "demote",
        gettext_lazy("Take moderation away"),
        lambda user: _("%(name)s keeps their account and spaces, and can no longer open this administration.") % {"name": user.username},
        _demote,
        lambda request, user: _own(request, user) or ("" if user.is_staff else _("Does not moderate the site.")),
        icon="remove_moderator",
    ),
)


def _delete_space(actor: Actor, space: Any) -> str:
    space_delete(actor=actor, space=space)
    return _("The organization is deleted; its contents are being cleared.")


def _space_refuses(_request: Any, space: Any) -> str:
    if space.deleted_at is not None:
        return _("It is deleted already.")
    return _("A personal space belongs to its account; deactivate the person instead.") if space.is_personal else ""


SPACE = (
    Act(
        "delete",
        gettext_lazy("Delete organization"),
        lambda space: (
            _(
                "%(name)s is gone for all its members at once, with its knowledge bases, documents and API keys. Accounts stay. "
                "It cannot be brought back but from a backup."
            )
            % {"name": space.name}
        ),
        _delete_space,
        _space_refuses,
        danger=True,
        typed=lambda space: space.name,
        icon="delete",
    ),
)


def _failed(base: Any) -> Any:
    return Document.objects.filter(kb=base, deleted_at__isnull=True, parse_status=ParseStatus.FAILED).order_by("pk")


def _reparse_failed(actor: Actor, base: Any) -> str:
    done = documents_reparse(actor=actor, base=base, documents=list(_failed(base).select_related("kb")[:RETRIED_AT_ONCE]))
    return ngettext("%(count)d document is read again.", "%(count)d documents are read again.", len(done)) % {"count": len(done)}


def _delete_base(actor: Actor, base: Any) -> str:
    base_delete(actor=actor, base=base)
    return _("The knowledge base is deleted; its contents are being cleared.")


def _gone(_request: Any, obj: Any) -> str:
    return _("It is deleted already.") if obj.deleted_at is not None else ""


BASE = (
    Act(
        "reparse-failed",
        gettext_lazy("Read failed documents again"),
        lambda base: (
            _("%(count)d failed documents are queued again, at most %(most)d at once.")
            % {"count": _failed(base).count(), "most": RETRIED_AT_ONCE}
        ),
        _reparse_failed,
        lambda request, base: _gone(request, base) or ("" if _failed(base).exists() else _("No document of it has failed.")),
        icon="refresh",
    ),
    Act(
        "delete",
        gettext_lazy("Delete knowledge base"),
        lambda base: (
            _("%(name)s and its %(count)d documents are gone for everybody at once. It cannot be brought back but from a backup.")
            % {"name": base.name, "count": Document.objects.filter(kb=base, deleted_at__isnull=True).count()}
        ),
        _delete_base,
        _gone,
        danger=True,
        typed=lambda base: base.name,
        icon="delete",
    ),
)


def _reparse(actor: Actor, document: Any) -> str:
    document_reparse(actor=actor, document=document)
    return _("The document is read again.")


def _cancel(actor: Actor, document: Any) -> str:
    document_cancel(actor=actor, document=document)
    return _("The work on the document was stopped.")


def _delete(actor: Actor, document: Any) -> str:
    documents_delete(actor=actor, base=document.kb, documents=[document])
    return _("The document is deleted; what is left of it is being cleared.")


DOCUMENT = (
    Act(
        "reparse",
        gettext_lazy("Read again"),
        lambda document: _(
            "Its passages are made anew from the original. Until then the document is not found; edits of passages are lost."
        ),
        _reparse,
        lambda request, document: (
            _gone(request, document) or (_("It waits to be read already.") if document.parse_status == "pending" else "")
        ),
        icon="refresh",
    ),
    Act(
        "cancel",
        gettext_lazy("Stop"),
        lambda document: _("The work on it stops; passages it has already are kept."),
        _cancel,
        lambda request, document: (
            _gone(request, document) or ("" if document.parse_status in IN_FLIGHT else _("Nothing is being done with this document."))
        ),
        icon="stop_circle",
    ),
    Act(
        "delete",
        gettext_lazy("Delete document"),
        lambda document: (
            _("%(title)s, its passages and its original are gone for everybody. It cannot be brought back but from a backup.")
            % {"title": document.title}
        ),
        _delete,
        _gone,
        danger=True,
        icon="delete",
    ),
)


def _retry_run(actor: Actor, run: Any) -> str:
    run_retry(actor=actor, run=run)
    return _("It is queued again.")


def _cancel_run(actor: Actor, run: Any) -> str:
    waited = run.state == RunState.QUEUED
    run_cancel(actor=actor, run=run)
    return _("It was stopped.") if waited else _("It stops at its next step.")


def _retry_refused(_request: Any, run: Any) -> str:
    again = ("failed", "cancelled") if job_kinds.get(run.kind).retry else ("failed",)
    return "" if run.state in again else _("Only work that failed can be tried again.")


RUN = (
    Act(
        "retry",
        gettext_lazy("Try again"),
        lambda run: _("A document is read again from its original under a new attempt; other work goes on where it stopped."),
        _retry_run,
        _retry_refused,
        icon="refresh",
    ),
    Act(
        "cancel",
        gettext_lazy("Stop"),
        lambda run: _("Waiting work ends at once, running work at its next step. What it did so far is kept."),
        _cancel_run,
        lambda _request, run: "" if run.state in LIVE else _("It has ended already."),
        icon="stop_circle",
    ),
)


def _sync(actor: Actor, source: Any) -> str:
    sync_start(actor=actor, source=source)
    return _("A run is queued.")


def _pause(actor: Actor, source: Any) -> str:
    source_pause(actor=actor, source=source)
    return _("The source is paused.")


def _resume(actor: Actor, source: Any) -> str:
    source_resume(actor=actor, source=source)
    return _("The source is back on its schedule.")


def _source_gone(_request: Any, source: Any) -> str:
    return _("It is deleted.") if source.deleted_at or source.kb.deleted_at else ""


SOURCE = (
    Act(
        "sync",
        gettext_lazy("Sync now"),
        lambda source: _("What is new or changed at the source is taken over, as the source is set up."),
        _sync,
        _source_gone,
        icon="sync",
    ),
    Act(
        "pause",
        gettext_lazy("Pause"),
        lambda source: _("It is not looked at by itself any more. A run under way ends as it would; documents stay."),
        _pause,
        lambda request, source: _source_gone(request, source) or (_("It is paused already.") if source.status == "paused" else ""),
        icon="pause",
    ),
    Act(
        "resume",
        gettext_lazy("Resume"),
        lambda source: _("It is looked at on its schedule again."),
        _resume,
        lambda request, source: _source_gone(request, source) or ("" if source.status == "paused" else _("It is not paused.")),
        icon="play_arrow",
    ),
)

ACTS: dict[str, dict[str, Act]] = {
    noun: {act.code: act for act in acts}
    for noun, acts in (("user", USER), ("space", SPACE), ("base", BASE), ("document", DOCUMENT), ("run", RUN), ("source", SOURCE))
}
