"""Making and changing single entries. A question that is in the base already is refused; only imports merge."""

from __future__ import annotations

from dataclasses import replace

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.jobs.service import enqueue
from apps.common.policy import authorize
from apps.faq.drafts import Draft, checked, clean_texts, key_of, no_answers
from apps.faq.models import FaqEntry, FaqIndexRun, FaqQuestion
from apps.faq.reasons import sentence
from apps.faq.selectors.entries import check_faq
from apps.faq.store import draft_of_entry, entries_create, entry_rewrite, tags_set, taken_questions
from apps.ingestion.services import embed_start
from apps.knowledge.models import KnowledgeBase, Tag
from apps.knowledge.selectors import tag_get
from apps.knowledge.services import pairs_container, tag_create

UNCATEGORIZED = "未分类"
FAQ_INDEX = "faq_index"
SHOWN = 120


def entry_create(*, actor: Actor, base: KnowledgeBase, draft: Draft) -> FaqEntry:
    """A new entry; without a tag it gets the default one (contract content F4).

    Raises: InvalidInput at the field at fault; NotFound for an unknown `tag_id`; Conflict when the same question came in at this moment.
    """
    authorize(actor, "faq.write", base)
    check_faq(base)
    if not draft.standard_question:
        checked(draft)
    if not draft.answers:
        raise no_answers()
    checked(draft)
    _check_taken(base, draft)
    try:
        with transaction.atomic():
            tag = tag_get(actor=actor, base=base, tag_id=draft.tag_id) if draft.tag_id > 0 else None
            tag = tag or tag_named(actor=actor, base=base, name=draft.tag_name or UNCATEGORIZED)
            (entry,) = entries_create(base, [(draft, tag)], actor.user_id)
            vectors_follow(actor=actor, base=base)
            _record(actor, "faq.created", entry)
    except IntegrityError:
        raise _clash(base, draft) from None
    return entry


def entry_update(*, actor: Actor, base: KnowledgeBase, entry: FaqEntry, draft: Draft, expected_version: int | None = None) -> FaqEntry:
    """The entry with all of its texts replaced; the tag is the draft's or none, flags that are not said stay (contract content F5).

    Raises: InvalidInput at the field at fault; NotFound for an unknown `tag_id`; Conflict with the current texts when `expected_version`
    is not the current one, or when a question was taken at this moment.
    """
    authorize(actor, "faq.write", base)
    if not draft.answers:
        raise no_answers()
    checked(draft)
    _check_taken(base, draft, entry)
    try:
        with transaction.atomic():
            entry = _locked(entry, expected_version)
            tag = tag_get(actor=actor, base=base, tag_id=draft.tag_id) if draft.tag_id > 0 else None
            before = draft_of_entry(entry)
            entry_rewrite(base, entry, draft)
            tags_set(base, {entry.pk: tag})
            vectors_follow(actor=actor, base=base)
            after = draft_of_entry(entry)
            _record(actor, "faq.updated", entry, changes=_changes(before, after))
    except IntegrityError:
        raise _clash(base, draft) from None
    return entry


def entry_extend(*, actor: Actor, base: KnowledgeBase, entry: FaqEntry, similar: list[str]) -> FaqEntry:
    """The entry with more similar questions; those it has already are left out (contract content F6).

    Raises: InvalidInput when another entry has one of them.
    """
    authorize(actor, "faq.write", base)
    known = {key_of(question) for question in (entry.standard_question, *entry.similar_questions)}
    fresh = {key: text for text in clean_texts(similar) if (key := key_of(text)) not in known}
    if not fresh:
        return entry
    draft = draft_of_entry(entry)
    draft = checked(replace(draft, similar_questions=(*draft.similar_questions, *fresh.values())))
    _check_taken(base, draft, entry)
    try:
        with transaction.atomic():
            entry = _locked(entry, entry.version)
            before = draft_of_entry(entry)
            entry_rewrite(base, entry, draft)
            vectors_follow(actor=actor, base=base)
            _record(actor, "faq.updated", entry, changes=_changes(before, draft_of_entry(entry)))
    except IntegrityError:
        raise _clash(base, draft) from None
    return entry


def entries_reindex(*, actor: Actor, base: KnowledgeBase) -> FaqIndexRun | None:
    """Start making the passages of every entry anew after what they are made of was changed; None when it is under way already.

    Runs in the caller's transaction.
    """
    authorize(actor, "faq.write", base)
    try:
        with transaction.atomic():
            run = FaqIndexRun.objects.create(space_id=base.space_id, kind=FAQ_INDEX, kb_ref=base.pk, progress_unit="entries")
    except IntegrityError:
        return None  # it looks at the settings again before it ends
    enqueue(run)
    return run


def tag_named(*, actor: Actor, base: KnowledgeBase, name: str) -> Tag:
    """The tag of this name, made when the base has none. Raises: InvalidInput for a name that cannot be."""
    found = Tag.objects.visible_to(actor).filter(kb=base, name=name).first()
    if found is not None:
        return found  # type: ignore[no-any-return]
    try:
        with transaction.atomic():
            return tag_create(actor=actor, base=base, name=name)
    except Conflict:
        return Tag.objects.visible_to(actor).get(kb=base, name=name)  # type: ignore[no-any-return]


def vectors_follow(*, actor: Actor, base: KnowledgeBase) -> None:
    """Words are in the index at once; vectors are made in the background. Runs in the caller's transaction."""
    embed_start(pairs_container(actor=actor, base=base), {"trigger": "faq"})


def _locked(entry: FaqEntry, expected: int | None) -> FaqEntry:
    row = FaqEntry.objects.select_related("kb", "document").select_for_update(of=("self",)).get(pk=entry.pk)
    if expected is not None and row.version != expected:
        raise Conflict(
            _("Someone changed this entry in the meantime. Compare theirs with yours and save again."),
            code="revision_conflict",
            current_version=row.version,
            standard_question=row.standard_question,
            similar_questions=row.similar_questions,
            negative_questions=row.negative_questions,
            answers=row.answers,
        )
    return row  # type: ignore[no-any-return]


def _check_taken(base: KnowledgeBase, draft: Draft, own: FaqEntry | None = None) -> None:
    keys = {key_of(question): question for question in draft.questions}
    for key, row in taken_questions(base, keys).items():
        if own is None or row.entry_id != own.pk:
            raise _taken(draft, keys[key], row)
    if draft.number is not None and FaqEntry.objects.filter(number=draft.number).exclude(pk=own.pk if own else 0).exists():
        facts = {"number": draft.number}
        raise InvalidInput(sentence("number_taken", facts), code="number_taken", field="id", api_code=1000)


def _taken(draft: Draft, question: str, row: FaqQuestion) -> InvalidInput:
    facts = {"text": question[:SHOWN], "other": row.entry.standard_question[:SHOWN]}
    field = "standard_question" if question == draft.standard_question else "similar_questions"
    return InvalidInput(sentence("question_taken", facts), code="question_taken", field=field, api_code=1000, **facts)


def _clash(base: KnowledgeBase, draft: Draft) -> Conflict:
    """Two requests wanted the same question at the same moment, and the other one was first."""
    rows = taken_questions(base, map(key_of, draft.questions))
    other = next(iter(rows.values()), None)
    words = _("The same question was added at this moment. Reload the list.")
    return Conflict(words, code="question_taken", field="standard_question", other=other.entry.standard_question[:SHOWN] if other else None)


def _changes(before: Draft, after: Draft) -> dict[str, dict[str, object]]:
    names = ("standard_question", "similar_questions", "negative_questions", "answers", "answer_strategy", "is_enabled", "is_recommended")
    return {
        name: {"before": getattr(before, name), "after": getattr(after, name)}
        for name in names
        if getattr(before, name) != getattr(after, name)
    }


def _record(actor: Actor, action: str, entry: FaqEntry, changes: dict[str, dict[str, object]] | None = None) -> None:
    audit(
        actor,
        action,
        entry.document,
        target_type="faq_entry",
        target_id=str(entry.seq_id),
        title=entry.standard_question[:SHOWN],
        changed_fields=list(changes) if changes else None,
        changes=changes,
    )
