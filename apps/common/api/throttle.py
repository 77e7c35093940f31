"""Request limits per actor, and tighter ones for the routes that take passwords.

Counted in the cache: in Redis, for all processes together, where `KB_BROKER_URL` names one; else in the memory of the one web process.
"""

from __future__ import annotations

import math
from typing import Any

from rest_framework.throttling import SimpleRateThrottle


class WindowThrottle(SimpleRateThrottle):
    """Two counters instead of DRF's list of moments: counting is one atomic step, so that racing processes lose no request.

    The last window counts as far as it still reaches into the past `duration` seconds.
    """

    num_requests: int
    duration: int

    def allow_request(self, request: Any, view: Any) -> bool:
        if self.rate is None:
            return True
        self.now = self.timer()
        window, self.left_s = int(self.now // self.duration), self.duration - self.now % self.duration
        key = self.get_cache_key(request, view)
        before = math.ceil(int(self.cache.get(f"{key}:{window - 1}", 0)) * self.left_s / self.duration)
        if before + int(self.cache.get(f"{key}:{window}", 0)) >= self.num_requests:
            return False  # what is refused does not count, or who keeps asking would never get in again
        return before + self._count(f"{key}:{window}") <= self.num_requests

    def _count(self, key: str) -> int:
        self.cache.add(key, 0, self.duration * 2)
        try:
            return int(self.cache.incr(key))
        except ValueError:  # it ran out between the two steps
            return 1

    def wait(self) -> float:
        """Seconds until the window is over, when half or more of what is counted is forgotten."""
        return max(1.0, self.left_s)


class ActorThrottle(WindowThrottle):
    """`KB_THROTTLE_API` per user or key, per address for anonymous requests."""

    scope = "actor"

    def get_cache_key(self, request: Any, view: Any) -> str:
        actor = request._request.actor
        return f"throttle:{self.scope}:{actor.who if actor.signed_in else self.get_ident(request)}"


class SignInThrottle(WindowThrottle):
    """`KB_THROTTLE_SIGN_IN` per address: sign-in, registration, refresh, invitation look-up."""

    scope = "sign-in"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"throttle:{self.scope}:{self.get_ident(request)}"
