"""Texts from the chat and vision models of a space: one answer at a time, behind a breaker for each endpoint."""

from __future__ import annotations

import base64
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from apps.common.errors import TransientError
from apps.llm.breaker import Breaker
from apps.llm.models import Model
from apps.llm.plugins.endpoint_calls import call
from apps.llm.plugins.endpoint_stream import Delta, ToolCall, stream
from apps.llm.selectors import model_row
from apps.llm.services.probes import call_options

__all__ = ["ChatModel", "Delta", "Message", "ToolCall", "chat_model", "chat_model_known", "chat_models"]

KEPT = 64
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.S | re.I)


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str | list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A chat endpoint with the options of `endpoint_calls.call`; threads may share it."""

    options: Mapping[str, str] = field(repr=False)
    breaker: Breaker = field(compare=False, repr=False)

    def complete(self, messages: Sequence[Message], *, max_tokens: int, temperature: float = 0.2) -> str:
        """What the model says, without its thinking aloud, stripped; never empty.

        Raises: TransientError (NotYet while the endpoint rests) if a retry may help; Unavailable or InvalidInput if it will not. The codes
        are the `model_*` of apps.llm.failures.
        """
        asked = {"model": self.options["model"], "messages": list(messages), "max_tokens": max_tokens, "temperature": temperature}
        with self.breaker.call():
            body, _took_ms = call("/chat/completions", {**asked, "stream": False}, self.options)
            return self._text(body)

    def stream(
        self, messages: Sequence[Mapping[str, Any]], *, max_tokens: int, temperature: float = 0.2, tools: Sequence[Mapping[str, Any]] = ()
    ) -> Iterator[Delta]:
        """What the model says as it says it, its thinking apart; the last piece tells what it wants called and what it used.

        Raises: as `complete`, between two pieces.
        """
        asked: dict[str, Any] = {"model": self.options["model"], "messages": list(messages), "max_tokens": max_tokens}
        asked |= {"temperature": temperature, **({"tools": list(tools)} if tools else {})}
        with self.breaker.call():
            yield from stream(asked, self.options)

    def _text(self, body: Any) -> str:
        try:
            text = body["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        said = _THOUGHT.sub("", text).strip() if isinstance(text, str) else ""
        if not said:
            raise TransientError(f"{self.options['base_url']} answered without a text", code="model_bad_answer")
        return said


_breakers: OrderedDict[tuple[str, str], Breaker] = OrderedDict()
_lock = threading.Lock()


def picture_message(request: str, picture: bytes, media_type: str) -> Message:
    """What a vision model is asked about a picture, which travels inside the request."""
    address = f"data:{media_type};base64,{base64.b64encode(picture).decode()}"
    parts: list[dict[str, Any]] = [{"type": "text", "text": request}, {"type": "image_url", "image_url": {"url": address}}]
    return {"role": "user", "content": parts}


def chat_model_known(model_id: str) -> bool:
    """Whether the open space has a chat model of this id."""
    return bool(model_id) and model_row(model_id, Model.Type.CHAT) is not None


def chat_models() -> list[Model]:
    """The chat models of the open space, oldest first."""
    return list(Model.objects.filter(type=Model.Type.CHAT).order_by("created_at", "pk"))


def chat_model(model_id: str) -> ChatModel | None:
    """The chat model of that id in the open space; None when there is none.

    Raises: Unavailable (secret_unreadable) when its key cannot be read.
    """
    return _model(model_id, Model.Type.CHAT)


def vision_model(model_id: str) -> ChatModel | None:
    """The vision model of that id in the open space, for messages of `picture_message`; None when there is none.

    Raises: Unavailable (secret_unreadable) when its key cannot be read.
    """
    return _model(model_id, Model.Type.VISION)


def _model(model_id: str, kind: str) -> ChatModel | None:
    row = model_row(model_id, kind) if model_id else None
    return ChatModel(call_options(row), _breaker_of(row)) if row is not None else None


def _breaker_of(row: Model) -> Breaker:
    """One for each endpoint and its key: what is put right is asked again at once."""
    key = (str(row.uid), f"{row.base_url} {row.name} {row.api_key}")
    with _lock:
        made = _breakers.setdefault(key, Breaker())
        _breakers.move_to_end(key)
        while len(_breakers) > KEPT:
            _breakers.popitem(last=False)
        return made
