"""How django-allauth's pages meet our accounts: the invite-only switch, invitations, passwords, the language of mails."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest
from django.urls import reverse
from django.utils import translation

from apps.accounts.models import User
from apps.accounts.selectors import registration_mode, user_of_email
from apps.accounts.services import password_set
from apps.common.actor import Actor
from apps.common.errors import Gone
from apps.spaces.models import Invitation
from apps.spaces.selectors import invitation_lookup

INVITATION = "invitation"  # session key: the token somebody came with
JOINED = "joined_space"  # session key: the space a sign-up has just led into


def pending_invitation(request: HttpRequest) -> tuple[str, Invitation | None]:
    """(token, invitation) this visitor came with, if it is still open."""
    token = request.session.get(INVITATION, "")
    if not token:
        return "", None
    try:
        return token, invitation_lookup(token=token)
    except Gone:
        request.session.pop(INVITATION, None)
        return "", None


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """See `accounts.services` for what a sign-up makes."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return registration_mode() == "self_serve" or pending_invitation(request)[1] is not None

    def get_signup_redirect_url(self, request: HttpRequest) -> str:
        joined = request.session.pop(JOINED, None)
        return reverse("home", args=[joined]) if joined else reverse("root")

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("profile")

    def set_password(self, user: Any, password: str) -> None:
        """Change, set and reset all end here, so that bearer tokens end with the old password."""
        password_set(actor=Actor.anonymous(), user=user, password=password)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """In the language of the person it goes to, where it is known."""
        user = context.get("user") or user_of_email(email=email)
        language = user.language if isinstance(user, User) else ""
        with translation.override(language or translation.get_language()):
            super().send_mail(template_prefix, email, context)
