"""What a turn was asked, as plain values: everything its thread needs to know."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from apps.common.actor import Actor
from apps.retrieval.selectors import Scope

BUILT_IN = "extractive"  # as a choice of model: the built-in answerer


@dataclass(frozen=True, slots=True)
class Plan:
    """`scope.kb_uids` None: every base the actor may read. `force`: look it up whatever the rules say. `agentic`: the model may search by
    itself. `title`: what to call the conversation once this is answered, "" to leave its title alone."""

    actor: Actor
    session_pk: int
    session_uid: uuid.UUID
    question_pk: int
    answer_pk: int
    answer_uid: uuid.UUID
    message: str
    scope: Scope
    model_id: str = ""
    force: bool = False
    agentic: bool = False
    title: str = ""
    language: str = ""
    bases: tuple[str, ...] = ()  # names of the bases of the scope
    history: tuple[tuple[str, str], ...] = ()  # (role, text) of what was said before
    extra: dict[str, Any] = field(default_factory=dict)
