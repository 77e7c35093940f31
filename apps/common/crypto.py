"""Secrets at rest: encrypted with the deployment's keys, readable again after a key was added in front.

The first key encrypts; all of them decrypt. To change keys put the new one first in KB_ENCRYPTION_KEYS, run `manage.py rotate_secrets`,
then drop the old one. Without keys of its own the signing key stands in, so a portal that only has that works as well.
"""

from __future__ import annotations

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.common.errors import Unavailable

#: "app.Model" -> its field that holds what `encrypt` made; whoever stores secrets for long names them here, so that keys can be rotated
SEALED: dict[str, str] = {}


def encrypt(secret: str) -> str:
    """The secret as text that is safe to store; "" stays ""."""
    return _keys().encrypt(secret.encode("utf-8")).decode("ascii") if secret else ""


def decrypt(stored: str) -> str:
    """What `encrypt` was given. Raises: Unavailable (secret_unreadable) when none of the keys fits."""
    try:
        return _keys().decrypt(stored.encode("ascii")).decode("utf-8") if stored else ""
    except (InvalidToken, UnicodeError) as error:
        raise Unavailable(
            _("The stored key cannot be read: the portal's own keys have changed (KB_SECRET_KEY, KB_ENCRYPTION_KEYS). Enter it again."),
            code="secret_unreadable",
        ) from error


def rotated(stored: str) -> str:
    """The same secret encrypted with the first key. Raises: Unavailable (secret_unreadable)."""
    return encrypt(decrypt(stored))


def _keys() -> MultiFernet:
    return MultiFernet([_fernet(key) for key in (*settings.ENCRYPTION_KEYS, settings.SECRET_KEY)])


def _fernet(key: str) -> Fernet:
    made = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"kbportal stored secrets").derive(key.encode("utf-8"))
    return Fernet(base64.urlsafe_b64encode(made))
