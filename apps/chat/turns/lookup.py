"""The search of a turn: decision, events, the passages an answer is given, and the row of the retrieval log."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError
from django.utils.translation import gettext as _

from apps.chat.answerers.evidence import Source, judge
from apps.chat.models import Citation
from apps.chat.turns.channel import Channel
from apps.chat.turns.plan import Plan
from apps.common.errors import DomainError, TransientError
from apps.knowledge.models import passage_hash
from apps.llm.services.embedders import PACKAGED
from apps.retrieval.models import RetrievalLog
from apps.retrieval.selectors import (
    Decision,
    Found,
    KnowledgeHit,
    Passage,
    decide,
    is_general,
    parse_references,
    question_of,
    search_knowledge_base,
    turn_logged,
)

log = logging.getLogger(__name__)

TOOL = "knowledge_search"
QUERY_TOOL = "query_knowledge_base"
TOOL_BUDGET = 4000
#: What a search may fail with, and the turn goes on without it: also an unreadable file and a fault of our own.
FAULTS = (
    DomainError,
    TransientError,
    DatabaseError,
    OSError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
LOADED = 8  # contract 2.5: `match_type` of what was named, not found


@dataclass(slots=True)
class Looked:
    """What a turn found: hits numbered from 1 in their order; `error`: code of what the search failed with."""

    decision: Decision
    hits: list[KnowledgeHit] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    found: Found | None = None
    error: str = ""
    budget: int = 0
    took_ms: float = 0.0
    rejected: int = 0  # passages that were found and cannot answer

    def sources(self) -> list[Source]:
        """The hits as answerers see them."""
        packaged = self.found is not None and self.found.results is not None and _is_packaged(self.found.results.legs)
        return [
            Source(
                number,
                hit.chunk.content,
                exact=hit.passage is not None and hit.passage.exact and bool(hit.passage.matched_terms),
                nearness=_nearness(hit.passage) if packaged else None,
                explicit=hit.hit_reason == "explicit",
            )
            for number, hit in enumerate(self.hits, 1)
        ]

    def compared(self) -> list[str]:
        """Passages of the search that are not among the hits."""
        taken = {hit.chunk.pk for hit in self.hits}
        results = self.found.results.hits if self.found is not None and self.found.results is not None else []
        return [passage.chunk.content for passage in results if passage.chunk.pk not in taken]

    def summary(self) -> dict[str, Any]:
        """What the page says of it later (`Message.search`)."""
        results = self.found.results if self.found is not None else None
        legs = (
            {name: {key: str(leg[key]) for key in ("status", "code", "reason") if leg.get(key)} for name, leg in results.legs.items()}
            if results
            else {}
        )
        return {
            "searched": self.decision.use,
            "rule": self.decision.rule,
            "bases": results.bases if results else 0,
            "found": len(results.hits) if results else len(self.hits),
            "used": len(self.hits),
            "took_ms": round(self.took_ms, 1),
            "missing": self.missing,
            "error": self.error,
            "legs": legs,
            "budget_chars": self.budget,
        }


def _gate(looked: Looked, query: str) -> None:
    """Take away what cannot answer."""
    question = question_of(query)
    if is_general(question) and any(hit.hit_reason in ("kb_meta", "recent_synthesis") for hit in looked.hits):
        return
    if not judge(question, looked.sources(), looked.compared()).enough:
        looked.rejected, looked.hits = len(looked.hits), []


def _is_packaged(legs: dict[str, dict[str, Any]]) -> bool:
    return str(legs.get("vector", {}).get("space", "")).startswith(f"{PACKAGED}:")


def _nearness(passage: Passage | None) -> float | None:
    return passage.vector_leg.score if passage is not None and passage.vector_leg is not None else None


def look_up(plan: Plan, channel: Channel, budget: int, *, gated: bool) -> Looked:
    """Decide, search, tell both, log it. A search that fails is told and the turn goes on without.

    `gated`: what cannot answer counts as not found, since the built-in answerer would quote anything; a model judges by itself.
    """
    looked = _decided(plan, channel, budget)
    decision = looked.decision
    if decision.use:
        search_told(plan, channel, looked, plan.message, call_id="search-1", gated=gated)
    injected = sum(len(hit.snippet) for hit in looked.hits)
    turn_logged(
        actor=plan.actor,
        door=RetrievalLog.Door.ASK,
        query=plan.message,
        scope=plan.scope,
        decision=decision,
        found=looked.found,
        budget_chars=budget,
        injected_chars=injected,
        error=looked.error,
        rejected=bool(looked.rejected),
    )
    return looked


def _decided(plan: Plan, channel: Channel, budget: int) -> Looked:
    """Whether this turn is looked up. Rules that fail count as a search that failed: nothing is looked up, and that is told."""
    try:
        decision = decide(plan.message, True)
    except FAULTS as error:
        log.exception("the rules of a turn failed")
        looked = Looked(Decision(False, "undecided"), error=_code(error), budget=budget)
        failure_told(channel, looked)
        return looked
    if plan.force and not decision.use:
        decision = Decision(True, "asked_for")
    return Looked(decision, budget=budget)


def _code(error: Exception) -> str:
    """What the log and the event call a failure."""
    if isinstance(error, DatabaseError):
        return "database"
    return str(getattr(error, "code", "") or ("unreadable" if isinstance(error, OSError) else "internal"))


def failure_told(channel: Channel, looked: Looked) -> str:
    """Say that the search failed; what was said."""
    text = _("The search failed; the question was answered without it.")
    channel.emit("knowledge_search_error", text, data={"message": text, "code": looked.error})
    return text


def search_told(plan: Plan, channel: Channel, looked: Looked, query: str, *, call_id: str, gated: bool) -> None:
    """Search and tell it: the events of a plain chat stream and the contract's tool call, both true."""
    started = time.perf_counter()
    channel.emit("knowledge_search_start", data={"query": query})
    channel.emit(
        "tool_call",
        f"Calling tool: {TOOL}",
        data={"tool_name": TOOL, "arguments": {"search_source": "knowledge", "query": query}, "tool_call_id": call_id},
    )
    base = {"tool_name": TOOL, "tool_call_id": call_id}
    try:
        found = searched(plan, query, looked.budget)
    except FAULTS as error:
        looked.error = _code(error)
        looked.took_ms = (time.perf_counter() - started) * 1000
        log.warning("the search of a turn failed: %s", error, exc_info=True)
        text = failure_told(channel, looked)
        channel.emit("tool_result", data={**base, "success": False, "error": text, "duration_ms": round(looked.took_ms)})
        return
    looked.found, looked.hits, looked.missing = found, found.hits, found.missing
    if gated:
        _gate(looked, query)
    looked.took_ms = (time.perf_counter() - started) * 1000
    candidates = len(found.results.hits) if found.results is not None else len(found.hits)
    told = {
        **base,
        "success": True,
        "error": "",
        "duration_ms": round(looked.took_ms),
        "count": len(looked.hits),
        "doc_count": len({hit.document.pk for hit in looked.hits}),
        "web_count": 0,
        "search_source": "knowledge",
        "candidate_count": candidates,
        "output": "\n".join(f"[{number}] {hit.title}" for number, hit in enumerate(looked.hits, 1)),
    }
    channel.emit("tool_result", data=told)
    paths = [hit.path for hit in looked.hits]
    if paths:
        channel.emit("knowledge_search_done", data={"count": len(paths), "paths": paths, "missing": found.missing})
    else:
        channel.emit("knowledge_search_empty", data={"count": 0, "paths": [], "missing": found.missing})


def searched(plan: Plan, query: str, budget: int) -> Found:
    """What the bases of the turn hold about a text. Raises: what `search` raises, also when no leg could answer."""
    found = search_knowledge_base(
        actor=plan.actor,
        query=query,
        scope=plan.scope,
        explicit_refs=parse_references(query),
        total_budget_chars=budget,
    )
    legs = found.results.legs if found.results is not None else {}
    if not found.hits and legs and all(leg["status"] in ("failed", "unavailable") for leg in legs.values()):
        failed = next((leg for leg in legs.values() if leg["status"] == "failed"), None)
        if failed is not None:
            raise TransientError(str(failed.get("reason", "")), code=str(failed.get("code") or "search_failed"))
    return found


def references_told(plan: Plan, channel: Channel, looked: Looked) -> None:
    """All that was found so far, as references; nothing where there is nothing."""
    if looked.hits:
        rows = [reference_row(citation) for citation in citations_of(plan, looked.hits)]
        channel.emit("references", knowledge_references=rows, data={"references": rows})


def tool_told(plan: Plan, channel: Channel, looked: Looked, query: str, call_id: str) -> str:
    """A search the model asked for: told, logged, its passages added to those of the turn; what the model is given of it."""
    started = time.perf_counter()
    base = {"tool_name": QUERY_TOOL, "tool_call_id": call_id}
    channel.emit("tool_call", f"Calling tool: {QUERY_TOOL}", data={**base, "arguments": {"query": query}})
    found, error, lines = None, "", []
    try:
        found = searched(plan, query, TOOL_BUDGET)
    except FAULTS as failure:
        error = _code(failure)
        log.warning("a search a model asked for failed: %s", failure, exc_info=True)
    spent = {"duration_ms": round((time.perf_counter() - started) * 1000)}
    if found is not None:
        numbers = {hit.chunk.pk: number for number, hit in enumerate(looked.hits, 1)}
        for hit in found.hits:
            if hit.chunk.pk not in numbers:
                looked.hits.append(hit)
                numbers[hit.chunk.pk] = len(looked.hits)
            lines.append(f"[{numbers[hit.chunk.pk]}] {hit.title}\n{hit.snippet}")
        shown = {"count": len(found.hits), "doc_count": len({hit.document.pk for hit in found.hits}), "search_source": "knowledge"}
        channel.emit("tool_result", data={**base, "success": True, "error": "", **spent, **shown})
    else:
        channel.emit("error", _("The search failed."), data={**base, "success": False, "error": error, **spent})
    turn_logged(
        actor=plan.actor,
        door=RetrievalLog.Door.TOOL,
        query=query,
        scope=plan.scope,
        decision=Decision(True, "tool"),
        found=found,
        budget_chars=TOOL_BUDGET,
        injected_chars=sum(map(len, lines)),
        error=error,
    )
    if found is None:
        return "The search failed. Answer from what you have."
    return "\n\n".join(lines) or "Nothing was found."


def citations_of(plan: Plan, hits: list[KnowledgeHit], *, first: int = 1) -> list[Citation]:
    """The hits as rows of the answer, not stored yet: what the marks open, whatever becomes of the sources."""
    return [_citation(plan, number, hit) for number, hit in enumerate(hits, first)]


def _citation(plan: Plan, number: int, hit: KnowledgeHit) -> Citation:
    chunk, document = hit.chunk, hit.document
    return Citation(
        space_id=plan.actor.space,
        message_id=plan.answer_pk,
        number=number,
        chunk_uid=chunk.uid,
        document_uid=document.uid,
        kb_uid=document.kb.uid,
        document_title=document.title,
        document_version=document.version,
        revision=chunk.content_revision,
        content_hash=chunk.content_hash or passage_hash(chunk.content),
        content=chunk.content,
        positions=chunk.positions,
        heading_path=chunk.heading_path,
        hit_reason=hit.hit_reason,
        score=hit.score,
        match_type=hit.passage.match_type if hit.passage is not None else LOADED,
        row={
            "chunk_index": chunk.chunk_index,
            "start_at": chunk.start_at,
            "end_at": chunk.end_at,
            "chunk_type": chunk.chunk_type,
            "parent_chunk_id": str(chunk.parent.uid) if chunk.parent else "",
            "image_info": chunk.image_info,
            "knowledge_filename": document.file_name,
            "knowledge_source": document.source,
            "knowledge_channel": document.channel,
            "path": hit.path,
            "kb_name": document.kb.name,
            "snippet": hit.snippet,
        },
    )


def reference_row(citation: Citation, content: str | None = None) -> dict[str, Any]:
    """A citation as the contract's reference object (2.5)."""
    row = citation.row
    return {
        "id": str(citation.chunk_uid),
        "content": citation.content if content is None else content,
        "knowledge_id": str(citation.document_uid),
        "knowledge_base_id": str(citation.kb_uid),
        "chunk_index": row.get("chunk_index", 0),
        "knowledge_title": citation.document_title,
        "start_at": row.get("start_at", 0),
        "end_at": row.get("end_at", 0),
        "seq": row.get("chunk_index", 0),
        "score": citation.score,
        "match_type": citation.match_type,
        "sub_chunk_id": [],
        "metadata": {
            "number": str(citation.number),
            "hit_reason": citation.hit_reason,
            "revision": str(citation.revision),
            "path": row.get("path", ""),
            **({"heading_path": " > ".join(citation.heading_path)} if citation.heading_path else {}),
        },
        "chunk_type": row.get("chunk_type", "text"),
        "parent_chunk_id": row.get("parent_chunk_id", ""),
        "image_info": row.get("image_info", ""),
        "knowledge_filename": row.get("knowledge_filename", ""),
        "knowledge_source": row.get("knowledge_source", ""),
        "knowledge_channel": row.get("knowledge_channel", ""),
    }
