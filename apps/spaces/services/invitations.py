"""Inviting people by e-mail or by link, and what they answer."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.accounts.selectors import user_get, user_of_email
from apps.accounts.services import user_register
from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, Forbidden, Gone, InvalidInput, NotFound
from apps.common.policy import authorize
from apps.common.scope import space_scope
from apps.common.text import clean_line
from apps.spaces.doors import invitation_of_token, token_hash
from apps.spaces.mail import send_invitation
from apps.spaces.membership import grantable, join
from apps.spaces.models import Invitation, Membership, Space

LIFE = timedelta(days=7)
MESSAGE_MAX = 500
PENDING = Invitation.Status.PENDING


@transaction.atomic
def invitation_create(
    *, actor: Actor, space: Space, email: str, role: str, base_url: str, message: str = "", language: str = ""
) -> tuple[Invitation, str]:
    """(invitation, its address): one person is invited by mail, registered or not. An open one to the same address is replaced.

    `base_url`: scheme and host people reach the portal at. Raises: InvalidInput; Conflict when they are a member already.
    """
    authorize(actor, "invitation.write", space)
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise InvalidInput(_("Enter a valid e-mail address."), field="email") from None
    wanted = grantable(actor, role)
    invitee = user_of_email(email=email)
    if invitee is not None and Membership.objects.filter(space=space, user=invitee).exists():
        raise Conflict(_("This person is a member already."), code="already_member")
    Invitation.objects.filter(space=space, email=email, is_link=False, status=PENDING).update(
        status=Invitation.Status.REVOKED, responded_at=timezone.now()
    )
    invitation, address = _make(actor, space, wanted, message, base_url, email=email)
    chosen = (invitee.language if invitee else "") or language or settings.LANGUAGE_CODE
    inviter = user_get(actor=actor).username if actor.kind == "user" else ""
    transaction.on_commit(lambda: send_invitation(invitation, address, inviter=inviter, language=chosen), robust=True)
    return invitation, address


@transaction.atomic
def invite_link_create(*, actor: Actor, space: Space, role: str, base_url: str, message: str = "") -> tuple[Invitation, str]:
    """(invitation, its address): whoever holds the address may join until it expires or is revoked."""
    authorize(actor, "invitation.write", space)
    return _make(actor, space, grantable(actor, role), message, base_url, email="")


@transaction.atomic
def invitation_revoke(*, actor: Actor, invitation: Invitation) -> None:
    """Its address opens nothing from now on. Raises: Conflict when it was answered or revoked before."""
    authorize(actor, "invitation.write", invitation)
    if not _settle(invitation, Invitation.Status.REVOKED):
        raise Conflict(_("This invitation is not open any more."), code="invitation_closed")
    audit(actor, "invitation.revoked", invitation)


def invitation_accept(*, actor: Actor, invitation: Invitation) -> Membership:
    """The actor, to whom it was sent, joins. Raises: Gone when it is closed; Conflict when they are in already."""
    authorize(actor, "invitation.respond")
    user = user_get(actor=actor)
    with transaction.atomic(), space_scope(invitation.space_id, "an invitation is answered"):
        return _accept(actor, user, invitation)


def invitation_decline(*, actor: Actor, invitation: Invitation) -> None:
    """The actor says no; the space's admins see it. Raises: Gone when it is closed."""
    authorize(actor, "invitation.respond")
    with transaction.atomic(), space_scope(invitation.space_id, "an invitation is answered"):
        if not _settle(invitation, Invitation.Status.DECLINED):
            raise _gone()
        audit(actor, "invitation.declined", invitation, space_id=invitation.space_id)


def invitation_accept_token(*, actor: Actor, token: str) -> Membership:
    """The actor joins by the address they were given.

    Raises: Gone when it is dead; Forbidden when it was sent to somebody else; Conflict when they are in already.
    """
    authorize(actor, "invitation.respond")
    return invitation_accept(actor=actor, invitation=_open_invitation(token))


@transaction.atomic
def invitation_register(
    *, actor: Actor, token: str, email: str, username: str, password: str, language: str = ""
) -> tuple[User, Membership]:
    """A new account that joins the inviting space, all or nothing; works while sign-up is by invitation only.

    Raises: what `user_register` and `invitation_accept_token` raise.
    """
    authorize(actor, "auth.register")
    invitation = _open_invitation(token)
    user = user_register(actor=actor, email=email, password=password, username=username, language=language, is_invited=True)
    person = Actor(kind="user", user_id=user.pk)
    return user, invitation_accept(actor=person, invitation=invitation)


def _make(actor: Actor, space: Space, role: str, message: str, base_url: str, *, email: str) -> tuple[Invitation, str]:
    text = clean_line(message)
    if len(text) > MESSAGE_MAX:
        raise InvalidInput(_("Use at most 500 characters for the message."), field="message")
    token = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        space=space,
        email=email,
        is_link=not email,
        role=role,
        message=text,
        token_hash=token_hash(token),
        invited_by_id=actor.user_id,
        expires_at=timezone.now() + LIFE,
    )
    audit(actor, "invitation.created", invitation, role=role, by="mail" if email else "link")
    return invitation, f"{base_url.rstrip('/')}/invitations/{token}"


def _open_invitation(token: str) -> Invitation:
    invitation = invitation_of_token(token)
    if invitation is None or invitation.space.deleted_at is not None or not invitation.is_open(timezone.now()):
        raise _gone()
    return invitation


def _gone() -> Gone:
    return Gone(_("This invitation has expired or was withdrawn. Ask for a new one."), code="invitation_gone")


def _accept(actor: Actor, user: User, invitation: Invitation) -> Membership:
    """SECURITY: an invitation by mail lets in only the account with that address."""
    if not invitation.is_link and invitation.email != user.email:
        raise Forbidden(
            _("This invitation was sent to another e-mail address. Sign in with the account of that address."), code="invitation_of_another"
        )
    space = invitation.space
    if Membership.objects.filter(space=space, user=user).exists():
        raise Conflict(_("You are a member of this space already."), code="already_member", space_id=space.pk)
    if invitation.is_link:
        if not _open(invitation).update(accepted_count=F("accepted_count") + 1):
            raise _gone()
    elif not _settle(invitation, Invitation.Status.ACCEPTED):
        raise _gone()
    try:
        return join(actor, space, user, invitation.role)
    except NotFound:
        raise _gone() from None


def _open(invitation: Invitation):  # type: ignore[no-untyped-def]
    return Invitation.objects.filter(pk=invitation.pk, status=PENDING, expires_at__gt=timezone.now())


def _settle(invitation: Invitation, status: str) -> bool:
    """One conditional update; False when somebody was faster or it has expired."""
    accepted = 1 if status == Invitation.Status.ACCEPTED else 0
    return bool(_open(invitation).update(status=status, responded_at=timezone.now(), accepted_count=accepted))
