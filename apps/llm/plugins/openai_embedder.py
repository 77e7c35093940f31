"""Embeddings from any endpoint that speaks OpenAI's `/embeddings`, through the official client."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.llm.plugins.guard import Guard
from apps.llm.plugins.protocol import Matrix, embedders

if TYPE_CHECKING:
    from openai import OpenAI

MAX_RETRY_AFTER_S = 3600.0
MAX_ANSWER_BYTES = 256 * 1024 * 1024
MAX_DIMENSION = 8192
PROBE = "The pump must be primed before use. 使用前请先给水泵注水。"
_TRANSIENT = {408, 409, 425, 429}


@dataclass(frozen=True)
class OpenAIEmbedder:
    """An Embedder over HTTP; threads may share it.

    `query_prefix` and `passage_prefix` go before each text, for models that tell the two apart (`query: `, `passage: ` for E5).
    `send_dimension` asks the endpoint for vectors of `dimension`; otherwise it must answer with that size by itself. Dimension 0 takes
    whatever size comes (see `measure`). `name_of_space` stands for the model in `space` where several models have the same name.
    `guard` says which addresses may be reached.
    Units: seconds for the timeouts; `batch_size` texts a request.
    """

    base_url: str
    model: str
    dimension: int
    api_key: str = field(default="", repr=False)
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    batch_size: int = 32
    query_prefix: str = ""
    passage_prefix: str = ""
    send_dimension: bool = False
    query_timeout_s: float = 4.0
    concurrency: int = 1
    name_of_space: str = ""
    guard: Guard = Guard(trusted=True)

    @property
    def space(self) -> str:
        return f"{self.name_of_space or self.model}:{self.dimension}"

    @property
    def at_once(self) -> int:
        return self.batch_size

    @cached_property
    def _client(self) -> OpenAI:
        import httpx2
        from openai import OpenAI

        from apps.llm.plugins.guarded_http import guarded_client

        # No retries in the client: the job that called decides, and it honours Retry-After without holding a worker.
        timeout = httpx2.Timeout(self.read_timeout_s, connect=self.connect_timeout_s)
        http_client = guarded_client(self.guard, timeout)
        return OpenAI(base_url=self.base_url, api_key=self.api_key or "none", max_retries=0, timeout=timeout, http_client=http_client)

    def close(self) -> None:
        self._client.close()

    def passages(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        parts = [texts[at : at + self.batch_size] for at in range(0, len(texts), self.batch_size)]
        return np.concatenate([self._embed([self.passage_prefix + text for text in part], self.read_timeout_s) for part in parts])

    def query(self, text: str) -> NDArray[np.float32]:
        """Somebody waits for it, so it has less time than a batch of passages."""
        return self._embed([self.query_prefix + text], min(self.query_timeout_s, self.read_timeout_s))[0]

    def token_count(self, text: str) -> int:
        """An upper estimate, since the endpoint's tokenizer is not known: a token per CJK character, one per three bytes of the rest."""
        wide = sum(1 for c in text if c >= "\u2e80")
        return wide + math.ceil(sum(len(c.encode("utf-8", "replace")) for c in text if c < "\u2e80") / 3)

    def _embed(self, texts: list[str], limit_s: float) -> Matrix:
        import httpx2
        import openai

        from apps.llm.plugins.guarded_http import deadline

        client = self._client  # made before the clock runs
        clean = [text.encode("utf-8", "replace").decode("utf-8") or " " for text in texts]
        asked: dict[str, Any] = {"model": self.model, "input": clean, "encoding_format": "float"}
        if self.send_dimension:
            asked["dimensions"] = self.dimension
        try:
            with (
                deadline(limit_s),
                client.embeddings.with_streaming_response.create(**asked, timeout=self._timeout(limit_s)) as answer,
            ):
                body = json.loads(self._read(answer))
        except (openai.APITimeoutError, httpx2.TimeoutException) as error:
            raise TransientError(f"{self.base_url} did not answer in {limit_s:g} s", code="embedding_timeout") from error
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except (openai.APIConnectionError, httpx2.TransportError) as error:
            if isinstance(error.__cause__, InvalidInput):
                raise self._not_there(error.__cause__) from error
            raise TransientError(f"{self.base_url} cannot be reached: {error.__cause__ or error}", code="embedding_unreachable") from error
        except InvalidInput as error:
            raise self._not_there(error) from error
        except (ValueError, openai.APIResponseValidationError) as error:
            raise TransientError(f"{self.base_url} answered with something that is not JSON", code="embedding_bad_answer") from error
        return self._vectors(body, len(texts))

    def _timeout(self, limit_s: float) -> Any:
        import httpx2

        return httpx2.Timeout(limit_s, connect=min(self.connect_timeout_s, limit_s))

    def _not_there(self, error: InvalidInput) -> Exception:
        """What the check of the address said, in the terms of an embedder: a name may be back in a minute, a private network is not."""
        if error.code == "unknown_host":
            return TransientError(f"{self.base_url} cannot be reached: {error}", code="embedding_unreachable")
        return Unavailable(error.message, code="embedding_address")

    def _read(self, answer: Any) -> bytes:
        """The whole body; one without end is given up."""
        body = bytearray()
        for part in answer.iter_bytes():
            body += part
            if len(body) > MAX_ANSWER_BYTES:
                raise TransientError(f"{self.base_url} answered with more than {MAX_ANSWER_BYTES} bytes", code="embedding_bad_answer")
        return bytes(body)

    def _refused(self, error: Any) -> Exception:
        """The exception for an HTTP status: worth a retry, a wrong setting, or a text the endpoint does not take."""
        status = error.status_code
        said = str(error.message)[:300]
        if self.api_key:
            said = said.replace(self.api_key, "[hidden]")  # SECURITY: some endpoints repeat the key they refuse
        if status in _TRANSIENT or status >= 500:
            code = "embedding_rate_limited" if status == 429 else "embedding_overloaded"
            wait = retry_after_s(error.response.headers)
            return TransientError(f"{self.base_url} answered {status}: {said}", code=code, retry_after_s=wait)
        if status in (400, 413, 422):
            return InvalidInput(f"{self.base_url} refused the text ({status}): {said}", field="text", code="embedding_refused")
        codes = {401: "embedding_unauthorised", 403: "embedding_unauthorised", 404: "embedding_model_unknown"}
        code = codes.get(status, "embedding_unavailable")
        return Unavailable(f"{self.base_url} answered {status} for model {self.model}: {said}", code=code)

    def _vectors(self, body: Any, count: int) -> Matrix:
        """The vectors in the order of the texts, normalised.

        Raises: TransientError when some are missing; Unavailable when they are of another size, which no retry will change.
        """
        items = body.get("data") if isinstance(body, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) and isinstance(item.get("embedding"), list) for item in items):
            raise TransientError(f"{self.base_url} answered without embeddings", code="embedding_bad_answer")
        by_index = {item.get("index", at): item["embedding"] for at, item in enumerate(items)}
        if len(items) != count or set(by_index) != set(range(count)):
            raise TransientError(f"{self.base_url} gave {len(items)} vectors for {count} texts", code="embedding_count")
        sizes = {len(vector) for vector in by_index.values()}
        if len(sizes) > 1 or (self.dimension and sizes != {self.dimension}):
            said = ", ".join(map(str, sorted(sizes)))
            wanted = f"{self.dimension} is expected" if self.dimension else "they must be of one size"
            raise Unavailable(f"{self.model} gives vectors of size {said}, {wanted}", code="embedding_dimension")
        try:
            made = np.array([by_index[at] for at in range(count)], dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise TransientError(f"{self.base_url} answered with values that are not numbers", code="embedding_bad_answer") from error
        norms = np.linalg.norm(made, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise TransientError(f"{self.base_url} answered with a vector that is zero or not finite", code="embedding_bad_answer")
        return made / norms


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait that a response asks for, in any of its usual headers; None without one, never over an hour."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            wait = float(milliseconds) / 1000
        elif value is None:
            return None
        elif value.strip().replace(".", "", 1).isdigit():
            wait = float(value)
        else:
            wait = parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError):
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER_S)


def _number(options: Mapping[str, str], name: str, default: float | None, low: float, high: float) -> float:
    given = options.get(name, "")
    try:
        value = float(given) if given else default
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise InvalidInput(f"{name} must be a number from {low:g} to {high:g}", field=name)
    return value


def open_openai(options: Mapping[str, str]) -> OpenAIEmbedder:
    """An embedder from `base_url`, `model`, `dimension` and optionally `api_key`, `connect_timeout_s`, `read_timeout_s`, `batch_size`,
    `query_prefix`, `passage_prefix`, `send_dimension`, `query_timeout_s`, `concurrency`, `name_of_space`; `trusted` and `allow` (commas
    between) are those of `Guard`.

    Raises: InvalidInput naming the option that is missing, wrong or unknown.
    """
    known = {*OpenAIEmbedder.__dataclass_fields__, "trusted", "allow"} - {"guard"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise InvalidInput(f"unknown option {unknown[0]}; known are {', '.join(sorted(known))}", field=unknown[0])
    url = urlsplit(options.get("base_url", ""))
    if url.scheme not in ("http", "https") or not url.hostname or url.username or url.password:
        raise InvalidInput("base_url must be an http or https address such as https://host/v1", field="base_url")
    if not options.get("api_key", "").isascii() or not options.get("api_key", "").isprintable():
        raise InvalidInput("an API key holds plain ASCII characters only", field="api_key")
    if not options.get("model"):
        raise InvalidInput("the embedding model has no name", field="model")
    return OpenAIEmbedder(
        base_url=options["base_url"],
        model=options["model"],
        dimension=int(_number(options, "dimension", 0, 0, MAX_DIMENSION)),
        api_key=options.get("api_key", ""),
        connect_timeout_s=_number(options, "connect_timeout_s", 5, 0.05, 120),
        read_timeout_s=_number(options, "read_timeout_s", 60, 0.05, 600),
        batch_size=int(_number(options, "batch_size", 32, 1, 2048)),
        query_prefix=options.get("query_prefix", ""),
        passage_prefix=options.get("passage_prefix", ""),
        send_dimension=_yes(options, "send_dimension"),
        query_timeout_s=_number(options, "query_timeout_s", 4, 0.05, 60),
        concurrency=int(_number(options, "concurrency", 1, 1, 16)),
        name_of_space=options.get("name_of_space", ""),
        guard=Guard(_yes(options, "trusted"), tuple(word for word in options.get("allow", "").split(",") if word)),
    )


def _yes(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() in ("1", "true", "yes")


@dataclass(frozen=True, slots=True)
class Measured:
    """What an endpoint answered to a probe. Shapes: `probe` (dimension,) float32, unit length. Units: milliseconds."""

    dimension: int
    probe: NDArray[np.float32]
    took_ms: float


def measure(options: Mapping[str, str], texts: Sequence[str] = (PROBE,)) -> Measured:
    """Ask the endpoint once and see what it gives. Raises: as an Embedder."""
    embedder = open_openai({**options, "dimension": options.get("dimension", "0") if _yes(options, "send_dimension") else "0"})
    started = time.perf_counter()
    try:
        made = embedder.passages(texts)
    finally:
        embedder.close()
    return Measured(made.shape[1], made[0], (time.perf_counter() - started) * 1000)


embedders.add("openai", open_openai)
