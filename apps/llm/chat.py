"""Texts from any endpoint that speaks OpenAI's `/chat/completions`, through the official client.

It connects as the embedder does: only to addresses that were checked, with a deadline, to a bounded answer, and without redirects.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.common.crypto import decrypt
from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.llm.breaker import Breaker
from apps.llm.failures import FAILURES, Failure
from apps.llm.models import Model
from apps.llm.plugins.guard import Guard
from apps.llm.plugins.openai_embedder import retry_after_s

if TYPE_CHECKING:
    from openai import OpenAI

MAX_ANSWER_BYTES = 8 * 1024 * 1024
KEPT = 64
_TRANSIENT = {408, 409, 425, 429}
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.S | re.I)

CHAT_FAILURES: dict[str, Failure] = {
    "chat_timeout": Failure(
        _("No answer"),
        _("The chat model did not answer in time"),
        _("See whether the server is busy or down. If it is only slow, give it more seconds on the page Models."),
    ),
    "chat_unreachable": Failure(
        _("Not reachable"),
        _("The server of the chat model cannot be reached"),
        _("Check the address and the port, and whether the server is running."),
    ),
    "chat_rate_limited": Failure(
        _("Too many requests"),
        _("The chat model asked for a pause: too many requests"),
        _("Try again after a while. If it happens often, raise your quota."),
    ),
    "chat_overloaded": Failure(
        _("Server error"),
        _("The server of the chat model answered with an error of its own"),
        _("Look at the server's log, then try again."),
    ),
    "chat_bad_answer": Failure(
        _("Strange answer"),
        _("The server answered with something that holds no text"),
        _("Check that the address is that of an OpenAI-compatible API; it usually ends in /v1."),
    ),
    "chat_unauthorised": Failure(
        _("Key refused"), _("The server refused the API key of the chat model"), _("Enter a valid key on the page Models.")
    ),
    "chat_model_unknown": Failure(
        _("Unknown model"),
        _("The server does not know this chat model, or there is no such API at the address"),
        _("Check the name of the model as the server spells it, and the address."),
    ),
    "chat_refused": Failure(
        _("Text refused"),
        _("The chat model did not take the text, mostly because it is longer than the model can read"),
        _("Choose a model that reads more."),
    ),
    "chat_address": Failure(
        _("Address refused"),
        _("The address of the chat model is in a private network, which model endpoints may not reach"),
        _("Ask the operator of the portal to allow it (KB_MODEL_ALLOW), or use a public address."),
    ),
    "chat_unavailable": Failure(
        _("No text"), _("The chat model cannot be used"), _("Test it on the page Models; the test says what is wrong.")
    ),
}


class Message(TypedDict):
    role: Literal["system", "user", "assistant"]
    content: str


def chat_failure(code: str) -> Failure:
    """The words of a code; those of `chat_unavailable` when it is not on the list."""
    return CHAT_FAILURES.get(code) or (FAILURES[code] if code == "secret_unreadable" else CHAT_FAILURES["chat_unavailable"])


@dataclass(frozen=True)
class ChatModel:
    """A chat endpoint; threads may share it. Units: seconds for the timeouts."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    guard: Guard = Guard()
    breaker: Breaker = field(default_factory=Breaker, compare=False, repr=False)

    @cached_property
    def _client(self) -> OpenAI:
        import httpx2
        from openai import OpenAI

        from apps.llm.plugins.guarded_http import guarded_client

        timeout = httpx2.Timeout(self.read_timeout_s, connect=self.connect_timeout_s)
        client = guarded_client(self.guard, timeout)
        return OpenAI(base_url=self.base_url, api_key=self.api_key or "none", max_retries=0, timeout=timeout, http_client=client)

    def complete(self, messages: Sequence[Message], *, max_tokens: int, temperature: float = 0.2) -> str:
        """What the model says, without its thinking aloud, stripped; never empty.

        Raises: TransientError (NotYet while the endpoint rests) if a retry may help; Unavailable or InvalidInput if it will not.
        """
        with self.breaker.call():
            body = self._ask({"model": self.model, "messages": list(messages), "max_tokens": max_tokens, "temperature": temperature})
        return self._text(body)

    def _ask(self, asked: dict[str, Any]) -> Any:
        import httpx2
        import openai

        from apps.llm.plugins.guarded_http import deadline

        client, limit_s = self._client, self.read_timeout_s
        try:
            with deadline(limit_s), client.chat.completions.with_streaming_response.create(**asked) as answer:
                return json.loads(self._read(answer))
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            raise TransientError(f"{self.base_url} did not answer in {limit_s:g} s", code="chat_timeout") from error
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except (openai.APIConnectionError, httpx2.TransportError) as error:
            if isinstance(error.__cause__, InvalidInput):
                raise self._not_there(error.__cause__) from error
            raise TransientError(f"{self.base_url} cannot be reached: {error.__cause__ or error}", code="chat_unreachable") from error
        except InvalidInput as error:
            raise self._not_there(error) from error
        except (ValueError, openai.APIResponseValidationError) as error:
            raise TransientError(f"{self.base_url} answered with something that is not JSON", code="chat_bad_answer") from error

    def _not_there(self, error: InvalidInput) -> Exception:
        """What the check of the address said: a name may be back in a minute, a private network is not."""
        if error.code == "unknown_host":
            return TransientError(f"{self.base_url} cannot be reached: {error}", code="chat_unreachable")
        return Unavailable(error.message, code="chat_address")

    def _read(self, answer: Any) -> bytes:
        body = bytearray()
        for part in answer.iter_bytes():
            body += part
            if len(body) > MAX_ANSWER_BYTES:
                raise TransientError(f"{self.base_url} answered with more than {MAX_ANSWER_BYTES} bytes", code="chat_bad_answer")
        return bytes(body)

    def _refused(self, error: Any) -> Exception:
        status, said = error.status_code, str(error.message)[:300]
        if self.api_key:
            said = said.replace(self.api_key, "[hidden]")  # SECURITY: some endpoints repeat the key they refuse
        told = f"{self.base_url} answered {status}: {said}"
        if status in _TRANSIENT or status >= 500:
            code = "chat_rate_limited" if status == 429 else "chat_overloaded"
            return TransientError(told, code=code, retry_after_s=retry_after_s(error.response.headers))
        if status in (400, 413, 422):
            return InvalidInput(told, code="chat_refused")
        codes = {401: "chat_unauthorised", 403: "chat_unauthorised", 404: "chat_model_unknown"}
        return Unavailable(told, code=codes.get(status, "chat_unavailable"))

    def _text(self, body: Any) -> str:
        try:
            text = body["choices"][0]["message"]["content"]
        except (KeyError, IndexError, TypeError):
            text = None
        said = _THOUGHT.sub("", text).strip() if isinstance(text, str) else ""
        if not said:
            raise TransientError(f"{self.base_url} answered without a text", code="chat_bad_answer")
        return said


_made: OrderedDict[Any, ChatModel] = OrderedDict()
_lock = threading.Lock()


def chat_row(model_id: str) -> Model | None:
    """The chat model of the open space with this id, if there is one."""
    try:
        uid = uuid.UUID(model_id)
    except ValueError:
        return None
    return Model.objects.filter(uid=uid, type=Model.Type.CHAT).first()


def chat_model(model_id: str) -> ChatModel | None:
    """The chat model of that id in the open space, made once per process; None when there is none.

    Raises: Unavailable (secret_unreadable) when its key cannot be read.
    """
    row = chat_row(model_id) if model_id else None
    if row is None:
        return None
    options = (row.base_url, row.name, decrypt(row.api_key), row.connect_timeout_s, row.read_timeout_s)
    key = (row.uid, *options, tuple(settings.MODEL_ALLOW))
    with _lock:
        if key not in _made:
            _made[key] = ChatModel(*options, guard=Guard(allow=tuple(settings.MODEL_ALLOW)))
            while len(_made) > KEPT:
                _made.popitem(last=False)
        _made.move_to_end(key)
        return _made[key]
