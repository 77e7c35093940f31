"""What an entry may be: texts cleaned, limits kept, questions compared in normal form (contract content 3.2, 11.4)."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput
from apps.common.text import utf16_length
from apps.faq.models import FIRST_NUMBER, FaqEntry
from apps.retrieval.services import question_key

MAX_TEXT = 8000  # of a question and of each answer, in UTF-16 units
MAX_VARIANTS = 1000
MAX_TAG = 128
MAX_ROWS = 5000
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BREAK = re.compile(r"\r\n?")
_URL = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+", re.I)


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry as somebody wants it. None: not said, so a new entry gets the default and an old one keeps what it has."""

    standard_question: str
    similar_questions: tuple[str, ...] = ()
    negative_questions: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    answer_strategy: str | None = None
    tag_id: int = 0
    tag_name: str = ""
    is_enabled: bool | None = None
    is_recommended: bool | None = None
    number: int | None = None

    @property
    def questions(self) -> tuple[str, ...]:
        return (self.standard_question, *self.similar_questions)

    @property
    def content_hash(self) -> str:
        return content_hash(self.standard_question, self.similar_questions, self.negative_questions, self.answers)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Draft:
        lists = {name: tuple(data[name]) for name in ("similar_questions", "negative_questions", "answers")}
        return cls(**{**data, **lists})


@dataclass(slots=True)
class Fault:
    """What is wrong with a text of an entry: a code of `apps.faq.reasons` and what its sentence names."""

    code: str
    field: str
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)


@lru_cache(maxsize=20_000)
def key_of(question: str) -> str:
    """A question in normal form, of a length an index can hold."""
    return hashlib.sha256(question_key(question).encode("utf-8", "surrogatepass")).hexdigest()


def normal_form(text: str) -> str:
    """A text as the content hash sees it: as `question_key`, and without addresses."""
    bare = _URL.sub("", text).strip()
    return question_key(bare) if bare else ""


def content_hash(standard: str, similar: Iterable[str], negative: Iterable[str], answers: Iterable[str]) -> str:
    """SHA-256 over the texts in normal form; the order of lists does not matter."""
    parts = [normal_form(standard), *("\x1f".join(sorted(map(normal_form, texts))) for texts in (similar, negative, answers))]
    return hashlib.sha256("\x1e".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def clean_text(raw: str) -> str:
    return _CONTROL.sub("", _BREAK.sub("\n", raw)).strip()


def clean_texts(raw: Sequence[Any] | None) -> tuple[str, ...]:
    """Trimmed, without blanks and exact repetitions."""
    texts = (clean_text(text) for text in raw or () if isinstance(text, str))
    return tuple(dict.fromkeys(text for text in texts if text))


def draft_of(values: Mapping[str, Any]) -> Draft:
    """The draft a payload describes, cleaned but not checked."""
    return Draft(
        standard_question=clean_text(str(values.get("standard_question") or "")),
        similar_questions=clean_texts(values.get("similar_questions")),
        negative_questions=clean_texts(values.get("negative_questions")),
        answers=clean_texts(values.get("answers")),
        answer_strategy=values.get("answer_strategy") or None,
        tag_id=int(values.get("tag_id") or 0),
        tag_name=" ".join(str(values.get("tag_name") or "").split()),
        is_enabled=values.get("is_enabled"),
        is_recommended=values.get("is_recommended"),
        number=values.get("number"),
    )


def fault_of(draft: Draft) -> Fault | None:
    """The first thing an entry may not be by itself, whatever else is in the base; None when it is well."""
    if not draft.standard_question:
        return Fault("question_blank", "standard_question")
    for name, texts in (
        ("standard_question", (draft.standard_question,)),
        ("similar_questions", draft.similar_questions),
        ("negative_questions", draft.negative_questions),
        ("answers", draft.answers),
    ):
        if len(texts) > MAX_VARIANTS:
            return Fault("too_many", name, {"max": MAX_VARIANTS})
        for text in texts:
            if utf16_length(text) > MAX_TEXT:
                code = "answer_too_long" if name == "answers" else "question_too_long"
                return Fault(code, name, {"max": MAX_TEXT, "text": text[:40], "length": utf16_length(text)})
    if draft.answer_strategy not in (None, *FaqEntry.Strategy.values):
        return Fault("strategy_unknown", "answer_strategy", {"value": str(draft.answer_strategy)[:40]})
    if len(draft.tag_name) > MAX_TAG:
        return Fault("tag_too_long", "tag_name", {"max": MAX_TAG})
    if draft.number is not None and not 0 < draft.number < FIRST_NUMBER:
        return Fault("number_range", "id", {"max": FIRST_NUMBER - 1})
    return None


def repetition_of(draft: Draft) -> Fault | None:
    """The first question of an entry that another one of it says already."""
    seen = {question_key(draft.standard_question)}
    for text in draft.similar_questions:
        key = question_key(text)
        if key in seen:
            return Fault("similar_repeated", "similar_questions", {"text": text[:80]})
        seen.add(key)
    against: set[str] = set()
    for text in draft.negative_questions:
        key = question_key(text)
        if key in seen:
            return Fault("negative_is_positive", "negative_questions", {"text": text[:80]})
        if key in against:
            return Fault("negative_repeated", "negative_questions", {"text": text[:80]})
        against.add(key)
    return None


def without_repetitions(draft: Draft) -> tuple[Draft, tuple[str, ...], tuple[str, ...]]:
    """(the draft without questions it says twice, similar ones taken out, negative ones taken out), for imports."""
    seen = {question_key(draft.standard_question)}
    similar: list[str] = []
    out: list[str] = []
    against: list[str] = []
    dropped: list[str] = []
    for text in draft.similar_questions:
        key = question_key(text)
        (out if key in seen else similar).append(text)
        seen.add(key)
    kept: set[str] = set()
    for text in draft.negative_questions:
        key = question_key(text)
        (dropped if key in seen or key in kept else against).append(text)
        kept.add(key)
    return replace(draft, similar_questions=tuple(similar), negative_questions=tuple(against)), tuple(out), tuple(dropped)


def checked(draft: Draft) -> Draft:
    """Raises: InvalidInput at the field at fault."""
    if fault := fault_of(draft) or repetition_of(draft):
        from apps.faq.reasons import sentence

        raise InvalidInput(sentence(fault.code, fault.facts), code=fault.code, field=fault.field, api_code=1000, **fault.facts)
    return draft


def no_answers() -> InvalidInput:
    return InvalidInput(_("Give at least one answer."), code="answers_blank", field="answers", api_code=1000)


@dataclass(frozen=True, slots=True)
class IncomingRow:
    """A submitted row: as it came, what was understood of it, or why nothing could be (a code of `apps.faq.reasons`)."""

    raw: Any
    draft: Draft | None = None
    reason: str = ""
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)


def too_many_rows(count: int) -> InvalidInput:
    words = _("%(count)s rows are too many: at most %(max)s at a time. Split the file.") % {"count": f"{count:,}", "max": f"{MAX_ROWS:,}"}
    return InvalidInput(words, field="entries", code="too_many_rows", api_code=1000, max=MAX_ROWS)
