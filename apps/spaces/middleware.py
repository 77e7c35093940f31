"""The one door: session, bearer token or API key become one frozen Actor, and the space's scope is opened for the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse

from apps.accounts.selectors import user_of_bearer
from apps.accounts.services import preferences_update
from apps.common import context
from apps.common.actor import Actor
from apps.common.errors import DomainError, Forbidden, InvalidInput, NotFound, Unauthenticated
from apps.common.middleware import activate
from apps.common.scope import close_scope, open_scope
from apps.spaces.doors import actor_of_key, enter_space, find_default_space, personal_space_of

Get = Callable[[HttpRequest], HttpResponse]


class ActorMiddleware:
    """Order of credentials as the contract has it (platform 1.3): bearer, then API key; a browser session when neither is sent.

    Wrong credentials do not fail here: `request.actor_error` keeps the reason, and routes that need someone raise it. A person who may
    not enter the space they named stays a person without a space, for the few routes that need none.
    """

    def __init__(self, get_response: Get) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request.actor = Actor.anonymous()  # type: ignore[attr-defined]
        request.actor_error = None  # type: ignore[attr-defined]
        request.space = None  # type: ignore[attr-defined]
        open_scope(None)
        try:
            return self.get_response(request)
        finally:
            close_scope()

    def process_view(self, request: Any, view: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Runs when the route is known: the space may stand in its path."""
        try:
            request.actor, tenant_claim = self._identify(request)
            if request.actor.signed_in:
                request.actor, request.space = self._enter(request, request.actor, kwargs, tenant_claim)
        except DomainError as error:
            request.actor_error = error
        actor = request.actor
        if request.user.is_authenticated:
            activate(request, request.user.language)
        context.actor_name.set(actor.who)
        context.space_id.set(str(actor.space_id or ""))
        if actor.space_id is not None:
            open_scope(actor.space_id)

    def _identify(self, request: Any) -> tuple[Actor, int]:
        """(actor without a space, tenant the token names). Raises: Unauthenticated when what was sent is no good."""
        scheme, _space, bearer = request.headers.get("Authorization", "").partition(" ")
        key = request.headers.get("X-API-Key", "")
        if scheme.lower() == "bearer" and bearer:
            try:
                user, claims = user_of_bearer(token=bearer.strip())
            except Unauthenticated:
                request.user = AnonymousUser()  # SECURITY: a bad token never falls back to the cookie beside it
                if not key:
                    raise
            else:
                request.user = user
                return self._person(user, from_session=False), int(claims.get("tenant_id") or 0)
        if key:
            request.user = AnonymousUser()
            return actor_of_key(key), 0
        if request.user.is_authenticated:
            return self._person(request.user, from_session=True), 0
        return Actor.anonymous(), 0

    @staticmethod
    def _person(user: Any, *, from_session: bool) -> Actor:
        return Actor(kind="user", user_id=user.pk, language=user.language, from_session=from_session, is_moderator=user.is_staff)

    def _enter(self, request: Any, actor: Actor, kwargs: dict[str, Any], tenant_claim: int) -> tuple[Actor, Any]:
        """Choose the space: the path, the header, the token, the person's last one, their own."""
        header = _tenant_header(request)
        in_path = kwargs.get("space_id") or kwargs.get("tenant_id")
        if in_path is not None:
            try:
                entered, space = enter_space(actor, int(in_path))
            except DomainError as error:
                if "space_id" in kwargs:  # a page: a foreign space looks like one that is not there
                    raise NotFound() from error
                raise
            if "space_id" in kwargs and actor.from_session and request.user.last_space_id != space.pk:
                preferences_update(actor=entered, last_space_id=space.pk)
            if request.path.startswith("/v1/tenants/") and space.kind != space.Kind.ORGANIZATION:
                raise Forbidden(code="personal_only")
            return entered, space
        if request.path.startswith("/v1/knowledge"):
            return personal_space_of(actor)
        if header is not None:
            return enter_space(actor, header)
        return find_default_space(actor, tenant_claim, request.user)


def _tenant_header(request: Any) -> int | None:
    raw = request.headers.get("X-Tenant-ID", "").strip()
    if not raw:
        return None
    if not (raw.isascii() and raw.isdigit() and 0 < int(raw) < 2**63):
        raise InvalidInput(code="bad_tenant_header")
    return int(raw)
