"""A chat model's answer as it is made, through the official client, and what can go wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.llm.plugins.endpoint_calls import TRANSIENT
from apps.llm.plugins.guard import Guard
from apps.llm.plugins.openai_embedder import retry_after_s

WHOLE_S = 600.0  # an answer takes no longer, however slowly it drips
MAX_CHARS = 200_000


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: str  # JSON as the model wrote it


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer: words, thinking aloud, or at the end what the model wants called, what it used and why it ended."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    finish: str = ""


def stream(body: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Delta]:
    """Deltas of a `/chat/completions` call; `options` as for `endpoint_calls.call`. `<think>` in the text becomes thinking.

    `read_timeout_s` is the longest silence between two pieces. Close the iterator to hang up.
    Raises: TransientError when a retry may help; Unavailable or InvalidInput when it will not. Codes: `model_*` of apps.llm.failures.
    """
    import httpx2
    import openai

    from apps.llm.plugins.guarded_http import deadline, guarded_client

    base, limit_s = options["base_url"].rstrip("/"), float(options.get("read_timeout_s") or 60)
    guard = Guard(bool(options.get("trusted")), tuple(word for word in options.get("allow", "").split(",") if word))
    timeout = httpx2.Timeout(limit_s, connect=min(float(options.get("connect_timeout_s") or 5), limit_s))
    key = options.get("api_key", "")
    try:
        with guarded_client(guard, timeout) as http, deadline(WHOLE_S):
            client = openai.OpenAI(base_url=base, api_key=key or "none", max_retries=0, timeout=timeout, http_client=http)
            with client.chat.completions.create(**body, stream=True) as pieces:
                yield from _deltas(base, pieces)
    except (openai.APITimeoutError, httpx2.TimeoutException) as error:
        raise TransientError(f"{base} was silent for {limit_s:g} s", code="model_timeout") from error
    except openai.APIStatusError as error:
        raise _refused(base, options.get("model", ""), error, key) from error
    except (openai.APIConnectionError, httpx2.TransportError) as error:
        cause = error.__cause__ or error
        if isinstance(cause, InvalidInput) and cause.code == "refused_address":
            raise Unavailable(cause.message, code="model_address") from error
        raise TransientError(f"{base} cannot be reached: {cause}", code="model_unreachable") from error
    except InvalidInput as error:
        if error.code == "refused_address":
            raise Unavailable(error.message, code="model_address") from error
        if error.code == "unknown_host":
            raise TransientError(f"{base} cannot be reached: {error}", code="model_unreachable") from error
        raise
    except (openai.OpenAIError, ValueError) as error:
        raise TransientError(f"{base} answered with something that is no stream of an answer", code="model_bad_answer") from error


def _deltas(base: str, pieces: Any) -> Iterator[Delta]:
    calls: dict[int, dict[str, str]] = {}
    split = _ThinkSplit()
    usage: dict[str, int] = {}
    finish, length, spoke = "", 0, False
    for piece in pieces:
        if getattr(piece, "usage", None) is not None:
            usage = {name: int(getattr(piece.usage, name, 0) or 0) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
        for choice in getattr(piece, "choices", None) or ():
            delta = choice.delta
            finish = choice.finish_reason or finish
            thought = getattr(delta, "reasoning_content", None) or ""
            text, aside = split.feed(getattr(delta, "content", None) or "")
            length += len(text) + len(thought) + len(aside)
            if length > MAX_CHARS:
                raise TransientError(f"{base} answered with more than {MAX_CHARS} characters", code="model_bad_answer")
            for call in getattr(delta, "tool_calls", None) or ():
                held = calls.setdefault(call.index or 0, {"id": "", "name": "", "arguments": ""})
                held["id"] = call.id or held["id"]
                if call.function is not None:
                    held["name"] = call.function.name or held["name"]
                    held["arguments"] += call.function.arguments or ""
            if text or thought or aside:
                spoke = spoke or bool(text.strip())
                yield Delta(text, thought + aside)
    rest, aside = split.close()
    if rest or aside:
        spoke = spoke or bool(rest.strip())
        yield Delta(rest, aside)
    wanted = tuple(
        ToolCall(held["id"] or f"call-{at}", held["name"], held["arguments"]) for at, held in sorted(calls.items()) if held["name"]
    )
    if not spoke and not wanted:
        raise TransientError(f"{base} answered without a text", code="model_bad_answer")
    yield Delta(calls=wanted, usage=usage, finish=finish)


class _ThinkSplit:
    """Tells `<think>...</think>` from the text around it, wherever the pieces are cut."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False

    def feed(self, text: str) -> tuple[str, str]:
        """(text, thinking) that are clear by now."""
        self._held += text
        said = {False: "", True: ""}
        while True:
            tag = "</think>" if self._inside else "<think>"
            before, found, after = self._held.partition(tag)
            if not found:
                break
            said[self._inside] += before
            self._held, self._inside = after, not self._inside
        keep = next((size for size in range(min(len(tag) - 1, len(self._held)), 0, -1) if tag.startswith(self._held[-size:])), 0)
        cut = len(self._held) - keep
        said[self._inside] += self._held[:cut]
        self._held = self._held[cut:]
        return said[False], said[True]

    def close(self) -> tuple[str, str]:
        rest, self._held = self._held, ""
        return ("", rest) if self._inside else (rest, "")


def _refused(base: str, model: str, error: Any, key: str) -> Exception:
    said = str(error.message)[:300]
    if key:
        said = said.replace(key, "[hidden]")  # SECURITY: some endpoints repeat the key they refuse
    status = int(error.status_code)
    if status in TRANSIENT or status >= 500:
        code = "model_rate_limited" if status == 429 else "model_overloaded"
        return TransientError(f"{base} answered {status}: {said}", code=code, retry_after_s=retry_after_s(error.response.headers))
    if status in (400, 413, 422):
        return InvalidInput(f"{base} refused the request ({status}): {said}", field="text", code="model_refused")
    codes = {401: "model_unauthorised", 403: "model_unauthorised", 404: "model_unknown"}
    return Unavailable(f"{base} answered {status} for model {model}: {said}", code=codes.get(status, "model_unavailable"))
