"""Asking chat, rerank and vision models whether they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.conf import settings
from django.utils import timezone

from apps.common.crypto import decrypt
from apps.common.errors import DomainError, TransientError
from apps.llm.models import Model
from apps.llm.plugins.endpoint_calls import Answered, ask_chat, ask_rerank, ask_vision
from apps.llm.services.embedders import ASK_S

ASKERS: dict[str, Callable[[Mapping[str, str], str], Answered]] = {
    Model.Type.CHAT: ask_chat,
    Model.Type.VISION: ask_vision,
    Model.Type.RERANK: ask_rerank,
}


def call_options(row: Model) -> dict[str, str]:
    """A model of a space as options of `apps.llm.plugins.endpoint_calls.call`. Raises: Unavailable when its key cannot be read."""
    return {
        "base_url": row.base_url,
        "api_key": decrypt(row.api_key),
        "model": row.name,
        "connect_timeout_s": str(row.connect_timeout_s),
        "read_timeout_s": str(row.read_timeout_s),
        "allow": ",".join(settings.MODEL_ALLOW),
    }


def ask(row: Model, text: str = "") -> Answered:
    """What the model answers to a small question of its kind, within ASK_S. Raises: as `call`."""
    return ASKERS[row.type]({**call_options(row), "read_timeout_s": str(min(row.read_timeout_s, ASK_S))}, text)


def answered(row: Model, text: str = "") -> Answered:
    """The same, with the row remembering when it answered and how fast, or what was wrong."""
    try:
        found = ask(row, text)
    except (TransientError, DomainError) as error:
        Model.objects.filter(pk=row.pk).update(test_error=error.code[:32])
        raise
    row.tested_at, row.test_ms, row.test_error = timezone.now(), found.took_ms, ""
    row.save(update_fields=["tested_at", "test_ms", "test_error"])
    return found
