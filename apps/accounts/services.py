"""Accounts: making them, signing in, passwords, preferences. Every way in ends here."""

from __future__ import annotations

import re

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from apps.accounts import tokens
from apps.accounts.events import UserDeactivated, UserRegistered
from apps.accounts.models import Founder, User
from apps.accounts.passwords import require_good_password
from apps.accounts.selectors import user_get
from apps.common.actor import Actor
from apps.common.errors import Conflict, Forbidden, InvalidInput, Unauthenticated
from apps.common.events import publish
from apps.common.policy import authorize
from apps.common.text import clean_line

NAME_MIN, NAME_MAX = 2, 50


@transaction.atomic
def user_register(
    *,
    actor: Actor,
    email: str,
    password: str | None,
    username: str = "",
    language: str = "",
    is_invited: bool = False,
    is_moderator: bool = False,
) -> User:
    """A new account with its personal space; the very first one moderates the site.

    `username` empty: one is made from the e-mail address. `password` None (commands only): nobody can sign in with one.
    Raises: InvalidInput for an address, name or password that cannot be used or is taken; Forbidden(registration_closed) when only
    invited people may sign up.
    """
    authorize(actor, "auth.register")
    email = _good_email(email)
    if password is not None and actor.kind != "system":
        require_good_password(password, field="password")
    user = _insert(email, password, username, language)
    is_first = _is_first(user)
    if settings.REGISTRATION == "invite_only" and not (is_first or is_invited or actor.kind == "system"):
        raise Forbidden(_("Sign-up is by invitation only. Ask an admin for an invitation."), code="registration_closed")
    if is_first or is_moderator:
        user.is_staff = user.is_superuser = True
        user.save(update_fields=["is_staff", "is_superuser", "updated_at"])
    EmailAddress.objects.create(user=user, email=email, primary=True, verified=False)
    publish(UserRegistered(user_id=user.pk, username=user.username, language=language))
    return user


def user_sign_in(*, actor: Actor, email: str, password: str) -> User:
    """The person these credentials belong to.

    Raises: Unauthenticated(wrong_credentials), the same and equally slow for an unknown address; (account_disabled) only to who knows
    the password.
    """
    authorize(actor, "auth.sign-in")
    user = authenticate(None, email=email.strip().lower(), password=password)
    if isinstance(user, User):
        return user
    disabled = User.objects.filter(email=email.strip().lower(), is_active=False).first()
    if disabled is not None and disabled.check_password(password):
        raise Unauthenticated("Account is disabled", code="account_disabled")
    raise Unauthenticated("Invalid email or password", code="wrong_credentials")


def tokens_issue(*, actor: Actor, user: User, tenant_id: int | None) -> tuple[str, str]:
    """(access token, refresh token) for a person who has just proved who they are."""
    authorize(actor, "auth.sign-in")
    return tokens.issue_pair(user, tenant_id=tenant_id)


def tokens_refresh(*, actor: Actor, refresh: str) -> tuple[str, str]:
    """(new access token, new refresh token); the old refresh token is used up. Raises: Unauthenticated(refresh_failed)."""
    authorize(actor, "auth.refresh")
    try:
        _user, access, fresh = tokens.rotate(refresh)
    except Unauthenticated:
        raise Unauthenticated("Token refresh failed", code="refresh_failed") from None
    return access, fresh


def token_revoke(*, actor: Actor, refresh: str) -> None:
    """One refresh token of the actor ends; anything else is left alone."""
    authorize(actor, "auth.me")
    if actor.user_id is not None:
        tokens.revoke_one(refresh, user_id=actor.user_id)


def user_sign_out(*, actor: Actor, bearer: str) -> None:
    """Every token of the person this bearer token names ends; an expired one will do. Raises: Unauthenticated for a token not ours."""
    authorize(actor, "auth.sign-out")
    if not bearer:
        raise Unauthenticated(code="missing_authentication")
    tokens.revoke_all(tokens.owner_of(bearer))


@transaction.atomic
def password_change(*, actor: Actor, old_password: str, new_password: str) -> User:
    """The actor's own password changes; their bearer tokens and other browser sessions end.

    Raises: InvalidInput(invalid_old_password, password_policy, same_password).
    """
    authorize(actor, "auth.password")
    user = user_get(actor=actor)
    if not user.check_password(old_password):
        raise InvalidInput(
            _("The current password is not right."),
            code="invalid_old_password",
            field="old_password",
            api_code=1000,
            api_details="invalid_old_password",
        )
    require_good_password(new_password, field="new_password")
    if old_password == new_password:
        raise InvalidInput(
            _("Choose a password different from the current one."), code="same_password", field="new_password", api_details="same_password"
        )
    return password_set(actor=actor, user=user, password=new_password)


@transaction.atomic
def password_set(*, actor: Actor, user: User, password: str) -> User:
    """Store a password whose right was proved elsewhere (old password, reset link); tokens end, sessions end by their hash."""
    authorize(actor, "auth.sign-in")
    user.set_password(password)
    user.save(update_fields=["password", "updated_at"])
    tokens.revoke_all(user)
    return user


def preferences_update(*, actor: Actor, last_space_id: int | None) -> User:
    """Which space the actor finds themselves in next time; None clears it."""
    authorize(actor, "auth.preferences")
    user = user_get(actor=actor)
    user.last_space_id = last_space_id
    user.save(update_fields=["last_space_id", "updated_at"])
    return user


def profile_update(*, actor: Actor, username: str) -> User:
    """The name others see. Raises: InvalidInput when it is too short, too long or taken."""
    authorize(actor, "profile.update")
    user = user_get(actor=actor)
    name = _good_name(username)
    if User.objects.exclude(pk=user.pk).filter(username__iexact=name).exists():
        raise _taken("username")
    user.username = name
    try:
        with transaction.atomic():
            user.save(update_fields=["username", "updated_at"])
    except IntegrityError:
        raise _taken("username") from None
    return user


def appearance_set(*, actor: Actor, language: str = "", theme: str = "") -> None:
    """Language and theme of the actor's pages; empty leaves it as it is. For anonymous people the door keeps a cookie instead.

    Raises: InvalidInput naming the known values.
    """
    authorize(actor, "appearance.set")
    known = {"language": [code for code, _name in settings.LANGUAGES], "theme": list(User.Theme.values)}
    chosen = {name: value for name, value in (("language", language), ("theme", theme)) if value}
    for name, value in chosen.items():
        if value not in known[name]:
            raise InvalidInput(_("Choose one of: %(known)s.") % {"known": ", ".join(known[name])}, field=name)
    if actor.kind == "user" and chosen:
        User.objects.filter(pk=actor.person).update(**chosen)


def _good_email(email: str) -> str:
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise InvalidInput(_("Enter a valid e-mail address."), code="bad_email", field="email") from None
    if len(email) > 254:
        raise InvalidInput(_("Enter a valid e-mail address."), code="bad_email", field="email")
    return email


def _good_name(username: str) -> str:
    name = clean_line(username)
    if not NAME_MIN <= len(name) <= NAME_MAX:
        raise InvalidInput(_("Use 2 to 50 characters for the name."), code="bad_name", field="username")
    return name


def _taken(field: str) -> InvalidInput:
    texts = {
        "email": _("This e-mail address is registered already. Sign in instead."),
        "username": _("This name is taken. Choose another."),
    }
    return InvalidInput(texts[field], code=f"{field}_taken", field=field, api_code=1000)


def _insert(email: str, password: str | None, username: str, language: str) -> User:
    """The row of a new account. Raises: InvalidInput when the address or the wished name is taken, also by somebody faster."""
    wished = _good_name(username) if username else ""
    for attempt in range(5):
        if User.objects.filter(email=email).exists():
            raise _taken("email")
        if wished and User.objects.filter(username__iexact=wished).exists():
            raise _taken("username")
        user = User(email=email, username=wished or _free_name(email), language=language)
        user.set_password(password)
        try:
            with transaction.atomic():
                user.save(force_insert=True)
        except IntegrityError:
            if attempt == 4:
                raise
            continue
        return user
    raise AssertionError("unreachable")


def _free_name(email: str) -> str:
    """A name from the part before the @, numbered when others have it."""
    stem = re.sub(r"[^\w.-]+", "-", email.split("@")[0]).strip("-._")[: NAME_MAX - 8] or "user"
    stem = stem if len(stem) >= NAME_MIN else f"{stem}-1"
    taken = {name.lower() for name in User.objects.filter(username__istartswith=stem).values_list("username", flat=True)}
    name, number = stem, 2
    while name.lower() in taken:
        name, number = f"{stem}-{number}", number + 1
    return name


def _is_first(user: User) -> bool:
    """Whether no account existed before; two that race meet on the founder's key, and the second one waits for the first to commit."""
    if User.objects.exclude(pk=user.pk).exists():
        return False
    return Founder.objects.get_or_create(pk=1, defaults={"user": user})[1]


@transaction.atomic
def user_activation_set(*, actor: Actor, user: User, is_active: bool) -> None:
    """Let somebody in, or no longer: their sessions, tokens and API keys end with this request. What they wrote keeps its author.

    Raises: Conflict for the actor's own account and for the last moderator.
    """
    authorize(actor, "user.moderate")
    if user.is_active == is_active:
        return
    if not is_active:
        _moderator_may_go(actor, user)
        sessions_end(actor=actor, user=user)
        publish(UserDeactivated(user_id=user.pk))
    user.is_active = is_active
    user.save(update_fields=["is_active", "updated_at"])


@transaction.atomic
def sessions_end(*, actor: Actor, user: User) -> int:
    """Sign somebody out everywhere: browsers at their next request, bearer tokens at once; how many tokens ended."""
    authorize(actor, "user.moderate")
    User.objects.filter(pk=user.pk).update(session_epoch=F("session_epoch") + 1)
    user.refresh_from_db(fields=["session_epoch"])
    return tokens.revoke_all(user)


@transaction.atomic
def moderator_set(*, actor: Actor, user: User, is_moderator: bool) -> None:
    """Make somebody a moderator of the site, or no longer. Raises: Conflict for the actor's own account and for the last moderator."""
    authorize(actor, "user.moderate")
    if not is_moderator:
        _moderator_may_go(actor, user)
    elif not user.is_active:
        raise Conflict(_("The account is deactivated. Activate it first."), code="account_disabled")
    user.is_staff = user.is_superuser = is_moderator
    user.save(update_fields=["is_staff", "is_superuser", "updated_at"])


def _moderator_may_go(actor: Actor, user: User) -> None:
    if actor.user_id == user.pk:
        raise Conflict(_("You cannot do this to your own account. Ask another moderator."), code="own_account")
    if user.is_staff and not User.objects.select_for_update().filter(is_staff=True, is_active=True).exclude(pk=user.pk).exists():
        raise Conflict(_("The site needs at least one moderator."), code="last_moderator")
