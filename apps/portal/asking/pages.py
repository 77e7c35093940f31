"""Context of the page of a conversation: list, messages, what a question is asked with."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.chat.models import ChatSession
from apps.chat.selectors import message_list, questions_suggested, session_list, session_version
from apps.chat.services.turns import Asked
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import allowed
from apps.knowledge.selectors import as_uuid, base_list
from apps.llm.services.chat import chat_models
from apps.portal.asking.drawing import shown

LISTED = 40
MESSAGES = 40
ALL_MESSAGES = 1000
BUILT_IN = "extractive"


@dataclass(frozen=True, slots=True)
class AskedWith:
    """What the composer says: the words, the bases (none: all of them), the model ("" by itself)."""

    text: str = ""
    bases: tuple[uuid.UUID, ...] = ()
    model_id: str = ""

    @classmethod
    def read(cls, data: Any) -> AskedWith:
        uids = tuple(uid for uid in (as_uuid(value) for value in data.getlist("base")) if uid is not None)
        return cls((data.get("text") or data.get("q") or "")[:8000], uids, data.get("model", "")[:64])

    @classmethod
    def of_session(cls, session: ChatSession, text: str = "") -> AskedWith:
        """As the last question was asked; `text`: what to begin the next one with."""
        listed = session.last_request.get("knowledge_base_ids") or []
        uids = tuple(uid for uid in (as_uuid(value) for value in listed) if uid is not None)
        return cls(text[:8000], uids, str(session.last_request.get("model_id") or ""))

    def check(self) -> None:
        """Raises: InvalidInput without words."""
        if not self.text.strip():
            raise InvalidInput(_("Type a question."), field="query")

    def as_asked(self) -> Asked:
        return Asked(text=self.text, bases=self.bases or None, model_id=self.model_id, channel="web")


def page_context(
    actor: Actor,
    session: ChatSession | None,
    asked: AskedWith,
    *,
    whole: bool = False,
    list_query: str = "",
    current: str = "",
) -> dict[str, Any]:
    """Everything portal/ask.html reads."""
    context: dict[str, Any] = {
        "space_id": actor.space_id,
        "session": session,
        "may_ask": allowed(actor, "chat.ask"),
        "ask_url": reverse("ask", args=[actor.space_id]),
        "crumbs": [
            {"label": _("Ask"), "href": reverse("ask", args=[actor.space_id])},
            *([{"label": session.title}] if session and session.title else []),
        ],
        "groups": session_groups(actor, list_query, str(session.uid) if session else current),
        "list_query": list_query,
        **composer_context(actor, asked),
    }
    if session is not None:
        context |= talk_context(actor, session, whole=whole)
    return context


def talk_context(actor: Actor, session: ChatSession, *, whole: bool = False) -> dict[str, Any]:
    """The messages of a conversation."""
    limit = ALL_MESSAGES if whole else MESSAGES
    messages = message_list(actor=actor, session=session, limit=limit + 1)
    rows = shown(actor, session, messages[-limit:])
    live = next((row for row in reversed(rows) if row.is_live), None)
    return {
        "session": session,
        "space_id": actor.space_id,
        "may_ask": allowed(actor, "chat.ask"),
        "rows": rows,
        "earlier": len(messages) > limit,
        "live": live,
        "seen": session_version(actor=actor, session=session),
    }


def ideas_context(actor: Actor, bases: tuple[uuid.UUID, ...]) -> dict[str, Any]:
    """Questions the chosen bases answer (none chosen: all of them), each a link that fills it in."""
    ask = reverse("ask", args=[actor.space_id])
    chosen = [("base", str(uid)) for uid in bases]
    return {
        "root": "ask-ideas-list",
        "heading": _("You could ask"),
        "ideas": [
            {"text": row.text, "ask": row.ask, "href": f"{ask}?{urlencode([('q', row.ask), *chosen])}"}
            for row in questions_suggested(actor=actor, kb_uids=bases or None)
        ],
    }


def composer_context(actor: Actor, asked: AskedWith) -> dict[str, Any]:
    bases = [row.base for row in base_list(actor=actor)]
    chosen = [base for base in bases if base.uid in asked.bases]
    models = chat_models()
    label = _("All knowledge bases")
    if chosen:
        label = chosen[0].name if len(chosen) == 1 else _("%(name)s +%(more)d") % {"name": chosen[0].name, "more": len(chosen) - 1}
    names = {str(model.uid): model.title for model in models}
    return {
        "asked": asked,
        "bases": [{"base": base, "chosen": base.uid in asked.bases} for base in bases],
        "bases_label": label,
        "models": [
            {"id": "", "label": _("The one the base names, else the first"), "chosen": asked.model_id not in {*names, BUILT_IN}},
            *({"id": uid, "label": title, "chosen": uid == asked.model_id} for uid, title in names.items()),
            {"id": BUILT_IN, "label": _("None: quote the sources"), "chosen": asked.model_id == BUILT_IN},
        ]
        if models
        else [],
    }


def session_groups(actor: Actor, query: str, current: str) -> list[dict[str, Any]]:
    """Conversations under the headings of the list: pinned, today, earlier."""
    today = timezone.localdate()
    groups: dict[str, list[dict[str, Any]]] = {}
    for session in session_list(actor=actor, keyword=query)[:LISTED]:
        day = timezone.localdate(session.updated_at)
        heading = _("Pinned") if session.pinned_at else _("Today") if day == today else _("Earlier")
        row = {
            "session": session,
            "title": session.title or _("New conversation"),
            "current": str(session.uid) == current,
            "key": str(session.pk),
        }
        groups.setdefault(heading, []).append(row)
    return [{"heading": heading, "rows": rows} for heading, rows in groups.items()]
