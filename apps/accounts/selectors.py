"""Reads about people."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from apps.accounts import tokens
from apps.accounts.models import AccessToken, User
from apps.common.actor import Actor
from apps.common.errors import NotFound


def user_get(*, actor: Actor) -> User:
    """The account of the acting person. Raises: NotFound for keys and the system."""
    user = User.objects.filter(pk=actor.user_id).first() if actor.user_id else None
    if user is None:
        raise NotFound("no such account")
    return user


def user_of_email(*, email: str) -> User | None:
    """The active account with this address, if there is one."""
    return User.objects.filter(email=email.strip().lower(), is_active=True).first()


def user_of_bearer(*, token: str) -> tuple[User, dict[str, Any]]:
    """(person, claims) of a live access token. Raises: Unauthenticated(invalid_token)."""
    return tokens.read(token, AccessToken.Kind.ACCESS)


def registration_mode() -> str:
    """`self_serve` or `invite_only`; the first account may always be made."""
    return "self_serve" if settings.REGISTRATION == "self_serve" or not User.objects.exists() else "invite_only"
