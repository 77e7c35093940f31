"""What becomes of each row of an import, decided for all of them at once before anything is written (contract content 11.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apps.faq.drafts import Draft, fault_of, key_of, without_repetitions
from apps.faq.models import FaqEntry, FaqImportRow, FaqImportRun
from apps.faq.store import draft_of_entry, taken_questions
from apps.knowledge.models import KnowledgeBase, Tag

State = FaqImportRow.State
SHOWN = 80


@dataclass(slots=True)
class Batch:
    """Questions of the rows before: {key: (row number, it is a standard question, standard question of that row)}."""

    questions: dict[str, tuple[int, bool, str]] = field(default_factory=dict)

    def add(self, number: int, draft: Draft) -> None:
        for place, question in enumerate(draft.questions):
            self.questions.setdefault(key_of(question), (number, place == 0, draft.standard_question))


def plan(base: KnowledgeBase, run: FaqImportRun, rows: Sequence[FaqImportRow], tick: Callable[[int], None]) -> None:
    """Give each row its state: failed, skipped, or what is planned for it. Writes nothing.

    `tick` hears the steps done: reading each row, then deciding about it.
    """
    drafts = {row.pk: Draft.from_json(row.draft) if row.draft is not None else None for row in rows}
    append = run.mode == FaqImportRun.Mode.APPEND
    keys: list[str] = []
    for place, each in enumerate(drafts.values()):
        if place % 50 == 0:
            tick(place)
        keys += [key_of(question) for question in each.questions] if each is not None else []
    taken = taken_questions(base, keys) if append else {}
    tags = set(Tag.objects.filter(kb=base).values_list("pk", flat=True))
    numbers = {draft.number for draft in drafts.values() if draft is not None and draft.number is not None}
    used = set(FaqEntry.objects.filter(number__in=numbers).values_list("number", flat=True)) if numbers else set()
    batch = Batch()
    merged: set[int] = set()
    for place, row in enumerate(rows):
        if place % 50 == 0:
            tick(len(rows) + place)
        draft = drafts[row.pk]
        if draft is None:
            fail(row, row.reason or "not_an_entry", row.facts)
            continue
        if not draft.answers and draft.standard_question:
            fail(row, "answers_blank")
            continue
        if fault := fault_of(draft):
            fail(row, fault.code, fault.facts)
            continue
        if draft.tag_id > 0 and draft.tag_id not in tags:
            fail(row, "tag_unknown", {"tag": draft.tag_id})
            continue
        _plan_row(row, draft, batch, taken, used, merged)
    if not append:
        _keep_same(base, [row for row in rows if row.state == State.ADDED])


def as_submitted(row: FaqImportRow) -> FaqImportRow:
    """The row as it was before anything was decided about it: questions a verdict took out are back in, last."""
    if row.state == State.WAITING:
        return row
    draft = submitted_draft(row)
    row.draft, row.entry_ref, row.is_planned, row.is_partial = draft.to_json() if draft is not None else None, None, False, False
    if draft is not None:
        row.reason, row.facts = "", {}
    row.state = State.WAITING
    return row


def submitted_draft(row: FaqImportRow) -> Draft | None:
    """What was understood of a row when it came, with the questions that were taken out since; None when nothing was."""
    draft = Draft.from_json(row.draft) if row.draft is not None else None
    if draft is None or not row.is_partial:
        return draft
    return replace(
        draft,
        similar_questions=(*draft.similar_questions, *row.facts.get("removed_similar", ())),
        negative_questions=(*draft.negative_questions, *row.facts.get("removed_negative", ())),
    )


def fail(row: FaqImportRow, reason: str, facts: dict[str, Any] | None = None) -> None:
    row.state, row.is_planned, row.is_partial, row.reason, row.facts = State.FAILED, False, False, reason, facts or {}


def _plan_row(row: FaqImportRow, draft: Draft, batch: Batch, taken: dict[str, Any], used: set[int], merged: set[int]) -> None:
    number = row.index + 1
    key = key_of(draft.standard_question)
    if key in batch.questions:
        earlier, is_standard, other = batch.questions[key]
        if is_standard:
            fail(row, "duplicate_in_batch", {"row": earlier})
        else:
            fail(row, "question_is_similar", {"other": other[:SHOWN]})
        return
    own = taken.get(key)
    if own is not None and not own.is_standard:
        fail(row, "question_is_similar", {"other": own.entry.standard_question[:SHOWN]})
        return
    target: FaqEntry | None = own.entry if own is not None else None
    draft, removed, against = without_repetitions(draft)
    lost = [text for text in draft.similar_questions if _is_others(key_of(text), batch, taken, target)]
    draft = replace(draft, similar_questions=tuple(text for text in draft.similar_questions if text not in lost))
    removed = (*removed, *lost)
    if target is None and draft.number is not None and draft.number in used:
        fail(row, "number_taken", {"number": draft.number})
        return
    if target is not None:
        final = merge(target, draft)
        if clash := clash_of(final):
            fail(row, "negatives_clash", {"text": clash[:SHOWN], "failure_type": "post_validation"})
            return
        row.entry_ref = target.pk
        row.state = State.SKIPPED if is_same(target, final, draft) else State.MERGED
        row.facts = merge_facts(target, final)
        merged.add(target.pk)
    else:
        row.state = State.ADDED
        row.facts = {}
        if draft.number is not None:
            used.add(draft.number)
    row.is_planned = row.state != State.SKIPPED
    row.draft = draft.to_json()
    row.reason = ""
    if removed or against:
        row.is_partial, row.reason = True, "parts_removed"
        row.facts |= {"count": len(removed) + len(against), "removed_similar": list(removed), "removed_negative": list(against)}
    batch.add(number, draft)


def _is_others(key: str, batch: Batch, taken: dict[str, Any], target: FaqEntry | None) -> bool:
    found = taken.get(key)
    return key in batch.questions or (found is not None and (target is None or found.entry_id != target.pk))


def merge(entry: FaqEntry, draft: Draft) -> Draft:
    """The entry with the row merged into it: questions of both, answers and way of answering of the row; the tag stays."""
    return replace(
        draft,
        standard_question=entry.standard_question,
        similar_questions=_union(entry.similar_questions, draft.similar_questions, {key_of(entry.standard_question)}),
        negative_questions=_union(entry.negative_questions, draft.negative_questions, set()),
        number=entry.number,
    )


def _union(old: list[str], new: tuple[str, ...], known: set[str]) -> tuple[str, ...]:
    found = {key_of(text): text for text in old}
    return (*old, *(text for text in new if key_of(text) not in found and key_of(text) not in known))


def clash_of(draft: Draft) -> str:
    """A negative question that is also one of the entry's own; "" when there is none."""
    own = {key_of(question) for question in draft.questions}
    return next((text for text in draft.negative_questions if key_of(text) in own), "")


def is_same(entry: FaqEntry, final: Draft, draft: Draft) -> bool:
    """Whether merging would change nothing."""
    texts = (
        final.similar_questions == tuple(entry.similar_questions)
        and final.negative_questions == tuple(entry.negative_questions)
        and final.answers == tuple(entry.answers)
    )
    flags = draft.is_enabled in (None, entry.is_enabled) and draft.is_recommended in (None, entry.is_recommended)
    return texts and flags and draft.answer_strategy in (None, entry.answer_strategy)


def merge_facts(entry: FaqEntry, final: Draft) -> dict[str, Any]:
    """What clients are told of a merge (contract content F12, `merge_details`)."""
    return {
        "answer_changed": final.answers != tuple(entry.answers),
        "new_similar_count": len(final.similar_questions) - len(entry.similar_questions),
        "new_negative_count": len(final.negative_questions) - len(entry.negative_questions),
    }


def _keep_same(base: KnowledgeBase, rows: Sequence[FaqImportRow]) -> None:
    """Replacing: an entry whose texts are those of a row stays, and gets only its flags and its tag."""
    known: dict[str, list[FaqEntry]] = {}
    entries = FaqEntry.objects.filter(kb=base, document__deleted_at__isnull=True).select_related("document")
    for entry in entries.prefetch_related("document__tags").order_by("pk"):
        known.setdefault(entry.content_hash, []).append(entry)
    for row in rows:
        draft = Draft.from_json(row.draft or {})
        same = [entry for entry in known.get(draft.content_hash, []) if _texts(draft) == _texts(draft_of_entry(entry))]
        if not same:
            continue
        entry = same[0]
        known[draft.content_hash].remove(entry)
        row.entry_ref = entry.pk
        tags = {tag.name for tag in entry.document.tags.all()} | {tag.pk for tag in entry.document.tags.all()}
        wanted = draft.tag_id or draft.tag_name
        is_kept = is_same(entry, draft, draft) and (not wanted or wanted in tags)
        row.state, row.is_planned = (State.SKIPPED, False) if is_kept else (State.MERGED, True)
        row.facts = {**row.facts, "answer_changed": False, "new_similar_count": 0, "new_negative_count": 0}


def _texts(draft: Draft) -> tuple[Any, ...]:
    return draft.standard_question, draft.similar_questions, draft.negative_questions, draft.answers
