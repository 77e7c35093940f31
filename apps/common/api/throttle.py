"""Request limits per actor, and tighter ones for the routes that take passwords."""

from __future__ import annotations

from typing import Any

from rest_framework.throttling import SimpleRateThrottle


class ActorThrottle(SimpleRateThrottle):
    """`KB_THROTTLE_API` per user or key, per address for anonymous requests."""

    scope = "actor"

    def get_cache_key(self, request: Any, view: Any) -> str:
        actor = request._request.actor
        return f"throttle:{self.scope}:{actor.who if actor.signed_in else self.get_ident(request)}"


class SignInThrottle(SimpleRateThrottle):
    """`KB_THROTTLE_SIGN_IN` per address: sign-in, registration, refresh, invitation look-up."""

    scope = "sign-in"

    def get_cache_key(self, request: Any, view: Any) -> str:
        return f"throttle:{self.scope}:{self.get_ident(request)}"
