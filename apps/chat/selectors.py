"""Reading conversations: outside ids become one's own sessions and messages here, and citations are compared with their sources."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from django.db.models import F, Prefetch, Q
from django.utils.translation import gettext as _

from apps.chat.answerers.citations import body_of
from apps.chat.models import ChatSession, Citation, Message, StreamEvent
from apps.chat.services.upkeep import turns_settle
from apps.chat.suggesting import Suggestion, questions_suggested
from apps.chat.turns.channel import Channel, hub
from apps.chat.turns.lookup import reference_row
from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors import as_uuid

SourceState = Literal["same", "changed", "moved", "deleted"]

__all__ = [
    "Channel",
    "CitedPassage",
    "Suggestion",
    "body_of",
    "channel_of",
    "chat_figures",
    "citation_get",
    "citations_of_messages",
    "events_after",
    "message_get",
    "message_list",
    "message_search",
    "question_count",
    "questions_suggested",
    "reference_row",
    "session_get",
    "session_list",
    "session_version",
    "sessions_get",
]


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A citation and what became of its source: `changed` shows the old text beside the news, `deleted` shows none.

    `current`: the passage as it is now; `moved`: the document was read again and this passage is no longer one of its own.
    """

    citation: Citation
    state: SourceState
    content: str
    current: str = ""
    document: Document | None = field(default=None, repr=False)

    @property
    def is_gone(self) -> bool:
        return self.state == "deleted"

    def row(self) -> dict[str, Any]:
        """As the contract's reference object; `metadata` says what became of the source."""
        found = reference_row(self.citation, self.content)
        found["metadata"] = {**found["metadata"], "source_state": self.state, "cited": "true" if self.citation.is_cited else "false"}
        return found


def session_list(*, actor: Actor, keyword: str = "", source: str = "") -> Any:
    """The actor's conversations: pinned first, then the latest; with `keyword` those whose title or messages hold it."""
    authorize(actor, "chat.read")
    rows = ChatSession.objects.visible_to(actor)
    if source:
        rows = rows.filter(source=source)
    if keyword.strip():
        word = keyword.strip()
        said = Message.objects.filter(content__icontains=word).values("session_id")
        rows = rows.filter(Q(title__icontains=word) | Q(pk__in=said))
    return rows.order_by(F("pinned_at").desc(nulls_last=True), "-updated_at", "-pk")


def session_get(*, actor: Actor, session_id: Any) -> ChatSession:
    """Raises: NotFound for ids of no conversation of the actor's."""
    authorize(actor, "chat.read")
    uid = session_id if isinstance(session_id, uuid.UUID) else as_uuid(str(session_id))
    found = ChatSession.objects.visible_to(actor).filter(uid=uid).first() if uid is not None else None
    if found is None:
        raise NotFound("session not found")
    return found  # type: ignore[no-any-return]


def sessions_get(*, actor: Actor, ids: Iterable[Any]) -> list[ChatSession]:
    """Those of the ids that are the actor's conversations; others are left out, as unknown ones are."""
    authorize(actor, "chat.read")
    uids = [uid for uid in (as_uuid(str(value)) for value in ids) if uid is not None]
    return list(ChatSession.objects.visible_to(actor).filter(uid__in=uids))


def message_get(*, actor: Actor, session: ChatSession, message_id: Any) -> Message:
    """Raises: NotFound for ids of no message of this conversation."""
    authorize(actor, "chat.read", session)
    uid = message_id if isinstance(message_id, uuid.UUID) else as_uuid(str(message_id))
    found = (
        Message.objects.visible_to(actor).filter(session=session, uid=uid).select_related("session").first() if uid is not None else None
    )
    if found is None:
        raise NotFound(_("Message not found"))
    return settled(found)


def settled(message: Message) -> Message:
    """The message, ended first if whoever wrote it is gone."""
    if message.is_live and hub.find(message.pk) is None and turns_settle(message.pk):
        message.refresh_from_db()
    return message


def message_list(*, actor: Actor, session: ChatSession, limit: int = 20, before: datetime | None = None) -> list[Message]:
    """The newest `limit` messages (before a moment), oldest first, a question before its answer; each with its citations."""
    authorize(actor, "chat.read", session)
    rows = Message.objects.visible_to(actor).filter(session=session).select_related("session")
    if before is not None:
        rows = rows.filter(created_at__lt=before)
    rows = rows.prefetch_related(Prefetch("citations", Citation.objects.order_by("number")))
    found = [settled(message) for message in rows.order_by("-created_at", "-pk")[:limit]]
    return sorted(found, key=lambda message: (message.created_at, message.role == Message.Role.ASSISTANT, message.pk))


def citations_of_messages(*, actor: Actor, messages: Sequence[Message]) -> dict[int, list[CitedPassage]]:
    """{message: its citations with what became of their sources}; constant number of queries.

    SECURITY: the text of a source the actor may not read (any more), or that was deleted, is not given out again.
    """
    authorize(actor, "chat.read")
    rows = [citation for message in messages for citation in message.citations.all()]
    documents = {d.uid: d for d in Document.objects.visible_to(actor).select_related("kb").filter(uid__in={c.document_uid for c in rows})}
    chunks = {c.uid: c for c in Chunk.objects.visible_to(actor).filter(uid__in={c.chunk_uid for c in rows})}
    found: dict[int, list[CitedPassage]] = {message.pk: [] for message in messages}
    for citation in rows:
        found[citation.message_id].append(_compared(citation, documents.get(citation.document_uid), chunks.get(citation.chunk_uid)))
    return found


def _compared(citation: Citation, document: Document | None, chunk: Chunk | None) -> CitedPassage:
    if document is None:
        return CitedPassage(citation, "deleted", "")
    if chunk is None:
        return CitedPassage(citation, "moved", citation.content, document=document)
    if chunk.content != citation.content:
        return CitedPassage(citation, "changed", citation.content, chunk.content, document)
    return CitedPassage(citation, "same", citation.content, chunk.content, document)


def citation_get(*, actor: Actor, message: Message, number: int) -> CitedPassage:
    """What a mark of an answer opens. Raises: NotFound for a number the answer was not given."""
    authorize(actor, "chat.read", message.session)
    citation = Citation.objects.filter(message=message, number=number).first()
    if citation is None:
        raise NotFound(_("This answer has no such source."))
    document = Document.objects.visible_to(actor).select_related("kb").filter(uid=citation.document_uid).first()
    chunk = Chunk.objects.visible_to(actor).filter(uid=citation.chunk_uid).first()
    return _compared(citation, document, chunk)


def message_search(*, actor: Actor, query: str, limit: int = 20, session_ids: Sequence[Any] = ()) -> list[tuple[Message, Message | None]]:
    """(question, answer) pairs of the actor's conversations in which either holds the words, newest first.

    Raises: InvalidInput without words.
    """
    authorize(actor, "chat.history")
    word = query.strip()
    if not word:
        raise InvalidInput(_("Type what you are looking for."), field="query", api_code=1000)
    rows = Message.objects.visible_to(actor).filter(role=Message.Role.USER).select_related("session").prefetch_related("answers")
    if session_ids:
        rows = rows.filter(session__uid__in=[uid for uid in (as_uuid(str(value)) for value in session_ids) if uid is not None])
    rows = rows.filter(Q(content__icontains=word) | Q(pk__in=Message.objects.filter(content__icontains=word).values("parent_id")))
    found = rows.order_by("-created_at", "-pk")[: max(1, min(limit, 100))]
    return [(question, max(question.answers.all(), key=lambda reply: reply.pk, default=None)) for question in found]


def channel_of(message: Message) -> Channel | None:
    """The channel of an answer this very process is writing."""
    return hub.find(message.pk)


def events_after(*, actor: Actor, message: Message, seq: int) -> tuple[list[dict[str, Any]], bool]:
    """(stored events from number `seq` on, whether more may come)."""
    authorize(actor, "chat.read", message.session)
    state = settled(Message.objects.get(pk=message.pk)) if Message.objects.filter(pk=message.pk).exists() else None
    events = list(StreamEvent.objects.filter(message_id=message.pk, seq__gte=seq).order_by("seq").values_list("payload", flat=True))
    return events, state is not None and state.is_live


def chat_figures(*, actor: Actor) -> dict[str, int]:
    """{session_count, message_count} of the actor's own."""
    authorize(actor, "chat.history")
    return {"session_count": ChatSession.objects.visible_to(actor).count(), "message_count": Message.objects.visible_to(actor).count()}


def session_version(*, actor: Actor, session: ChatSession) -> str:
    """Changes whenever a page of the conversation would look different."""
    authorize(actor, "chat.read", session)
    rows = Message.objects.visible_to(actor).filter(session=session)
    last = rows.order_by("-created_at", "-pk").values_list("pk", "state").first()
    return f"{rows.count()}.{'.'.join(map(str, last or ()))}"


def question_count(*, actor: Actor, session: ChatSession, after: Message | None = None) -> int:
    """How many questions a conversation holds (after one of them)."""
    authorize(actor, "chat.read", session)
    rows = Message.objects.visible_to(actor).filter(session=session, role=Message.Role.USER)
    return int((rows.filter(created_at__gt=after.created_at) if after is not None else rows).count())
