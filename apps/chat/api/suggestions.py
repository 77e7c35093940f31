"""Questions that could be asked, over REST: of bases, and after an answer."""

from __future__ import annotations

import uuid
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.response import Response

from apps.chat import selectors
from apps.chat.api import serializers as s
from apps.chat.api.asking import MODES, NOBODY
from apps.chat.services import follow_ups
from apps.common.api.views import ApiView, Op
from apps.common.errors import NotFound
from apps.knowledge.selectors import as_uuid

TAGS = ["chat"]


def _uids(text: str) -> list[uuid.UUID]:
    return [as_uuid(part.strip()) or NOBODY for part in text.split(",") if part.strip()]


class SuggestedQuestionsView(ApiView):
    operations = {
        "GET": Op(
            "chat.read",
            "Questions the bases answer",
            query=s.SuggestedQuery,
            reply=s.SuggestedOut,
            invalid_code=1000,
            tags=TAGS,
            description="Question pairs (recommended ones first), questions written for passages, and headings of the latest documents, in "
            "turn. `agent_id` is one of the built-in modes.",
        )
    }

    def get(self, request: Any, agent_id: str) -> Response:
        asked = self.asked()
        if agent_id not in MODES:
            raise NotFound(_("Agent not found."))
        kb_uids = _uids(asked["knowledge_base_ids"]) or None
        documents = _uids(asked["knowledge_ids"])
        found = selectors.questions_suggested(actor=self.actor, kb_uids=kb_uids, document_uids=documents, limit=asked["limit"])
        return self.render({"questions": [row.as_row for row in found]})


class FollowUpsView(ApiView):
    operations = {
        "GET": Op("chat.ask", "Questions offered after an answer", reply=s.FollowUpsOut, invalid_code=1000, tags=TAGS),
        "POST": Op(
            "chat.ask",
            "Make the questions offered after an answer",
            body=s.FollowUpsIn,
            reply=s.FollowUpsOut,
            invalid_code=1000,
            tags=TAGS,
            description="They are made once and kept; `regenerate` makes others. 202 with `pending` while the answer is being written.",
        ),
    }

    def get(self, request: Any, session_id: str, message_id: str) -> Response:
        return self._answer(session_id, message_id, regenerate=False)

    def post(self, request: Any, session_id: str, message_id: str) -> Response:
        return self._answer(session_id, message_id, regenerate=bool(self.read().get("regenerate")))

    def _answer(self, session_id: str, message_id: str, *, regenerate: bool) -> Response:
        session = selectors.session_get(actor=self.actor, session_id=session_id)
        message = selectors.message_get(actor=self.actor, session=session, message_id=message_id)
        kept = follow_ups.follow_ups_make(actor=self.actor, message=message, regenerate=regenerate)
        response = self.render((message, kept))
        response.status_code = 202 if kept["status"] == "pending" else 200
        return response


class FollowUpEventsView(ApiView):
    operations = {
        "POST": Op(
            "chat.ask",
            "Tell what became of an offered question",
            body=s.FollowUpEventIn,
            shape="message",
            status=204,
            invalid_code=1000,
            tags=TAGS,
            description="`event_type`: impression, click or dismiss. They are counted with the answer.",
        )
    }

    def post(self, request: Any, session_id: str) -> Response:
        session, body = selectors.session_get(actor=self.actor, session_id=session_id), self.read()
        follow_ups.follow_up_event(
            actor=self.actor,
            session=session,
            set_id=body["suggestion_set_id"],
            question_id=body.get("question_id") or "",
            event=body["event_type"],
        )
        return Response(status=204)
