"""The passages an entry is found by, as the settings of its base have them (contract content 3, `faq_config`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.faq.drafts import Draft
from apps.knowledge.models import Chunk, Document, KnowledgeBase, passage_hash

QUESTION_ONLY, QUESTION_ANSWER = "question_only", "question_answer"
COMBINED, SEPARATE = "combined", "separate"


def index_mode(base: KnowledgeBase) -> str:
    """Whether answers are part of what an entry is found by."""
    return QUESTION_ONLY if _config(base).get("index_mode") == QUESTION_ONLY else QUESTION_ANSWER


def question_mode(base: KnowledgeBase) -> str:
    """Whether the questions of an entry are found together, or each by itself."""
    return SEPARATE if _config(base).get("question_index_mode") == SEPARATE else COMBINED


def _config(base: KnowledgeBase) -> Mapping[str, Any]:
    found = base.options.get("faq_config")
    return found if isinstance(found, dict) else {}


def content_of(draft: Draft) -> str:
    """What is read where the entry is found or quoted: its question and every answer."""
    return "\n\n".join([draft.standard_question, *draft.answers])


def passages_of(base: KnowledgeBase, draft: Draft) -> list[tuple[str, dict[str, Any]]]:
    """(content, metadata) of each passage; the first one knows the whole entry and is what is shown."""
    answers = list(draft.answers) if index_mode(base) == QUESTION_ANSWER else []
    separate = question_mode(base) == SEPARATE
    groups = [(question,) for question in draft.questions] if separate else [draft.questions]
    made = []
    for place, questions in enumerate(groups):
        facts: dict[str, Any] = {"indexed": "\n".join([*questions, *answers]), "question": questions[0], "is_separate": separate}
        if place == 0:
            facts |= {
                "questions": list(draft.questions),
                "negatives": list(draft.negative_questions),
                "answers": list(draft.answers),
                "answer_strategy": draft.answer_strategy or "all",
            }
        made.append((content_of(draft) if place == 0 else questions[0], {"faq": facts}))
    return made


def chunks_of(document: Document, base: KnowledgeBase, draft: Draft) -> list[Chunk]:
    """Unsaved rows of these passages."""
    return [
        Chunk(
            space_id=base.space_id,
            kb=base,
            document=document,
            chunk_index=place,
            chunk_type=Chunk.Type.FAQ,
            content=content,
            content_hash=passage_hash(content),
            start_at=0,
            end_at=len(content),
            metadata=metadata,
        )
        for place, (content, metadata) in enumerate(passages_of(base, draft))
    ]
