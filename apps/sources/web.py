"""The client behind `Link.web`: checked requests, at a pace a source can bear, until the run is cancelled or has used what it may.

One per run. What a connector needs to keep for the length of a run (a token, a clone, a parsed feed) it keeps here too.
"""

from __future__ import annotations

import contextlib
import json as jsonlib
import os
import re
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

from django.utils import timezone

from apps.common import http
from apps.common.errors import InvalidInput, TransientError
from apps.common.http import Fetched
from apps.common.storage import temp_folder
from apps.sources.plugins.protocol import SourceError

T = TypeVar("T")
Explain = Callable[[Fetched], SourceError | None]

TRIES = 4
MAX_WAIT_S = 30.0  # a source that asks for more is left alone: the run ends with what it asked for
WAIT_BUDGET_S = 300.0
ANSWER_LIMIT = 16 << 20
LARGE_S = 900.0
_CODES = {400: "bad_answer", 401: "auth", 403: "forbidden", 404: "not_found", 408: "timeout", 410: "not_found", 429: "rate_limited"}
_SLICE_S = 0.5


class Web:
    """What connectors reach the outside with.

    `secrets` are taken out of every error text. `check` is called before and during every request and every wait; it raises to end the run.
    `budget_s`, `budget_bytes`: what the whole run may take and load; beyond them SourceError("timeout" | "too_large").
    """

    def __init__(
        self,
        *,
        secrets: Iterable[str] = (),
        check: Callable[[], None] | None = None,
        budget_s: float = 2 * 3600.0,
        budget_bytes: int = 20 << 30,
        timeout_s: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._check = check or (lambda: None)
        self._ends = time.monotonic() + budget_s
        self._bytes = budget_bytes
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._waits = WAIT_BUDGET_S
        self._gaps: dict[str, float] = {}
        self._next: dict[str, float] = {}
        self._busy: dict[str, threading.RLock] = {}
        self._kept: dict[str, tuple[Hashable, Any]] = {}
        self._lock = threading.RLock()
        self._secrets: set[str] = set()
        self.hide(*secrets)

    # -- what errors may say

    def hide(self, *secrets: str) -> None:
        """Never show these in an error; a text of several lines is hidden line by line."""
        for secret in secrets:
            parts = {secret, *re.split(r"[\r\n]+", secret), *(line.partition(":")[2] for line in secret.splitlines())}
            self._secrets.update(part.strip() for part in parts if len(part.strip()) >= 4)

    def scrub(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text[:500]

    def error(self, code: str, detail: str = "", **more: Any) -> SourceError:
        """A SourceError whose text holds no secret."""
        return SourceError(code, self.scrub(detail), **more)

    # -- what is kept for the run

    def keep(self, slot: str, key: Hashable, make: Callable[[], T]) -> T:
        """The value kept in `slot` under `key`, made when there is none or one of another key; one per slot, closed when it is replaced."""
        with self._lock:
            found = self._kept.get(slot)
            if found is not None and found[0] == key:
                return found[1]  # type: ignore[no-any-return]
            self.drop(slot)
            value = make()
            self._kept[slot] = (key, value)
            return value

    def drop(self, slot: str) -> None:
        with self._lock:
            _key, value = self._kept.pop(slot, (None, None))
            if hasattr(value, "close"):
                value.close()

    def close(self) -> None:
        """Let go of everything that was kept; the end of a run."""
        for slot in list(self._kept):
            self.drop(slot)

    def __enter__(self) -> Web:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- time

    def check(self) -> None:
        """Raises when the run was cancelled or has used its time."""
        self._check()
        if time.monotonic() >= self._ends:
            raise SourceError("timeout", "the run took longer than a run may", passing=True)

    def pace(self, host: str, gap_s: float) -> None:
        """Leave at least this long between two requests to a host (and never less than was asked for before)."""
        self._gaps[host] = max(self._gaps.get(host, 0.0), min(gap_s, MAX_WAIT_S))

    def pause(self, seconds: float) -> None:
        """Wait, looking at the check now and then."""
        while seconds > 0:
            self.check()
            part = min(_SLICE_S, seconds)
            self._sleep(part)
            seconds -= part
        self.check()

    def _turn(self, host: str) -> None:
        due = self._next.get(host, 0.0) - time.monotonic()
        if due > 0:
            self.pause(due)
        self._next[host] = time.monotonic() + self._gaps.get(host, 0.0)

    # -- requests

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        json: Any = None,
        max_bytes: int = ANSWER_LIMIT,
        ok: tuple[int, ...] = (200,),
        explain: Explain | None = None,
        large: bool = False,
    ) -> Fetched:
        """An answer with one of the statuses `ok`; to be closed. `large`: a file, which may take its time to come (`LARGE_S`).

        `explain` looks at every answer first and names what is wrong with it, where a source says so in its own way.

        Raises: SourceError; what passes by itself was tried `TRIES` times, waiting as long as the source asked (at most `MAX_WAIT_S`).
        """
        if params:
            url += ("&" if "?" in url else "?") + urlencode({name: value for name, value in params.items() if value not in (None, "")})
        sent = dict(headers or {})
        if json is not None:
            body = jsonlib.dumps(json, ensure_ascii=False).encode()
            sent.setdefault("Content-Type", "application/json; charset=utf-8")
        for attempt in range(TRIES):
            problem = self._try(method, url, sent, body, max_bytes, ok, explain, LARGE_S if large else self._timeout_s)
            if isinstance(problem, Fetched):
                return problem
            wait = problem.retry_after_s if problem.retry_after_s is not None else 0.5 * 2**attempt
            if not self._again(problem, attempt, wait):
                raise problem
            self._waits -= wait
            self.pause(wait)
        raise AssertionError("the last try returns or raises")

    def _again(self, problem: SourceError, attempt: int, wait: float) -> bool:
        return problem.passing and problem.code != "timeout" and attempt + 1 < TRIES and wait <= min(MAX_WAIT_S, self._waits)

    def _try(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        max_bytes: int,
        ok: tuple[int, ...],
        explain: Explain | None,
        timeout_s: float,
    ) -> Fetched | SourceError:
        host = urlsplit(url).netloc.rpartition("@")[2].lower()
        with self._lock:
            busy = self._busy.setdefault(host, threading.RLock())
        with busy:
            self._turn(host)
            self.check()
            try:
                answer = http.request(
                    method, url, headers=headers, body=body, max_bytes=min(max_bytes, max(self._bytes, 0)),
                    timeout_s=max(0.1, min(timeout_s, self._ends - time.monotonic())),
                    on_chunk=lambda _so_far: self.check(),
                )  # fmt: skip
            except (InvalidInput, TransientError, ValueError) as error:
                return self._failed(error)
        self._bytes -= answer.path.stat().st_size
        try:
            problem = (explain(answer) if explain is not None else None) or self._status(answer, ok)
        except BaseException:
            answer.close()
            raise
        if problem is None:
            return answer
        answer.close()
        problem.detail = self.scrub(problem.detail)
        problem.args = (self.scrub(str(problem)),)
        return problem

    def _failed(self, error: Exception) -> SourceError:
        if isinstance(error, TransientError):
            if isinstance(error.__cause__, ssl.SSLError):
                return self.error("tls", "the certificate or the encryption of the server was not accepted")
            if error.code == "timeout":
                return self.error("timeout", str(error), passing=True)
            return self.error("unavailable", str(error), passing=True)
        if isinstance(error, InvalidInput):
            if error.code == "too_large" and self._bytes <= 0:
                return self.error("too_large", "the run loaded more than a run may")
            code = {"bad_url": "bad_settings", "bad_encoding": "bad_answer"}.get(error.code, error.code)
            return self.error(code, str(error.message))
        return self.error("bad_settings", "an address, key or header holds characters that cannot be sent")

    def _status(self, answer: Fetched, ok: tuple[int, ...]) -> SourceError | None:
        status = answer.status
        if status in ok:
            return None
        code = _CODES.get(status) or ("unavailable" if status >= 500 else "bad_answer")
        passing = code in ("rate_limited", "unavailable", "timeout")
        after = retry_after(answer.headers.get("retry-after", "")) if passing else None
        if code == "timeout":
            code = "unavailable"  # 408 is quick to come and worth another try
        return self.error(code, f"the server answered {status}", retry_after_s=after, passing=passing, params={"status": status})

    def json(self, method: str, url: str, **options: Any) -> Any:
        """The answer as JSON; options as in `request`. Raises: SourceError(bad_answer) when it is none."""
        with self.request(method, url, **options) as answer:
            return parsed(answer, self)

    def read(self, url: str, **options: Any) -> bytes:
        """The bytes at an address."""
        with self.request("GET", url, **options) as answer:
            return answer.read()


def parsed(answer: Fetched, web: Web) -> Any:
    """An answer as a JSON object or list. Raises: SourceError(bad_answer)."""
    try:
        value = answer.json()
    except ValueError:
        raise web.error("bad_answer", "the answer is not JSON") from None
    if not isinstance(value, (dict, list)):
        raise web.error("bad_answer", "the answer is JSON of another shape")
    return value


def retry_after(raw: str) -> float | None:
    """Seconds asked for by a Retry-After header (a number or a date); None when it says nothing."""
    raw = raw.strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", raw):
        return float(raw)
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        moment = parsedate_to_datetime(raw)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - timezone.now()).total_seconds())
    return None


def temporary(data: bytes = b"", *, suffix: str = "") -> Path:
    """A new temporary file of this process holding `data`."""
    handle, name = tempfile.mkstemp(prefix="kb-source-", suffix=suffix, dir=temp_folder())
    with os.fdopen(handle, "wb") as target:
        target.write(data)
    return Path(name)
