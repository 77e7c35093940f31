"""DRF's side of the door: the actor was made by ActorMiddleware, here it is only handed on."""

from __future__ import annotations

from typing import Any

from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import BasePermission

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.policy import rule_for


class ActorAuthentication(BaseAuthentication):
    """`request.user` of REST views is the actor's user; a browser session owes a CSRF token."""

    def authenticate(self, request: Any) -> tuple[Any, Actor] | None:
        actor: Actor = request._request.actor
        if not actor.signed_in:
            return None
        if actor.from_session and not _is_public(request):
            check = CSRFCheck(lambda _request: None)  # type: ignore[arg-type]
            check.process_request(request._request)
            if check.process_view(request._request, None, (), {}):  # type: ignore[arg-type]
                raise PermissionDenied()
        return request._request.user, actor

    def authenticate_header(self, request: Any) -> str:
        return 'Bearer realm="kbportal"'


def _is_public(request: Any) -> bool:
    """Routes for everyone do nothing in the name of the cookie's owner, so that they owe no CSRF token."""
    operations = getattr((request.parser_context or {}).get("view"), "operations", {})
    return request.method in operations and rule_for(operations[request.method].action).public


class ActionDeclared(BasePermission):
    """Lets through only views that declare their actions (`ApiView`); the check itself is `authorize` inside them."""

    def has_permission(self, request: Any, view: Any) -> bool:
        return bool(getattr(view, "operations", None))


class Public(BasePermission):
    """For the OpenAPI document and its page, which everyone may read."""

    def has_permission(self, request: Any, view: Any) -> bool:
        return True


def door_error(request: Any, *, needs_space: bool) -> DomainError | None:
    """What was wrong with the credentials of this request, if anything; raised only by routes that need some.

    Who lost their place in the space their token names may still ask who they are and choose another (contract platform 1.3).
    """
    error: DomainError | None = getattr(request._request, "actor_error", None)
    if error is not None and error.code == "not_a_member" and not needs_space and request._request.actor.signed_in:
        return None
    return error
