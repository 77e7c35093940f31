"""One question of a run: searched, answered where that is wanted, measured."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from django.db.models import Q

from apps.chat.services.once import GivenAnswer, answer_once
from apps.common.actor import Actor
from apps.evaluation import measures
from apps.evaluation.models import EvaluationResult, EvaluationRun, Question
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.retrieval.selectors import Options, Passage, Scope, search

LOOKED_AT = 20  # passages asked for, of which the first ten documents count
_BLANK = re.compile(r"\s+")


def measure(*, actor: Actor, run: EvaluationRun, base: KnowledgeBase, question: Question) -> EvaluationResult:
    """The result of one question, not stored yet. Raises: what the search raises."""
    started = time.perf_counter()
    hits = search(actor=actor, query=question.text, scope=Scope(kb_uids=(base.uid,)), options=Options(limit=LOOKED_AT)).hits
    spent = (time.perf_counter() - started) * 1000
    wanted, missing = expected_documents(base, question.documents)
    result = EvaluationResult(
        space_id=run.space_id, run=run, question=question, index=question.index, missing=missing, search_ms=round(spent, 1)
    )
    by_passage = bool(question.passages)
    rights = [_is_right(question, wanted, hit.chunk.content, hit.document.pk) for hit in hits]
    result.found = [_found(hit, right) for hit, right in zip(hits[: measures.DEPTH], rights, strict=False)]
    figures: dict[str, float | None] = dict.fromkeys(measures.RETRIEVAL)
    if by_passage:
        figures |= measures.retrieval(_passage_gains(question.passages, hits), len(question.passages))
    elif question.documents:
        figures |= measures.retrieval(_document_gains(wanted, hits), len(wanted) + len(missing))
    if run.model_id:
        given = answer_once(actor=actor, base=base, question=question.text, model_id=run.model_id)
        result.answer, result.answer_ms, result.error = given.text, given.took_ms, given.failed[:64]
        result.cited = [
            {"document": str(source.document.uid), "title": source.document.title, "chunk": str(source.chunk.uid), "right": right}
            for source, right in _cited(question, wanted, given)
        ]
        figures |= _answer_figures(question, given, result.cited)
    result.metrics = {name: round(value, 4) if value is not None else None for name, value in figures.items()}
    result.is_bad = figures["recall"] == 0 or figures.get("decision") == 0 or (figures.get("overlap") or 1.0) < 0.5
    return result


def expected_documents(base: KnowledgeBase, names: Sequence[str]) -> tuple[dict[int, str], list[str]]:
    """({document: the name it was expected by}, names no document of the base has). A name may be an id, a title or a file name."""
    found: dict[int, str] = {}
    missing = []
    rows = Document.objects.filter(kb=base, deleted_at__isnull=True)
    for name in names:
        uid = as_uuid(name)
        stem = name.rpartition("/")[2]
        named = (
            Q(uid=uid) if uid is not None else Q(title=name) | Q(file_name=name) | Q(file_name=stem, folder_path=name.rpartition("/")[0])
        )
        pk = rows.filter(named).order_by("pk").values_list("pk", flat=True).first()
        if pk is None:
            missing.append(name)
        else:
            found[pk] = name
    return found, missing


def _found(hit: Passage, right: bool) -> dict[str, Any]:
    return {
        "document": str(hit.document.uid),
        "title": hit.document.title,
        "chunk": str(hit.chunk.uid),
        "score": round(hit.score, 4),
        "right": right,
    }


def _folded(text: str) -> str:
    return _BLANK.sub("", text).lower()


def _is_right(question: Question, wanted: dict[int, str], content: str, document_pk: int) -> bool:
    if question.passages:
        folded = _folded(content)
        return any(_folded(passage) in folded for passage in question.passages)
    return document_pk in wanted


def _document_gains(wanted: dict[int, str], hits: Sequence[Passage]) -> list[int]:
    """Documents in the order of their best passage."""
    return [int(pk in wanted) for pk in dict.fromkeys(hit.document.pk for hit in hits)]


def _passage_gains(passages: Sequence[str], hits: Sequence[Passage]) -> list[int]:
    left = {_folded(passage) for passage in passages}
    gains = []
    for hit in hits:
        folded = _folded(hit.chunk.content)
        new = {passage for passage in left if passage in folded}
        left -= new
        gains.append(len(new))
    return gains


def _cited(question: Question, wanted: dict[int, str], given: GivenAnswer) -> list[tuple[Any, bool | None]]:
    """Each cited source with whether it is one of those expected; None where none was named."""
    names_sources = bool(question.documents or question.passages)
    return [
        (source, _is_right(question, wanted, source.chunk.content, source.document.pk) if names_sources else None) for source in given.cited
    ]


def _answer_figures(question: Question, given: GivenAnswer, cited: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    figures: dict[str, float | None] = dict.fromkeys(measures.ANSWER)
    figures["decision"] = float(given.declined != question.is_answerable)
    judged = [row["right"] for row in cited if row["right"] is not None]
    if judged:
        figures["citation_precision"] = sum(judged) / len(judged)
    if question.answers:
        text = "" if given.declined else re.sub(r"\[\d{1,4}\]", " ", given.text)
        figures |= measures.answer(text, question.answers)
    return figures
