"""Adding, changing, testing and removing the models of a space (contract content 8)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.crypto import encrypt
from apps.common.errors import DomainError, InvalidInput, TransientError
from apps.common.events import publish
from apps.common.http import checked_places
from apps.common.policy import authorize
from apps.llm.events import ModelUseAsked
from apps.llm.models import Model
from apps.llm.plugins.guard import REFUSED
from apps.llm.services.embedders import asked
from apps.llm.services.probes import answered, ask

MAX_MODELS = 100
MAX_KEY = 4096
#: field -> (least, most)
NUMBERS: dict[str, tuple[float, float]] = {
    "batch_size": (1, 2048),
    "concurrency": (1, 16),
    "connect_timeout_s": (0.05, 120),
    "read_timeout_s": (0.05, 600),
    "dimension": (0, 8192),
    "context_window": (0, 10_000_000),
}
TEXTS = {"name": 100, "display_name": 100, "description": 500, "provider": 32, "query_prefix": 100, "passage_prefix": 100}
#: What makes other vectors for certain, and what may.
MAKES_OTHERS = ("name", "query_prefix", "passage_prefix", "send_dimension")
MAY_MAKE_OTHERS = ("base_url", "api_key")


@dataclass(frozen=True, slots=True)
class Tested:
    """What a test call found. `changed`: the endpoint gives other vectors than it did before; `said`: the words or scores of the others.

    Units: milliseconds.
    """

    ok: bool
    took_ms: float
    dimension: int = 0
    changed: bool = False
    code: str = ""
    error: str = ""
    sample: tuple[float, ...] = ()
    said: str = ""


def model_create(*, actor: Actor, values: dict[str, Any]) -> Model:
    """A new model of the actor's space; nobody is asked yet, see `model_test`.

    Raises: InvalidInput at the field at fault.
    """
    authorize(actor, "model.write")
    row = Model(space_id=actor.space)
    row.type = _kind(values)
    _fill(row, values)
    row.dimension = row.dimension if row.send_dimension else 0  # found by asking
    with transaction.atomic():
        if Model.objects.count() >= MAX_MODELS:
            raise InvalidInput(_("A space may have at most 100 models. Delete one that is not used."), code="too_many", field="name")
        row.save(force_insert=True)
        audit(actor, "model.created", row, title=row.title, name=row.name, base_url=row.base_url)
    return row


def model_update(*, actor: Actor, model: Model, values: dict[str, Any]) -> Model:
    """The model with the given values; what is left out stays. A changed address is asked whether its vectors are still the same.

    Raises: InvalidInput at the field at fault.
    """
    authorize(actor, "model.write", model)
    if _kind({"source": model.source, **values, "type": values.get("type") or model.type}) != model.type:
        raise InvalidInput(_("A model keeps its type. Add another one instead."), code="type_fixed", field="type")
    with transaction.atomic():
        row = Model.objects.visible_to(actor).select_for_update(of=("self",)).get(pk=model.pk)
        before = {name: getattr(row, name) for name in _FIELDS}
        _fill(row, values)
        changed = [name for name in _FIELDS if getattr(row, name) != before[name]]
        resized = "dimension" in changed and row.send_dimension
        if "dimension" in changed and not row.send_dimension:
            row.dimension = before["dimension"]  # what the endpoint gives is found by asking it
        if resized or any(name in changed for name in MAKES_OTHERS):
            row.revision += 1
            row.probe, row.tested_at = b"", None
            row.dimension = row.dimension if row.send_dimension else 0
        elif any(name in changed for name in MAY_MAKE_OTHERS):
            row.tested_at = None
        row.test_error = "" if changed else row.test_error
        row.save()
        if changed:
            shown = {name: {"before": before[name], "after": getattr(row, name)} for name in changed if name != "api_key"}
            audit(actor, "model.updated", row, title=row.title, changed_fields=changed, changes=shown)
    if changed and row.tested_at is None:
        model_test(actor=actor, model=row)
    return row


def model_key_set(*, actor: Actor, model: Model, api_key: str) -> Model:
    """The model with another API key; "" removes it."""
    return model_update(actor=actor, model=model, values={"api_key": api_key})


def model_delete(*, actor: Actor, model: Model) -> None:
    """Remove a model nobody uses. Raises: InvalidInput naming the bases that use it."""
    authorize(actor, "model.write", model)
    with transaction.atomic():
        Model.objects.visible_to(actor).select_for_update(of=("self",)).filter(pk=model.pk).first()
        if used := model_users(actor=actor, model_id=str(model.uid)):
            raise InvalidInput(
                _("These knowledge bases use the model: %(names)s. Choose another one in their settings first.")
                % {"names": ", ".join(used[:5])},
                code="model_in_use",
                bases=used,
            )
        audit(actor, "model.deleted", model, title=model.title, name=model.name)
        Model.objects.filter(pk=model.pk).delete()


def model_users(*, actor: Actor, model_id: str) -> list[str]:
    """Names of the knowledge bases that use a model."""
    authorize(actor, "model.list")
    question = ModelUseAsked(space_id=actor.space, model_id=model_id)
    publish(question)
    return sorted(question.found)


def model_test(*, actor: Actor, model: Model, texts: Sequence[str] = ()) -> Tested:
    """Ask the endpoint now, whatever is known of it, and keep what it says. Never raises what the endpoint does wrong."""
    authorize(actor, "model.write", model)
    revision, started = model.revision, time.perf_counter()
    try:
        if model.type != Model.Type.EMBEDDING:
            replied = answered(model, texts[0] if texts else "")
            return Tested(ok=True, took_ms=replied.took_ms, said=replied.said)
        found = asked(model, tuple(texts))
    except (TransientError, DomainError) as error:
        return Tested(ok=False, took_ms=(time.perf_counter() - started) * 1000, code=error.code, error=str(error))
    sample = tuple(round(float(value), 6) for value in found.probe[:8])
    return Tested(ok=True, took_ms=found.took_ms, dimension=found.dimension, changed=model.revision != revision, sample=sample)


def model_probe(*, actor: Actor, values: dict[str, Any], model: Model | None = None) -> Tested:
    """The same for values that are not saved; with `model`, what is left out (its key above all) is taken from there.

    Raises: InvalidInput at the field at fault.
    """
    from apps.llm.plugins.openai_embedder import measure
    from apps.llm.services.embedders import row_options

    authorize(actor, "model.write")
    row = Model(space_id=actor.space, type=_kind(values))
    if model is not None and str(values.get("base_url") or model.base_url).rstrip("/") == model.base_url:
        row.api_key = model.api_key  # SECURITY: a stored key never travels to another address than its own
    _fill(row, {"base_url": model.base_url if model else "", **values})
    started = time.perf_counter()
    try:
        if row.type != Model.Type.EMBEDDING:
            replied = ask(row)
            return Tested(ok=True, took_ms=replied.took_ms, said=replied.said)
        found = measure({**row_options(row), "read_timeout_s": "15"})
    except (TransientError, DomainError) as error:
        return Tested(ok=False, took_ms=(time.perf_counter() - started) * 1000, code=error.code, error=str(error))
    return Tested(ok=True, took_ms=found.took_ms, dimension=found.dimension)


_FIELDS = (*TEXTS, *NUMBERS, "base_url", "api_key", "send_dimension")


KINDS = {
    "embedding": Model.Type.EMBEDDING,
    "knowledgeqa": Model.Type.CHAT,
    "chat": Model.Type.CHAT,
    "rerank": Model.Type.RERANK,
    "vllm": Model.Type.VISION,
}


def _kind(values: dict[str, Any]) -> str:
    """The type of a model. Raises: InvalidInput for kinds nothing here uses, and for models this portal would have to download."""
    kind = str(values.get("type") or Model.Type.EMBEDDING)
    if kind.lower() not in KINDS:
        raise InvalidInput(
            _("Models of type %(type)s are not used here.") % {"type": kind[:40]},
            code="unsupported_type",
            field="type",
            known=["KnowledgeQA", "Embedding", "Rerank", "VLLM"],
        )
    if (values.get("source") or "remote") != "remote":
        raise InvalidInput(
            _("Models are not downloaded here. Run the model's own server and add it with source remote."),
            code="unsupported_source",
            field="source",
            known=["remote"],
        )
    return KINDS[kind.lower()]


def _fill(row: Model, values: dict[str, Any]) -> None:
    for name, most in TEXTS.items():
        if name in values:
            setattr(row, name, _text(name, values[name], most, strip=not name.endswith("_prefix")))
    if not row.name:
        raise InvalidInput(_("Write the name of the model as its server spells it."), field="name")
    for name, (low, high) in NUMBERS.items():
        if values.get(name) is not None:
            setattr(row, name, _number(name, values[name], low, high))
    if values.get("send_dimension") is not None:
        row.send_dimension = bool(values["send_dimension"])
    if "base_url" in values or not row.base_url:
        row.base_url = _clean_address(values.get("base_url") or "")
    if "api_key" in values:
        row.api_key = encrypt(_key(values["api_key"]))
    if row.send_dimension and not row.dimension:
        raise InvalidInput(_("Write which size the endpoint is to be asked for."), field="dimension")


def _clean_address(address: str) -> str:
    """The base address of an endpoint. Raises: InvalidInput (bad_url, unknown_host, refused_address) at `base_url`."""
    address = str(address).strip().rstrip("/")
    bad = InvalidInput(_("Write the address of the API, like https://api.example.com/v1."), code="bad_url", field="base_url")
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise bad from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or len(address) > 500:
        raise bad
    if any(ord(sign) < 33 or ord(sign) > 126 for sign in address):
        raise bad
    if parts.username or parts.password:
        raise InvalidInput(
            _("Leave user name and password out of the address; the key has a field of its own."), code="bad_url", field="base_url"
        )
    checked_places(parts.hostname, port, allow=settings.MODEL_ALLOW, refused=REFUSED, field="base_url")
    address = urlunsplit(parts)
    for ending in ("/embeddings", "/chat/completions", "/rerank"):
        address = address.removesuffix(ending)
    return address


def _text(name: str, value: Any, most: int, *, strip: bool) -> str:
    text = str(value or "")
    text = text.strip() if strip else text
    if len(text) > most or "\0" in text:
        raise InvalidInput(_("This may have at most %(max)d characters.") % {"max": most}, field=name, max=most)
    return text


def _number(name: str, value: Any, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InvalidInput(
            _("Write a number from %(least)g to %(most)g.") % {"least": least, "most": most}, field=name, least=least, most=most
        )
    return value if name.endswith("_s") else int(value)


def _key(value: Any) -> str:
    key = str(value or "").strip()
    if len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise InvalidInput(_("An API key holds plain characters only."), field="api_key")
    return key
