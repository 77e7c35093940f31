"""The one mail this context sends."""

from __future__ import annotations

import logging
from smtplib import SMTPException

from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.utils import translation

from apps.spaces.models import Invitation

log = logging.getLogger(__name__)


def send_invitation(invitation: Invitation, address: str, *, inviter: str, language: str) -> bool:
    """Mail the invitation in a language; False when the mail server did not take it (the address can still be passed on by hand)."""
    values = {"invitation": invitation, "space": invitation.space, "address": address, "inviter": inviter}
    with translation.override(language):
        subject = " ".join(render_to_string("portal/mail/invitation_subject.txt", values).split())
        text = render_to_string("portal/mail/invitation.txt", values)
    try:
        send_mail(subject, text, None, [invitation.email])
    except (SMTPException, OSError) as error:
        log.warning("the invitation %s could not be mailed: %s", invitation.pk, error)
        return False
    return True
