"""Questions a passage answers: added by people or written by the model of the base; whoever asks one finds the passage
(contract knowledge 7.6).

They live in the passage's metadata. Each remembers the revision of the text it was written for: one of an earlier text is possibly stale.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.knowledge.models import Chunk
from apps.knowledge.rules.pictures import without_references
from apps.knowledge.services.asking import MODEL_ERRORS, ask, model_of, told
from apps.knowledge.services.chunks import locked_passage, reindex_passage

MAX_QUESTION = 500
MAX_QUESTIONS = 50
DEFAULT_COUNT, MAX_COUNT = 3, 10
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)、．]|[QＱ问]\d{0,2}[:：])\s*")

Question = dict[str, Any]


def questions_of(chunk: Chunk) -> list[Question]:
    """The questions of a passage: {id, question, content_revision}, in their order."""
    found = (chunk.metadata or {}).get("generated_questions") if isinstance(chunk.metadata, dict) else None
    return [row for row in found if isinstance(row, dict) and row.get("question")] if isinstance(found, list) else []


def question_put(*, actor: Actor, chunk: Chunk, question: str, question_id: str = "") -> Question:
    """The question that was added, or changed where `question_id` names one; the same question twice is there once.

    Raises: InvalidInput for a blank or overlong question, an unknown id, a passage of another kind, or one question too many.
    """
    authorize(actor, "chunk.write", chunk)
    text = _clean(question)
    with transaction.atomic():
        chunk = locked_passage(chunk)
        rows = questions_of(chunk)
        made = {"id": question_id or uuid.uuid4().hex, "question": text, "content_revision": chunk.content_revision}
        if question_id:
            at = _place(rows, question_id)
            if rows[at] == made:
                return made
            rows[at] = made
        else:
            if same := next((row for row in rows if row["question"] == text), None):
                return same
            if len(rows) >= MAX_QUESTIONS:
                raise _bad(_("A passage may have at most %(max)d questions. Delete one first.") % {"max": MAX_QUESTIONS})
            rows.append(made)
        _keep(actor, chunk, rows, "question_updated" if question_id else "question_added")
    return made


def questions_regenerate(*, actor: Actor, chunk: Chunk, config: dict[str, Any] | None = None) -> list[Question]:
    """Questions written by the chat model of the base, in place of all there were; as many as `config`, else the base, says (3 unless set,
    at most 10).

    Raises: InvalidInput (no_chat_model, what is wrong with the model, or the passage changed while it wrote).
    """
    authorize(actor, "chunk.write", chunk)
    _check_kind(chunk)
    config = config or chunk.kb.options.get("question_generation_config") or {}
    try:
        texts = questions_draft(chunk, config)
    except MODEL_ERRORS as error:
        raise told(error) from error
    with transaction.atomic():
        revision, chunk = chunk.content_revision, locked_passage(chunk)
        if chunk.content_revision != revision:
            raise _bad(_("The passage was changed while the questions were written. Generate them again."), code="passage_changed")
        rows = [{"id": uuid.uuid4().hex, "question": text, "content_revision": revision} for text in texts]
        _keep(actor, chunk, rows, "questions_generated")
    return rows


def question_delete(*, actor: Actor, chunk: Chunk, question_id: str) -> None:
    """Raises: InvalidInput when the passage has no such question."""
    authorize(actor, "chunk.write", chunk)
    with transaction.atomic():
        chunk = locked_passage(chunk)
        rows = questions_of(chunk)
        rows.pop(_place(rows, question_id))
        _keep(actor, chunk, rows, "question_deleted")


def questions_draft(chunk: Chunk, config: dict[str, Any]) -> list[str]:
    """What the model of the base thinks people would ask whom this passage answers; nothing is stored. Raises: as a chat model."""
    model = model_of(chunk.kb)
    count = config.get("question_count")
    count = min(MAX_COUNT, max(1, count)) if isinstance(count, int) and not isinstance(count, bool) else DEFAULT_COUNT
    request = (
        f"Write {count} different questions that people would type who look for what this text says, each answered by the text alone. "
        "Use the text's own names and codes. Answer with a JSON array of strings."
    )
    if wish := str(config.get("custom_instructions") or "").strip():
        request += f"\nThe owner of the knowledge base adds: {wish}"
    heading = " > ".join(chunk.heading_path)
    text = without_references(chunk.content)
    said = ask(model, request, f"{heading}\n{text}" if heading else text, max_tokens=120 * count + 100)
    return _listed(said, count)


def _listed(said: str, count: int) -> list[str]:
    """The questions in what a model said: a JSON array as it was asked for, or else a line each."""
    start, end = said.find("["), said.rfind("]")
    found: Any = None
    if 0 <= start < end:
        try:
            found = json.loads(said[start : end + 1])
        except ValueError:
            found = None
    if not isinstance(found, list):
        found = [_BULLET.sub("", line) for line in said.splitlines() if line.rstrip().endswith(("?", "？"))]
    texts = [" ".join(item.split())[:MAX_QUESTION] for item in found if isinstance(item, str) and item.strip()]
    if not texts:
        raise _bad(_("The chat model answered without a question. Try again, or write them by hand."), code="model_bad_answer")
    return list(dict.fromkeys(texts))[:count]


def _clean(question: str) -> str:
    text = " ".join(question.split())
    if not text:
        raise _bad(_("Write a question."), field="question")
    if len(text) > MAX_QUESTION:
        raise _bad(_("A question may have at most %(max)d characters.") % {"max": MAX_QUESTION}, field="question", max=MAX_QUESTION)
    return text


def _place(rows: list[Question], question_id: str) -> int:
    for at, row in enumerate(rows):
        if row.get("id") == question_id:
            return at
    raise _bad(_("This passage has no such question any more."), field="question_id")


def _check_kind(chunk: Chunk) -> None:
    if chunk.chunk_type != Chunk.Type.TEXT:
        raise _bad(_("Only text passages have questions."))


def _keep(actor: Actor, chunk: Chunk, rows: list[Question], how: str) -> None:
    """Store the questions; the index follows, the text and its revision stay."""
    _check_kind(chunk)
    changes = {"questions": {"before": _texts(questions_of(chunk)), "after": _texts(rows)}}
    chunk.metadata = {**(chunk.metadata or {}), "generated_questions": rows, "generated_questions_revision": chunk.content_revision}
    chunk.save(update_fields=["metadata"])  # `updated_at` says when the text was written
    audit(
        actor,
        "knowledge.updated",
        chunk.document,
        target_type="chunk",
        target_id=str(chunk.uid),
        title=chunk.document.title,
        changed_fields=["questions"],
        changes=changes,
        mode=how,
        count=len(rows),
    )
    reindex_passage(chunk)


def _texts(rows: list[Question]) -> list[str]:
    return [str(row["question"]) for row in rows]


def _bad(message: Any, **details: Any) -> InvalidInput:
    return InvalidInput(message, api_code=1000, **details)
