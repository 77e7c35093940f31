"""A rest for an endpoint that does not answer, so that nobody queues up behind its time-outs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from apps.common.errors import NotYet, TransientError, Unavailable
from apps.llm.plugins.protocol import Embedder, Matrix

FAILURES = 2  # in a row, before the endpoint is left alone
REST_S = 5.0
MAX_REST_S = 120.0
#: One of these is enough: each costs a whole time-out, or the endpoint itself asked for the pause.
AT_ONCE = frozenset({"embedding_timeout", "embedding_rate_limited", "model_timeout", "model_rate_limited"})


class Breaker:
    """Counts the failures of one endpoint in this process. While it rests, calls are refused at once with the reason of the last failure;
    after the rest one call tries, and the others wait for what becomes of it. What a retry will not cure stays what it was.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0
        self._trying = False
        self._last: TransientError | Unavailable | None = None

    @contextmanager
    def call(self) -> Iterator[None]:
        """Around one call. Raises: while the endpoint rests NotYet or Unavailable, with the code of the last failure."""
        trial = self._enter()
        try:
            yield
        except (TransientError, Unavailable) as error:
            self._failed(error)
            raise
        else:
            self._answered()
        finally:
            if trial:
                with self._lock:
                    self._trying = False

    def _enter(self) -> bool:
        with self._lock:
            if self._last is None or self._failures == 0:
                return False
            left = self._until - self._clock()
            if left > 0 or (self._until and self._trying):
                if isinstance(self._last, Unavailable):
                    raise Unavailable(self._last.message, code=self._last.code)
                raise NotYet(str(self._last), code=self._last.code, retry_after_s=max(left, 1.0))
            self._trying = bool(self._until)
            return self._trying

    def _failed(self, error: TransientError | Unavailable) -> None:
        with self._lock:
            self._failures += 1
            self._last = error
            asked = getattr(error, "retry_after_s", None)
            if self._failures < FAILURES and error.code not in AT_ONCE:
                return
            rest = min(MAX_REST_S, REST_S * 2.0 ** max(0, self._failures - FAILURES))
            self._until = self._clock() + (asked if asked is not None else rest)

    def _answered(self) -> None:
        with self._lock:
            self._failures, self._until, self._last = 0, 0.0, None


class RestingEmbedder:
    """An Embedder behind a breaker. Raises: as the embedder and the breaker."""

    def __init__(self, inner: Embedder, breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    @property
    def space(self) -> str:
        return self._inner.space

    @property
    def at_once(self) -> int:
        return self._inner.at_once

    @property
    def concurrency(self) -> int:
        return self._inner.concurrency

    def passages(self, texts: Sequence[str]) -> Matrix:
        with self._breaker.call():
            return self._inner.passages(texts)

    def query(self, text: str) -> NDArray[Any]:
        with self._breaker.call():
            return self._inner.query(text)

    def token_count(self, text: str) -> int:
        return self._inner.token_count(text)
