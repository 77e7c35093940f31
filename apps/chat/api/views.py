"""Conversations and their messages over REST."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.response import Response

from apps.chat import selectors
from apps.chat.api import serializers as s
from apps.chat.models import Message
from apps.chat.services import sessions, turns
from apps.common.api.views import ApiView, Op

TAGS = ["chat"]


class SessionsView(ApiView):
    operations = {
        "GET": Op(
            "chat.read", "One's own conversations", query=s.SessionQuery, reply=s.SessionOut, shape="page", invalid_code=1000, tags=TAGS
        ),
        "POST": Op(
            "chat.ask",
            "Begin a conversation",
            body=s.SessionIn,
            reply=s.SessionOut,
            status=201,
            invalid_code=1000,
            tags=TAGS,
            examples={"empty": {}},
            description="Members that are not listed are ignored.",
        ),
    }

    def get(self, request: Any) -> Response:
        asked = self.asked()
        rows = selectors.session_list(actor=self.actor, keyword=asked["keyword"], source=asked["source"])
        return self.page(rows, asked["page"], asked["page_size"])

    def post(self, request: Any) -> Response:
        body = self.read()
        title, description = body.get("title") or "", body.get("description") or ""
        return self.render(sessions.session_create(actor=self.actor, title=title, description=description))


class SessionView(ApiView):
    operations = {
        "GET": Op("chat.read", "One conversation", reply=s.SessionOut, tags=TAGS),
        "PUT": Op("chat.manage", "Rename a conversation", body=s.SessionIn, reply=s.SessionOut, invalid_code=1000, tags=TAGS),
        "DELETE": Op("chat.manage", "Delete a conversation", shape="message", tags=TAGS),
    }

    def get(self, request: Any, session_id: str) -> Response:
        return self.render(selectors.session_get(actor=self.actor, session_id=session_id))

    def put(self, request: Any, session_id: str) -> Response:
        session, body = selectors.session_get(actor=self.actor, session_id=session_id), self.read()
        return self.render(
            sessions.session_update(actor=self.actor, session=session, title=body.get("title"), description=body.get("description"))
        )

    def delete(self, request: Any, session_id: str) -> Response:
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        sessions.sessions_delete(actor=self.actor, sessions=[session])
        return self.render(None, message=_("Conversation deleted."))


class SessionBatchView(ApiView):
    operations = {
        "DELETE": Op("chat.manage", "Delete several conversations", body=s.BatchIn, shape="message", invalid_code=1000, tags=TAGS)
    }

    def delete(self, request: Any) -> Response:
        body = self.read()
        rows = None if body["delete_all"] else selectors.sessions_get(actor=self.actor, ids=body["ids"])
        deleted = sessions.sessions_delete(actor=self.actor, sessions=rows)
        return self.render(None, message=_("Conversations deleted."), deleted_count=deleted)


class SessionMessagesView(ApiView):
    operations = {"DELETE": Op("chat.manage", "Remove all messages of a conversation", shape="message", tags=TAGS)}

    def delete(self, request: Any, session_id: str) -> Response:
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        deleted = sessions.session_clear(actor=self.actor, session=session)
        return self.render(None, message=_("Messages removed."), deleted_count=deleted)


class SessionPinView(ApiView):
    operations = {
        "POST": Op("chat.manage", "Keep a conversation on top", shape="message", tags=TAGS),
        "DELETE": Op("chat.manage", "Keep it on top no longer", shape="message", tags=TAGS),
    }

    def post(self, request: Any, session_id: str) -> Response:
        return self._pin(session_id, is_pinned=True)

    def delete(self, request: Any, session_id: str) -> Response:
        return self._pin(session_id, is_pinned=False)

    def _pin(self, session_id: str, *, is_pinned: bool) -> Response:
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        sessions.session_pin(actor=self.actor, session=session, is_pinned=is_pinned)
        return self.render(None, is_pinned=is_pinned)


class SessionTitleView(ApiView):
    operations = {
        "POST": Op(
            "chat.manage",
            "Title a conversation by its first question",
            body=s.TitleIn,
            invalid_code=1000,
            tags=TAGS,
            description="`data` is the title.",
        )
    }

    def post(self, request: Any, session_id: str) -> Response:
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        return self.render(sessions.title_generate(actor=self.actor, session=session, messages=self.read().get("messages") or []))


class MessageLoadView(ApiView):
    operations = {
        "GET": Op(
            "chat.read",
            "The newest messages of a conversation, oldest first",
            query=s.LoadQuery,
            reply=s.ChatMessageOut,
            shape="list",
            invalid_code=1000,
            tags=TAGS,
            description="`before_time`: those before a moment, for paging. References are as they were cited; `metadata.source_state` says "
            "whether the source is the `same`, was `changed` or `moved`, or is `deleted` (then its text is not given out any more).",
        )
    }

    def get(self, request: Any, session_id: str) -> Response:
        session, asked = selectors.session_get(actor=self.actor, session_id=session_id), self.asked()
        found = selectors.message_list(actor=self.actor, session=session, limit=asked["limit"], before=asked["before_time"] or None)
        self.render_context = {"citations": selectors.citations_of_messages(actor=self.actor, messages=found)}
        return self.render(found)


class MessageView(ApiView):
    operations = {"DELETE": Op("chat.manage", "Delete a message", shape="message", tags=TAGS)}

    def delete(self, request: Any, session_id: str, message_id: str) -> Response:
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        turns.message_delete(actor=self.actor, message=selectors.message_get(actor=self.actor, session=session, message_id=message_id))
        return self.render(None, message=_("Message deleted."))


class MessageRatingView(ApiView):
    operations = {
        "PUT": Op("chat.manage", "Say whether an answer helped", body=s.RatingIn, reply=s.ChatMessageOut, invalid_code=1000, tags=TAGS)
    }

    def put(self, request: Any, session_id: str, message_id: str) -> Response:
        body, session = self.read(), selectors.session_get(actor=self.actor, session_id=session_id)
        message = selectors.message_get(actor=self.actor, session=session, message_id=message_id)
        return self.render(turns.message_rate(actor=self.actor, message=message, rating=body["rating"], note=body.get("note") or ""))


class MessageSearchView(ApiView):
    operations = {
        "POST": Op(
            "chat.history",
            "Search one's own messages",
            body=s.MessageSearchIn,
            reply=s.FoundMessagesOut,
            invalid_code=1000,
            tags=TAGS,
            description="By words; `mode` is accepted for clients that send it.",
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        pairs = selectors.message_search(
            actor=self.actor, query=body["query"], limit=body["limit"], session_ids=body.get("session_ids") or []
        )
        items = [_found(question, reply) for question, reply in pairs]
        return self.render({"items": items, "total": len(items)})


def _found(question: Message, reply: Message | None) -> dict[str, Any]:
    return {
        "request_id": question.request_id,
        "session_id": str(question.session.uid),
        "session_title": question.session.title,
        "query_content": question.content,
        "answer_content": reply.content if reply is not None else "",
        "score": 1.0,
        "match_type": "keyword",
        "created_at": s.stamp(question.created_at),
    }


class ChatStatsView(ApiView):
    operations = {"GET": Op("chat.history", "How much one has asked", reply=s.StatsOut, tags=TAGS)}

    def get(self, request: Any) -> Response:
        return self.render(selectors.chat_figures(actor=self.actor))
