"""A question is asked, asked again, stopped, rated, removed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from apps.chat.answerers.citations import body_of
from apps.chat.answerers.evidence import is_wide
from apps.chat.models import ChatSession, Message
from apps.chat.titles import title_of
from apps.chat.turns import runner
from apps.chat.turns.answering import answer
from apps.chat.turns.channel import LEASE, hub
from apps.chat.turns.plan import Plan
from apps.common import context
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput, NotFound, RateLimited
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.retrieval.selectors import Scope

MAX_CHARS = 4000
MAX_LIVE = 8  # answers that are written for one person at the same time
HISTORY_TURNS = 3
HISTORY_CHARS = 1500


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question is asked with. None or () of a scope: no limit; `bases` None: every base the actor may read."""

    text: str
    bases: tuple[uuid.UUID, ...] | None = None
    documents: tuple[uuid.UUID, ...] | None = None
    tags: tuple[uuid.UUID, ...] | None = None
    model_id: str = ""
    force: bool = False
    agentic: bool = False
    channel: str = ""
    wants_title: bool = True
    state: dict[str, Any] | None = None  # as the session remembers it (contract 2.1 `last_request_state`)


def turn_start(*, actor: Actor, session: ChatSession, asked: Asked) -> tuple[Message, Message]:
    """(question, answer): both stored, the answer being written from now on whether or not anybody listens.

    Raises: InvalidInput for no or too long a question; NotFound for a base that is not there; RateLimited when too many are being written.
    """
    authorize(actor, "chat.ask", session)
    text = asked.text.replace("\0", "").strip()
    if not text:
        raise InvalidInput(_("Type a question."), field="query", api_code=1000)
    if len(text) > MAX_CHARS:
        raise InvalidInput(_("Shorten the question to 4,000 characters."), field="query", api_code=1000)
    asked = replace(asked, text=text)
    bases = _bases(actor, asked)
    now = timezone.now()
    with transaction.atomic():
        _room(actor)
        question = Message.objects.create(
            space_id=session.space_id,
            session=session,
            role=Message.Role.USER,
            content=text,
            request_id=context.request_id.get() or str(uuid.uuid4()),
            channel=asked.channel[:32],
            request=_request(asked),
            created_at=now,
        )
        reply = _reply(question, now)
        session.last_request = asked.state if asked.state is not None else _request(asked)
        session.save(update_fields=["last_request", "updated_at"])
    _begin(actor, session, question, reply, asked, bases)
    return question, reply


def turn_again(*, actor: Actor, question: Message, model_id: str | None = None, force: bool | None = None) -> Message:
    """Another answer to a question in place of the ones before.

    Raises: Conflict while one is being written; NotFound for a base that is gone.
    """
    authorize(actor, "chat.ask", question.session)
    asked = _asked_of(question)
    if model_id is not None:
        asked = replace(asked, model_id=model_id)
    if force is not None:
        asked = replace(asked, force=force)
    bases = _bases(actor, asked)
    now = timezone.now()
    with transaction.atomic():
        if Message.objects.filter(parent=question, state=Message.State.RUNNING).exists():
            raise Conflict(_("This question is being answered. Wait, or stop it first."), code="being_answered")
        _room(actor)
        Message.objects.filter(parent=question).delete()
        question.request, question.request_id = _request(asked), context.request_id.get() or str(uuid.uuid4())
        question.save(update_fields=["request", "request_id", "updated_at"])
        reply = _reply(question, max(now, question.created_at))
    _begin(actor, question.session, question, reply, asked, bases)
    return reply


def turn_edit(*, actor: Actor, question: Message, text: str) -> tuple[Message, Message]:
    """The question asked anew with other words; it and everything after it leave the conversation. Raises: as `turn_start`."""
    authorize(actor, "chat.ask", question.session)
    asked = replace(_asked_of(question), text=text)
    session = question.session
    if not text.strip() or len(text) > MAX_CHARS:
        return turn_start(actor=actor, session=session, asked=asked)  # says what is wrong; nothing was removed
    later = Message.objects.filter(session=session).filter(Q(created_at__gt=question.created_at) | Q(parent=question) | Q(pk=question.pk))
    with transaction.atomic():
        if later.filter(state=Message.State.RUNNING).exists():
            raise Conflict(_("A question is being answered. Wait, or stop it first."), code="being_answered")
        _bases(actor, asked)
        later.delete()
    return turn_start(actor=actor, session=session, asked=asked)


def turn_stop(*, actor: Actor, message: Message) -> bool:
    """Have an answer end where it is; False when it was ended already."""
    authorize(actor, "chat.ask", message.session)
    if not message.is_live:
        return False
    Message.objects.filter(pk=message.pk).update(stop_requested=True)
    channel = hub.find(message.pk)
    if channel is not None:
        channel.stopped.set()
    return True


def connections_release(*, actor: Actor) -> None:
    """Before an answer is streamed: whoever listens holds no database connection meanwhile."""
    authorize(actor, "chat.read")
    runner.release()


def message_rate(*, actor: Actor, message: Message, rating: str, note: str = "") -> Message:
    """Say whether an answer helped; "" takes it back. Raises: InvalidInput for another word or for a question."""
    authorize(actor, "chat.manage", message.session)
    if message.role != Message.Role.ASSISTANT or rating not in Message.Rating.values:
        raise InvalidInput(_("Rate an answer “up” or “down”."), field="rating", known=[value for value in Message.Rating.values if value])
    message.rating, message.rating_note = rating, note[:1000]
    Message.objects.filter(pk=message.pk).update(rating=rating, rating_note=message.rating_note)
    return message


def message_delete(*, actor: Actor, message: Message) -> None:
    """Remove a message; a question goes with its answers."""
    authorize(actor, "chat.manage", message.session)
    if message.is_live:
        turn_stop(actor=actor, message=message)
    message.delete()


def _room(actor: Actor) -> None:
    live = Message.objects.filter(state=Message.State.RUNNING, session__owner=actor.who, lease_until__gte=Now()).count()
    if live >= MAX_LIVE:
        raise RateLimited(_("Eight of your questions are being answered. Wait until one is done."), code="too_many_answers")


def _reply(question: Message, now: Any) -> Message:
    return Message.objects.create(
        space_id=question.space_id,
        session=question.session,
        parent=question,
        role=Message.Role.ASSISTANT,
        state=Message.State.RUNNING,
        request_id=question.request_id,
        channel=question.channel,
        lease_until=timezone.now() + LEASE,
        created_at=now,
    )


def _bases(actor: Actor, asked: Asked) -> list[KnowledgeBase]:
    """Raises: NotFound when one of those named is not there (or not the actor's)."""
    rows = KnowledgeBase.objects.visible_to(actor).order_by("pk")
    if asked.bases is None:
        return list(rows[:50])
    found = list(rows.filter(uid__in=asked.bases))
    if len(found) < len(set(asked.bases)):
        known = {kb.uid for kb in found}
        missing = [str(uid) for uid in dict.fromkeys(asked.bases) if uid not in known]
        raise NotFound(_("Knowledge base not found."), missing=missing)
    return found


def _begin(actor: Actor, session: ChatSession, question: Message, reply: Message, asked: Asked, bases: Sequence[KnowledgeBase]) -> None:
    title = title_of(asked.text) if asked.wants_title and not session.is_titled else ""
    plan = Plan(
        actor=_searcher(actor),
        session_pk=session.pk,
        session_uid=session.uid,
        question_pk=question.pk,
        answer_pk=reply.pk,
        answer_uid=reply.uid,
        message=asked.text,
        scope=Scope(kb_uids=asked.bases, document_uids=asked.documents, tag_uids=asked.tags),
        model_id=asked.model_id,
        force=asked.force,
        agentic=asked.agentic,
        title=title,
        language=_language(asked.text),
        bases=tuple(kb.name for kb in bases),
        history=_history(session, question),
    )
    runner.start(reply, lambda channel: answer(plan, channel))


def _searcher(actor: Actor) -> Actor:
    """SECURITY: whoever may ask is answered from what they may read, so the search behind an answer needs no right of its own. A key
    with `chat` alone still cannot search by itself, and its list of bases holds here as everywhere."""
    if actor.capabilities is None:
        return actor
    return replace(actor, capabilities=actor.capabilities | {"retrieve"})


def _language(text: str) -> str:
    """What the portal says in an answer it says in the language of the question, where that can be told."""
    if is_wide(text):
        return "zh-hans"
    letters = sum(1 for sign in text if sign.isascii() and sign.isalpha())
    return "en" if letters >= 8 else (get_language() or "")


def _history(session: ChatSession, question: Message) -> tuple[tuple[str, str], ...]:
    """The last turns that were answered, oldest first, without lists of sources."""
    done = Message.objects.filter(
        session=session, role=Message.Role.ASSISTANT, state=Message.State.DONE, created_at__lt=question.created_at
    )
    turns: list[tuple[str, str]] = []
    for reply in reversed(list(done.select_related("parent").order_by("-created_at", "-pk")[:HISTORY_TURNS])):
        if reply.parent is not None:
            turns += [("user", reply.parent.content[:HISTORY_CHARS]), ("assistant", body_of(reply.content)[:HISTORY_CHARS])]
    return tuple(turns)


def _request(asked: Asked) -> dict[str, Any]:
    def texts(uids: tuple[uuid.UUID, ...] | None) -> list[str] | None:
        return None if uids is None else [str(uid) for uid in uids]

    return {
        "knowledge_base_ids": texts(asked.bases),
        "knowledge_ids": texts(asked.documents),
        "tag_ids": texts(asked.tags),
        "model_id": asked.model_id,
        "force": asked.force,
        "agent_enabled": asked.agentic,
    }


def _asked_of(question: Message) -> Asked:
    """A question as it was asked."""

    def uids(name: str) -> tuple[uuid.UUID, ...] | None:
        listed = question.request.get(name)
        return None if listed is None else tuple(uuid.UUID(value) for value in listed)

    return Asked(
        text=question.content,
        bases=uids("knowledge_base_ids"),
        documents=uids("knowledge_ids"),
        tags=uids("tag_ids"),
        model_id=question.request.get("model_id", ""),
        force=bool(question.request.get("force")),
        agentic=bool(question.request.get("agent_enabled")),
        channel=question.channel,
    )
