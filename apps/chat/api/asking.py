"""Asking over REST: the stream of an answer, continued and stopped."""

from __future__ import annotations

import uuid
from typing import Any

from rest_framework.response import Response

from apps.chat import selectors
from apps.chat.api import serializers as s
from apps.chat.api.sse import streamed
from apps.chat.services import turns
from apps.chat.services.following import turn_follow
from apps.chat.turns.runner import release
from apps.common.api.views import ApiView, Op
from apps.common.errors import NotFound
from apps.knowledge.selectors import as_uuid

TAGS = ["chat"]
NOBODY = uuid.UUID(int=0)
MODES = {"builtin-quick-answer": False, "builtin-smart-reasoning": True}
EVENTS = (
    "Server-sent events `event:message` with one line of JSON in `data:`; `id` is the request id in each. In order: `agent_query`, then if "
    "something is looked up `knowledge_search_start`, `tool_call` and `tool_result` of `knowledge_search`, `knowledge_search_done`, "
    "`knowledge_search_empty` or `knowledge_search_error`, `references` if there are hits, `thinking`, `answer` pieces with a closing one, "
    "`complete`, and `session_title` for a new "
    "conversation. `stop` or an `error` with `stage` end it otherwise. The answer is written to its end even if nobody listens: see "
    "`continue-stream`."
)


def _uids(values: Any) -> tuple[uuid.UUID, ...] | None:
    """Ids as UUIDs; none: no limit. One that is no UUID becomes one that matches nothing."""
    return tuple(as_uuid(str(value)) or NOBODY for value in values) if values else None


def asked_of(body: dict[str, Any], *, agentic: bool) -> turns.Asked:
    """A question as its service takes it."""
    bases, documents, tags = (list(body.get(name) or []) for name in ("knowledge_base_ids", "knowledge_ids", "tag_ids"))
    for item in body.get("mentioned_items") or []:
        {"kb": bases, "file": documents, "tag": tags}.get(str(item.get("type")), []).append(str(item.get("id", "")))
    state = {
        "agent_id": body.get("agent_id") or "",
        "agent_enabled": agentic,
        "model_id": body.get("summary_model_id") or "",
        "knowledge_base_ids": bases,
        "knowledge_ids": documents,
        "tag_ids": tags,
        "mentioned_items": body.get("mentioned_items") or [],
        "web_search_enabled": False,
    }
    return turns.Asked(
        text=body["query"],
        bases=_uids(dict.fromkeys(bases)),
        documents=_uids(dict.fromkeys(documents)),
        tags=_uids(dict.fromkeys(tags)),
        model_id=body.get("summary_model_id") or "",
        force=bool(body.get("force_search")),
        agentic=agentic,
        channel=body.get("channel") or "api",
        wants_title=not body.get("disable_title"),
        state=state,
    )


class KnowledgeChatView(ApiView):
    operations = {
        "POST": Op(
            "chat.ask",
            "Ask, and read the answer as it is written",
            body=s.ChatIn,
            query=s.ChatQuery,
            shape="file",
            errors=(400, 401, 403, 404, 429),
            invalid_code=1000,
            tags=TAGS,
            description=EVENTS,
            examples={"one base": {"query": "How often is the sensor calibrated?", "knowledge_base_ids": ["…"], "channel": "api"}},
        )
    }
    is_agent = False

    def post(self, request: Any, session_id: str) -> Any:
        self.asked()
        session, body = selectors.session_get(actor=self.actor, session_id=session_id), self.read()
        agentic = MODES.get(body.get("agent_id") or "", bool(body.get("agent_enabled")) or self.is_agent)
        _question, reply = turns.turn_start(actor=self.actor, session=session, asked=asked_of(body, agentic=agentic))
        release()
        return streamed(turn_follow(actor=self.actor, message=reply))


class AgentChatView(KnowledgeChatView):
    operations = {
        "POST": Op(
            "chat.ask",
            "Ask, and let the model search by itself where it can",
            body=s.ChatIn,
            query=s.ChatQuery,
            shape="file",
            errors=(400, 401, 403, 404, 429),
            invalid_code=1000,
            tags=TAGS,
            description=EVENTS,
            examples={"one base": {"query": "Compare the two sensors.", "knowledge_base_ids": ["…"], "channel": "api"}},
        )
    }
    is_agent = True

    def post(self, request: Any, session_id: str) -> Any:
        return super().post(request, session_id)


class ContinueStreamView(ApiView):
    operations = {
        "GET": Op(
            "chat.read",
            "The stream of an answer again, from its beginning to its end",
            query=s.StreamQuery,
            shape="file",
            invalid_code=1000,
            tags=TAGS,
            description="As often as one likes and beside other readers. Streams are kept for a day after their end.",
        )
    }

    def get(self, request: Any, session_id: str) -> Any:
        asked = self.asked()
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        message = selectors.message_get(actor=self.actor, session=session, message_id=asked["message_id"])
        if selectors.channel_of(message) is None:
            events, live = selectors.events_after(actor=self.actor, message=message, seq=0)
            if not events and not live:
                return Response({"success": False, "error": "No stream events found"}, status=404)
        release()
        return streamed(turn_follow(actor=self.actor, message=message))


class StopView(ApiView):
    operations = {
        "POST": Op("chat.ask", "Stop an answer that is being written", body=s.StopIn, shape="message", invalid_code=1000, tags=TAGS)
    }

    def post(self, request: Any, session_id: str) -> Response:
        wanted = self.read().get("message_id") or ""
        if not wanted:
            return Response({"error": "message_id is required"}, status=400)
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        try:
            message = selectors.message_get(actor=self.actor, session=session, message_id=wanted)
        except NotFound:
            return Response({"error": "Message not found"}, status=404)
        stopped = turns.turn_stop(actor=self.actor, message=message)
        return self.render(None, message="Generation stopped" if stopped else "Message already completed")
