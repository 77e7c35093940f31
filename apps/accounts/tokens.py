"""Bearer tokens: JSON Web Tokens backed by rows, so that they can be revoked (contract platform 1.4)."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import jwt
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import AccessToken, User
from apps.common.errors import Unauthenticated

ALGORITHM = "HS256"
LIFE = {AccessToken.Kind.ACCESS: timedelta(hours=24), AccessToken.Kind.REFRESH: timedelta(days=7)}


def issue(user: User, kind: str, *, tenant_id: int | None = None) -> str:
    """A signed token with its row. Units: access lives 24 h, refresh 7 d."""
    now = timezone.now()
    row = AccessToken.objects.create(user=user, kind=kind, expires_at=now + LIFE[AccessToken.Kind(kind)])
    claims: dict[str, Any] = {"jti": str(row.id), "user_id": str(user.pk), "type": kind, "iat": int(now.timestamp())}
    claims["exp"] = int(row.expires_at.timestamp())
    if kind == AccessToken.Kind.ACCESS:
        claims |= {"email": user.email, "tenant_id": tenant_id or 0}
    return jwt.encode(claims, settings.SECRET_KEY, algorithm=ALGORITHM)


def issue_pair(user: User, *, tenant_id: int | None = None) -> tuple[str, str]:
    """(access token, refresh token). Rows that expired long ago go, so that the table does not grow for ever."""
    AccessToken.objects.filter(user=user, expires_at__lt=timezone.now() - LIFE[AccessToken.Kind.REFRESH]).delete()
    return issue(user, AccessToken.Kind.ACCESS, tenant_id=tenant_id), issue(user, AccessToken.Kind.REFRESH)


def read(token: str, kind: str) -> tuple[User, dict[str, Any]]:
    """The person a live token stands for, and its claims.

    Raises: Unauthenticated(code invalid_token) when it is malformed, expired, revoked, of the other kind, or its person is disabled.
    """
    claims = _claims(token)
    row = AccessToken.objects.select_related("user").filter(id=claims["jti"], kind=kind, revoked_at__isnull=True).first()
    if row is None or claims.get("type") != kind or row.expires_at <= timezone.now() or not row.user.is_active:
        raise _refused()
    return row.user, claims


def rotate(refresh: str, *, tenant_id: int | None = None) -> tuple[User, str, str]:
    """(person, new access, new refresh); the old refresh token is revoked, and a second use of it fails.

    Raises: Unauthenticated.
    """
    with transaction.atomic():
        user, claims = read(refresh, AccessToken.Kind.REFRESH)
        revoked = AccessToken.objects.filter(id=claims["jti"], revoked_at__isnull=True).update(revoked_at=timezone.now())
        if not revoked:  # two requests raced with the same token
            raise _refused()
        return user, *issue_pair(user, tenant_id=tenant_id)


def revoke_all(user: User) -> int:
    """Revoke every live token of a person (sign-out, password change); how many there were."""
    return AccessToken.objects.filter(user=user, revoked_at__isnull=True).update(revoked_at=timezone.now())


def revoke_one(token: str, *, user_id: uuid.UUID) -> None:
    """Revoke one token of that person; a token that is not theirs or not ours is left alone."""
    try:
        jti = uuid.UUID(_claims(token, verify_expiry=False)["jti"])
    except Unauthenticated:
        return
    AccessToken.objects.filter(id=jti, user_id=user_id, revoked_at__isnull=True).update(revoked_at=timezone.now())


def owner_of(token: str) -> User:
    """The person a token was issued to, expired or revoked as it may be. Raises: Unauthenticated when it was not signed here."""
    row = AccessToken.objects.select_related("user").filter(id=_claims(token, verify_expiry=False)["jti"]).first()
    if row is None:
        raise _refused()
    return row.user


def _refused() -> Unauthenticated:
    return Unauthenticated(_("Your sign-in has expired. Sign in again."), code="invalid_token")


def _claims(token: str, *, verify_expiry: bool = True) -> dict[str, Any]:
    """What a token signed here says. Raises: Unauthenticated."""
    # Another server's clock may be ahead: when a token was issued decides nothing, only when it ends.
    options: Any = {"require": ["exp", "jti"], "verify_exp": verify_expiry, "verify_iat": False}
    try:
        claims: dict[str, Any] = jwt.decode(token, settings.SECRET_KEY, algorithms=[ALGORITHM], options=options)
        uuid.UUID(claims["jti"])
    except (jwt.InvalidTokenError, ValueError, TypeError, AttributeError):
        raise _refused() from None
    return claims
