"""Why a row of an import, or an entry, could not be taken: closed list of codes, each with its sentence in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _

REASONS: dict[str, Any] = {
    "question_blank": _("The standard question is blank."),
    "answers_blank": _("There is no answer."),
    "question_too_long": _("A question has %(length)s characters; at most %(max)s are allowed."),
    "answer_too_long": _("An answer has %(length)s characters; at most %(max)s are allowed."),
    "too_many": _("At most %(max)s questions or answers of a kind."),
    "strategy_unknown": _("The way of answering must be `all` or `random`, not “%(value)s”."),
    "tag_too_long": _("The tag has more than %(max)s characters."),
    "tag_unknown": _("There is no tag %(tag)s in this base."),
    "number_range": _("An id that is brought along must be between 1 and %(max)s."),
    "number_taken": _("The id %(number)s is taken already."),
    "not_an_entry": _("This is not an entry: send an object with a question and answers."),
    "bad_boolean": _("“%(value)s” in the column “%(column)s” is neither yes nor no."),
    "similar_repeated": _("The similar question “%(text)s” repeats another question of this entry."),
    "negative_is_positive": _("The negative question “%(text)s” is also a question of this entry."),
    "negative_repeated": _("The negative question “%(text)s” is there twice."),
    "question_taken": _("“%(text)s” is already a question of the entry “%(other)s”."),
    "duplicate_in_batch": _("Row %(row)s has the same standard question."),
    "question_is_similar": _("This is already a similar question of the entry “%(other)s”."),
    "negatives_clash": _("After merging, “%(text)s” would be both a question and a negative question of the entry."),
    "parts_removed": _("Taken without %(count)s of its questions, which other entries have already."),
    "changed_meanwhile": _("The base was changed while the import was running, and no longer takes this row."),
}


def sentence(code: str, facts: Mapping[str, Any]) -> str:
    """The sentence of a reason; the code itself for one that is not known (any more)."""
    words = REASONS.get(code)
    if words is None:
        return code
    try:
        return str(words) % facts
    except (KeyError, TypeError, ValueError):
        return str(words)
