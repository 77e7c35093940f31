"""The password rule of the contract (platform 1.5): 8 to 32 characters with a letter and a digit."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from apps.common.errors import InvalidInput

MIN_LENGTH, MAX_LENGTH = 8, 32


class PasswordPolicy:
    """Forms use it through AUTH_PASSWORD_VALIDATORS (beside Django's own rules), services through `require_good_password`."""

    def validate(self, password: str, user: Any = None) -> None:
        if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
            raise ValidationError(_("Use 8 to 32 characters."), code="password_policy")
        if not (any(c.isalpha() for c in password) and any(c.isdigit() for c in password)):
            raise ValidationError(_("Use at least one letter and one digit."), code="password_policy")

    def get_help_text(self) -> str:
        return _("8 to 32 characters, with at least one letter and one digit.")


def require_good_password(password: str, *, field: str) -> None:
    """Return when the rule is kept. Raises: InvalidInput(password_policy) naming `field`."""
    try:
        PasswordPolicy().validate(password)
    except ValidationError as fault:
        raise InvalidInput(fault.messages[0], code="password_policy", field=field, api_details="password_policy") from None
