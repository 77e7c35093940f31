"""Question sets are made whole and deleted whole; nothing changes one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.jobs.models import LIVE
from apps.common.policy import authorize
from apps.evaluation.files import Draft
from apps.evaluation.models import EvaluationRun, Question, QuestionSet
from apps.knowledge.models import Chunk, Document, KnowledgeBase
from apps.knowledge.services import questions_of

MAX_NAME = 120
DRAWN = 100
_SENTENCE = re.compile(r"[^。！？!?\n]{16,200}[。！？!?.]?")
_MARKUP = re.compile(r"[|#*`\[\]<>]|!\[|\d+\.\d+\.\d+")


def set_create(*, actor: Actor, name: str, questions: Sequence[Draft], file_name: str = "") -> QuestionSet:
    """A new set of checked questions. Raises: InvalidInput for its name or without questions; Conflict when the name is taken."""
    authorize(actor, "evaluation.manage")
    name = " ".join(name.replace("\0", "").split())
    if not name or len(name) > MAX_NAME:
        raise InvalidInput(_("Give the set a name of at most 120 characters."), field="name")
    if not questions:
        raise InvalidInput(_("A set needs at least one question."), field="questions", code="no_rows")
    try:
        with transaction.atomic():
            made = QuestionSet.objects.create(
                space_id=actor.space, name=name, file_name=file_name[:255], size=len(questions), creator_id=actor.user_id
            )
            Question.objects.bulk_create(
                [
                    Question(
                        space_id=actor.space,
                        question_set=made,
                        index=index,
                        text=draft.text,
                        documents=list(draft.documents),
                        passages=list(draft.passages),
                        answers=list(draft.answers),
                    )
                    for index, draft in enumerate(questions)
                ],
                batch_size=500,
            )
            audit(actor, "evaluation.set_created", made, target_type="question_set", title=name, count=len(questions))
    except IntegrityError:
        raise Conflict(_("There is a question set of this name already. Choose another name."), field="name", code="name_taken") from None
    return made


def set_draw(*, actor: Actor, base: KnowledgeBase, name: str, size: int = DRAWN) -> QuestionSet:
    """A set made from the base itself: of documents spread over it one question each that its own passage answers.

    The question is one kept with a passage where there is one, else a sentence of it: it tells whether what is there is found at all.
    Raises: InvalidInput when the base holds nothing to ask about; as `set_create`.
    """
    authorize(actor, "evaluation.manage")
    pks = list(
        Document.objects.filter(kb=base, deleted_at__isnull=True, enabled=True, chunk_count__gt=0)
        .order_by("pk")
        .values_list("pk", flat=True)
    )
    step = max(1, len(pks) // size)
    drafts: dict[str, Draft] = {}
    for pk in pks[::step][:size]:
        draft = _drawn(pk)
        if draft is not None:
            drafts.setdefault(draft.text, draft)
    if not drafts:
        words = _("“%(name)s” holds no text to ask about yet. Wait until its documents are ready, or upload a question set.")
        raise InvalidInput(words % {"name": base.name}, field="knowledge_base_id", code="nothing_to_ask")
    return set_create(actor=actor, name=name, questions=list(drafts.values()))


def _drawn(document_pk: int) -> Draft | None:
    chunks = Chunk.objects.filter(document_id=document_pk, is_enabled=True).select_related("document").order_by("chunk_index", "pk")[:5]
    for chunk in chunks:
        uid = str(chunk.document.uid)
        for question in questions_of(chunk):
            return Draft(question["question"], documents=(uid,))
    for chunk in chunks:
        sentences = [found.group().strip() for found in _SENTENCE.finditer(chunk.content)]
        plain = [sentence for sentence in sentences if not _MARKUP.search(sentence) and len(sentence) >= 16]
        if plain:
            best = max(plain, key=len)
            return Draft(best, documents=(str(chunk.document.uid),), answers=(best,))
    return None


def set_delete(*, actor: Actor, question_set: QuestionSet) -> int:
    """Delete a set with its runs; how many runs went. Raises: Conflict while one of them is going on."""
    authorize(actor, "evaluation.manage", question_set)
    with transaction.atomic():
        if EvaluationRun.objects.filter(question_set=question_set, state__in=LIVE).exists():
            raise Conflict(_("A run of this set is going on. Stop it first."), code="run_live")
        count = EvaluationRun.objects.filter(question_set=question_set).count()
        audit(actor, "evaluation.set_deleted", question_set, target_type="question_set", title=question_set.name, count=question_set.size)
        question_set.delete()
    return count
