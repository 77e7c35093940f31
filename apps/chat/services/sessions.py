"""Conversations are begun, named, pinned and removed by their owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.chat.models import ChatSession, Message
from apps.chat.titles import title_of
from apps.chat.turns.channel import hub
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.common.text import clean_line

MAX_TITLE = 200
MAX_SESSIONS = 5000


def session_create(*, actor: Actor, title: str = "", description: str = "") -> ChatSession:
    """A new conversation of the actor's. Raises: InvalidInput for a title that is too long or when there are too many."""
    authorize(actor, "chat.ask")
    title = _title(title)
    if ChatSession.objects.visible_to(actor).count() >= MAX_SESSIONS:
        raise InvalidInput(_("You have 5,000 conversations. Delete some before you begin another."), code="too_many", api_code=1000)
    return ChatSession.objects.create(
        space_id=actor.space,
        owner=actor.who,
        owner_user_id=actor.user_id,
        source="api" if actor.kind == "key" else "web",
        title=title,
        is_titled=bool(title),
        description=description[:1000],
    )


def session_update(*, actor: Actor, session: ChatSession, title: str | None = None, description: str | None = None) -> ChatSession:
    """Rename or describe. Raises: InvalidInput for a title that is too long."""
    authorize(actor, "chat.manage", session)
    if title is not None:
        session.title, session.is_titled = _title(title), bool(title.strip())
    if description is not None:
        session.description = description[:1000]
    session.save(update_fields=["title", "is_titled", "description", "updated_at"])
    return session


def session_pin(*, actor: Actor, session: ChatSession, is_pinned: bool) -> ChatSession:
    """Keep it at the top of the list, or no longer."""
    authorize(actor, "chat.manage", session)
    session.pinned_at = (session.pinned_at or timezone.now()) if is_pinned else None
    ChatSession.objects.filter(pk=session.pk).update(pinned_at=session.pinned_at)  # pinning is no activity
    return session


def sessions_delete(*, actor: Actor, sessions: Sequence[ChatSession] | None) -> int:
    """Remove conversations with all their messages, None: every one of the actor's; how many. Answers being written are stopped."""
    authorize(actor, "chat.manage")
    rows = ChatSession.objects.visible_to(actor)
    if sessions is not None:
        rows = rows.filter(pk__in=[session.pk for session in sessions])
    with transaction.atomic():
        pks = list(rows.values_list("pk", flat=True))
        _stop_live(pks)
        ChatSession.objects.filter(pk__in=pks).delete()
    return len(pks)


def session_clear(*, actor: Actor, session: ChatSession) -> int:
    """Remove its messages, keep the conversation; how many."""
    authorize(actor, "chat.manage", session)
    with transaction.atomic():
        _stop_live([session.pk])
        count = Message.objects.filter(session=session).count()
        Message.objects.filter(session=session).delete()
    return count


def title_generate(*, actor: Actor, session: ChatSession, messages: Sequence[dict[str, Any]] = ()) -> str:
    """A title from the first question of `messages`, else of the conversation; stored.

    Raises: InvalidInput when there is no question yet.
    """
    authorize(actor, "chat.manage", session)
    asked = next((str(row.get("content", "")) for row in messages if row.get("role") == "user" and str(row.get("content", "")).strip()), "")
    if not asked:
        first = Message.objects.filter(session=session, role=Message.Role.USER).order_by("created_at", "pk").first()
        asked = first.content if first is not None else ""
    title = title_of(asked)
    if not title:
        raise InvalidInput(_("Ask something first: the title is made from the first question."), field="messages", api_code=1000)
    session.title, session.is_titled = title, True
    session.save(update_fields=["title", "is_titled", "updated_at"])
    return title


def _title(raw: str) -> str:
    title = clean_line(raw)
    if len(title) > MAX_TITLE:
        raise InvalidInput(_("A title has at most 200 characters."), field="title", api_code=1000)
    return title


def _stop_live(session_pks: list[int]) -> None:
    for pk in Message.objects.filter(session_id__in=session_pks, state=Message.State.RUNNING).values_list("pk", flat=True):
        channel = hub.find(pk)
        if channel is not None:
            channel.stopped.set()
