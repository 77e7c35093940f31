"""One question answered outside any conversation: what measurements ask. Nothing is stored and nothing is logged."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass

from apps.chat.answerers.citations import body_of, cited_numbers
from apps.chat.models import Message
from apps.chat.turns.channel import Channel
from apps.chat.turns.lookup import Looked, search_told
from apps.chat.turns.plan import BUILT_IN, Plan
from apps.chat.turns.writing import Writer, choose_model
from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.retrieval.selectors import Decision, Scope, budget_chars

#: How models say, without citing anything, that what they were given does not answer
_DECLINES = re.compile(
    r"未找到|没有找到|找不到|未提及|没有提及|没有提到|未包含|不包含|没有相关|无相关|无法回答|无法确定|无法得知|不知道"
    r"|\bnot found\b|\bno (?:relevant |such )?(?:information|mention|passages?|sources?)\b|\bnothing (?:about|was found)\b"
    r"|\bdo(?:es)?(?: not|n[’']t) (?:contain|mention|say|know|include|provide)\b"
    r"|\b(?:cannot|can[’']t|unable to) (?:answer|find|determine)\b",
    re.IGNORECASE,
)

__all__ = ["BUILT_IN", "CitedSource", "GivenAnswer", "answer_once"]


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A passage an answer cites."""

    number: int
    chunk: Chunk
    document: Document


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """`text`: without the list of pages. `declined`: says that nothing was found, or, of a model, says so and cites nothing.

    `failed`: code of what kept the chosen model, or the search, from answering. Units: milliseconds.
    """

    text: str
    declined: bool
    cited: tuple[CitedSource, ...]
    failed: str
    took_ms: float


def answer_once(*, actor: Actor, base: KnowledgeBase, question: str, model_id: str = BUILT_IN) -> GivenAnswer:
    """What a turn with this question alone would say. Raises: what the search raises beyond what a turn tells."""
    authorize(actor, "chat.ask")
    started = time.perf_counter()
    plan = Plan(
        actor=actor,
        session_pk=0,
        session_uid=uuid.UUID(int=0),
        question_pk=0,
        answer_pk=0,
        answer_uid=uuid.UUID(int=0),
        message=question,
        scope=Scope(kb_uids=(base.uid,)),
        model_id=model_id,
        force=True,
        bases=(base.name,),
    )
    channel = Channel(Message(space_id=base.space_id))
    chosen = choose_model(plan, [])
    looked = Looked(Decision(True, "asked_for"), budget=budget_chars(chosen.row.context_window if chosen.row is not None else None))
    search_told(plan, channel, looked, question, call_id="search-1", gated=chosen.model is None)
    writer = Writer(plan, channel, looked)
    writer.write(chosen)
    told = writer.written
    numbers = cited_numbers(told.content)
    cited = tuple(CitedSource(at, looked.hits[at - 1].chunk, looked.hits[at - 1].document) for at in numbers if at <= len(looked.hits))
    by_model = told.answerer == Message.Answerer.MODEL
    failed = looked.error or (told.reason if told.is_fallback and told.reason != "not_found" else "")
    return GivenAnswer(
        text=body_of(told.content),
        declined=told.reason == "not_found" or (by_model and not cited and (not told.content or bool(_DECLINES.search(told.content)))),
        cited=cited,
        failed=failed,
        took_ms=round((time.perf_counter() - started) * 1000, 1),
    )
