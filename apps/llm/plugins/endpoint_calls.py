"""One JSON call to an OpenAI-compatible endpoint of a chat, vision or rerank model, and what can be wrong with it."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.llm.plugins.guard import Guard
from apps.llm.plugins.openai_embedder import retry_after_s

MAX_ANSWER_BYTES = 4 * 1024 * 1024
TRANSIENT = {408, 409, 425, 429}
GREETING = "Reply with one word: ready"
PICTURE_QUESTION = "Which colour has this picture? Reply with one word."
RERANK_QUESTION = "How is the pump primed?"
RERANK_TEXTS = ("Fill the pump with water before use.", "The office is closed on Sundays.")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a model gave: `said` for people, `body` as it came. Units: milliseconds."""

    took_ms: float
    said: str
    body: Any


def call(path: str, body: Mapping[str, Any], options: Mapping[str, str]) -> tuple[Any, float]:
    """(the decoded answer, milliseconds) of a POST below `base_url`.

    `options`: `base_url`, `model`, and optionally `api_key`, `connect_timeout_s`, `read_timeout_s`, `allow`, `trusted` as for embedders.

    Raises: TransientError when a retry may help; Unavailable or InvalidInput when it will not. Codes: `model_*` of apps.llm.failures.
    """
    import httpx2

    from apps.llm.plugins.guarded_http import deadline, guarded_client

    base, limit_s = options["base_url"].rstrip("/"), float(options.get("read_timeout_s") or 60)
    guard = Guard(bool(options.get("trusted")), tuple(word for word in options.get("allow", "").split(",") if word))
    key = options.get("api_key", "")
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    timeout = httpx2.Timeout(limit_s, connect=min(float(options.get("connect_timeout_s") or 5), limit_s))
    started = time.perf_counter()
    try:
        with (
            guarded_client(guard, timeout) as client,
            deadline(limit_s),
            client.stream("POST", f"{base}{path}", json=dict(body), headers=headers) as answer,
        ):
            raw = _read(base, answer)
            if answer.status_code != 200:
                raise _refused(base, options.get("model", ""), answer.status_code, raw, answer.headers, key)
            found = json.loads(raw)
    except httpx2.TimeoutException as error:
        raise TransientError(f"{base} did not answer in {limit_s:g} s", code="model_timeout") from error
    except httpx2.TransportError as error:
        raise TransientError(f"{base} cannot be reached: {error}", code="model_unreachable") from error
    except InvalidInput as error:
        if error.code == "unknown_host":
            raise TransientError(f"{base} cannot be reached: {error}", code="model_unreachable") from error
        if error.code == "refused_address":
            raise Unavailable(error.message, code="model_address") from error
        raise
    except ValueError as error:
        raise TransientError(f"{base} answered with something that is not JSON", code="model_bad_answer") from error
    return found, (time.perf_counter() - started) * 1000


def _read(base: str, answer: Any) -> bytes:
    body = bytearray()
    for part in answer.iter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise TransientError(f"{base} answered with more than {MAX_ANSWER_BYTES} bytes", code="model_bad_answer")
    return bytes(body)


def _refused(base: str, model: str, status: int, raw: bytes, headers: Mapping[str, str], key: str) -> Exception:
    said = raw.decode("utf-8", "replace")[:300]
    if key:
        said = said.replace(key, "[hidden]")  # SECURITY: some endpoints repeat the key they refuse
    if status in TRANSIENT or status >= 500:
        code = "model_rate_limited" if status == 429 else "model_overloaded"
        return TransientError(f"{base} answered {status}: {said}", code=code, retry_after_s=retry_after_s(headers))
    if status in (400, 413, 422):
        return InvalidInput(f"{base} refused the request ({status}): {said}", field="text", code="model_refused")
    codes = {401: "model_unauthorised", 403: "model_unauthorised", 404: "model_unknown"}
    return Unavailable(f"{base} answered {status} for model {model}: {said}", code=codes.get(status, "model_unavailable"))


def ask_chat(options: Mapping[str, str], text: str = "") -> Answered:
    """What a chat model replies to a text. Raises: as `call`."""
    return _replied([{"role": "user", "content": text or GREETING}], options)


def ask_vision(options: Mapping[str, str], text: str = "") -> Answered:
    """What a vision model says of a small red picture. Raises: as `call`."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(_red()).decode()}"}}
    return _replied([{"role": "user", "content": [{"type": "text", "text": text or PICTURE_QUESTION}, picture]}], options)


def ask_rerank(options: Mapping[str, str], text: str = "") -> Answered:
    """How a rerank model weighs two texts, the fitting one first or not. Raises: as `call`."""
    asked = {"model": options["model"], "query": text or RERANK_QUESTION, "documents": list(RERANK_TEXTS), "top_n": len(RERANK_TEXTS)}
    body, took_ms = call("/rerank", asked, options)
    rows = body.get("results") if isinstance(body, dict) else None
    scores = {row.get("index"): row.get("relevance_score") for row in rows if isinstance(row, dict)} if isinstance(rows, list) else {}
    if set(scores) != {0, 1} or not all(isinstance(score, (int, float)) for score in scores.values()):
        raise TransientError(f"{options['base_url']} answered without relevance scores", code="model_bad_answer")
    return Answered(took_ms, f"{scores[0]:.3f} / {scores[1]:.3f}", body)


def _replied(messages: list[dict[str, Any]], options: Mapping[str, str]) -> Answered:
    body, took_ms = call("/chat/completions", {"model": options["model"], "messages": messages, "stream": False}, options)
    try:
        said = body["choices"][0]["message"].get("content") or ""
    except (TypeError, KeyError, IndexError, AttributeError):
        raise TransientError(f"{options['base_url']} answered without a message", code="model_bad_answer") from None
    return Answered(took_ms, str(said).strip()[:200], body)


def _red() -> bytes:
    from PIL import Image

    held = io.BytesIO()
    Image.new("RGB", (64, 64), (200, 30, 30)).save(held, "PNG")
    return held.getvalue()
