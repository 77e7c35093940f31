"""An answer as it is written, as HTML: the page only puts in place what comes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from apps.chat.models import Message
from apps.chat.services.following import turn_follow
from apps.common.actor import Actor
from apps.portal.asking.marks import answer_html

EVERY_S = 0.12


async def drawn(actor: Actor, message: Message, language: str) -> AsyncIterator[bytes]:
    """Events `stage` (what is being done, in words), `answer` (its HTML so far) and `end`."""
    content, sent, drawn_at = "", "", 0.0
    titles: dict[int, str] = {}
    async with contextlib.aclosing(turn_follow(actor=actor, message=message)) as events:
        async for event in events:
            if event is None:
                yield b": keep-alive\n\n"
                continue
            kind = event["response_type"]
            if kind == "references":
                titles = {number: row["knowledge_title"] for number, row in enumerate(event["knowledge_references"], 1)}
            if kind == "answer":
                content += event["content"]
                if content != sent and (event["done"] or time.monotonic() - drawn_at >= EVERY_S):
                    html = await asyncio.to_thread(_html, message, content, titles, language)
                    sent, drawn_at = content, time.monotonic()
                    yield _frame("answer", {"html": html})
            elif said := _stage(event, language):
                yield _frame("stage", said)
    if content != sent:
        yield _frame("answer", {"html": await asyncio.to_thread(_html, message, content, titles, language)})
    yield _frame("end", {})


def _html(message: Message, content: str, titles: dict[int, str], language: str) -> str:
    with translation.override(language):
        return str(answer_html(message.space_id, message.session.uid, message.uid, content, titles))


def _stage(event: dict[str, Any], language: str) -> dict[str, str] | None:
    with translation.override(language):
        data = event.get("data", {})
        text = {
            "knowledge_search_start": lambda: _("Searching the knowledge bases…"),
            "knowledge_search_done": lambda: _("Found %(count)d passages, writing…") % {"count": data.get("count", 0)},
            "knowledge_search_empty": lambda: _("Nothing fits in the knowledge bases"),
            "knowledge_search_error": lambda: _("The search failed; answering without it"),
            "thinking": lambda: _("The model is thinking…"),
        }.get(event["response_type"])
        if text is None:
            return None
        said = text()
        return {"text": said, "html": render_to_string("portal/_ask_stage.html", {"text": said, "kind": "running"})}


def _frame(name: str, data: dict[str, str]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")
