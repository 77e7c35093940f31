"""The work of a turn from its question to `complete`, in its own thread."""

from __future__ import annotations

import logging
import time
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _

from apps.chat.answerers.citations import cited_numbers, supports
from apps.chat.models import ChatSession, Citation, Message
from apps.chat.turns.channel import LEASE, Channel, Stopped
from apps.chat.turns.lookup import Looked, citations_of, look_up, references_told
from apps.chat.turns.plan import Plan
from apps.chat.turns.writing import Chosen, Writer, choose_model
from apps.common.errors import DomainError, TransientError
from apps.common.scope import space_scope
from apps.knowledge.models import KnowledgeBase
from apps.retrieval.selectors import Decision, budget_chars

log = logging.getLogger(__name__)


def answer(plan: Plan, channel: Channel) -> None:
    """Write the answer of a plan: every way this can end leaves a settled message and a closed stream of events."""
    with space_scope(plan.actor.space, "turn"), translation.override(plan.language or None):
        _Turn(plan, channel).run()


class _Turn:
    def __init__(self, plan: Plan, channel: Channel) -> None:
        self.plan, self.channel = plan, channel
        self.started = time.monotonic()
        self.looked = Looked(Decision(False, "no_base"))
        self.writer = Writer(plan, channel, self.looked)
        self.citations: list[Citation] = []
        self.steps = 0

    def run(self) -> None:
        ids = {"session_id": str(self.plan.session_uid), "assistant_message_id": str(self.plan.answer_uid)}
        self.channel.emit("agent_query", done=True, **ids, data=ids)
        state, reason = Message.State.DONE, ""
        try:
            self._work()
            reason = self.writer.written.reason
        except Stopped:
            state, reason = Message.State.STOPPED, "stopped"
            self.channel.emit("stop", "Generation stopped by user", done=True, data={"reason": "user_requested"})
        except (DomainError, TransientError, DatabaseError) as error:
            state, reason = Message.State.FAILED, getattr(error, "code", "database")[:32]
            log.exception("a turn failed")
            self._failed(_("The answer could not be written. Nothing is lost; try again."))
        except BaseException:
            # whatever it was: nobody may be left waiting for a stream that will not go on
            self._failed(_("The answer could not be written. Nothing is lost; try again."))
            self._settle(Message.State.FAILED, "internal")
            raise
        if state == Message.State.DONE:
            took = self._took()
            self.channel.emit("complete", done=True, data={"total_steps": max(1, self.steps), "total_duration_ms": took})
            if self.plan.title:
                self.channel.emit(
                    "session_title", self.plan.title, done=True, data={"session_id": ids["session_id"], "title": self.plan.title}
                )
        self._settle(state, reason)

    def _work(self) -> None:
        self.channel.check()
        chosen, budget = self._model()
        self.looked = look_up(self.plan, self.channel, budget, gated=chosen.model is None)
        self.steps = 1 if self.looked.decision.use else 0
        self.channel.check()
        self.writer = Writer(self.plan, self.channel, self.looked)
        references_told(self.plan, self.channel, self.looked)
        self.writer.write(chosen)
        self.steps += self.writer.written.searches
        self.writer.done(self._took())

    def _model(self) -> tuple[Chosen, int]:
        bases = KnowledgeBase.objects.visible_to(self.plan.actor)
        if self.plan.scope.kb_uids is not None:
            bases = bases.filter(uid__in=self.plan.scope.kb_uids)
        named = [model_id for model_id in bases.order_by("pk").values_list("summary_model_id", flat=True)[:50] if model_id]
        chosen = choose_model(self.plan, named)
        return chosen, budget_chars(chosen.row.context_window if chosen.row is not None else None)

    def _took(self) -> int:
        return round((time.monotonic() - self.started) * 1000)

    def _failed(self, text: str) -> None:
        self.channel.emit("error", text, done=True, data={"stage": "answer", "error": text})

    def _settle(self, state: str, reason: str) -> None:
        """Store what became of the answer and the last events, in one short transaction."""
        told = self.writer.written
        self.citations = citations_of(self.plan, self.looked.hits)  # a model may have searched for more
        passages = {citation.number: citation.content for citation in self.citations}
        cited = set(cited_numbers(told.content))
        for citation in self.citations:
            citation.is_cited = citation.number in cited
        values: dict[str, Any] = {
            "state": state,
            "reason": reason,
            "content": told.content,
            "search": self.looked.summary(),
            "support": [support.as_row() for support in supports(told.content, passages)],
            "dropped_markers": told.dropped[:100],
            "answerer": told.answerer,
            "model_id": told.model_id,
            "model_name": told.model_name,
            "usage": told.usage,
            "is_fallback": told.is_fallback,
            "took_ms": self._took(),
            "first_ms": round((told.first_at - self.started) * 1000) if told.first_at is not None else None,
            "lease_until": None,
        }
        if told.dropped:
            log.warning("an answer cited what was not among its sources: %s", ", ".join(told.dropped[:20]))
        with transaction.atomic():
            Citation.objects.bulk_create(self.citations, ignore_conflicts=True)
            Message.objects.filter(pk=self.plan.answer_pk, state=Message.State.RUNNING).update(**values, updated_at=Now())
            if self.plan.title:
                ChatSession.objects.filter(pk=self.plan.session_pk, is_titled=False).update(title=self.plan.title[:200], is_titled=True)
            self.channel.store()


__all__ = ["LEASE", "answer"]
