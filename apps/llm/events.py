"""What models ask of higher contexts and tell them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModelUseAsked:
    """Which knowledge bases use a model of their space; a listener puts their names into `found`. Heard inside the space's scope."""

    space_id: int
    model_id: str
    found: list[str] = field(default_factory=list)
