"""People: one account per e-mail address."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models.functions import Lower
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor


class UserManager(BaseUserManager["User"]):
    """Makes accounts for `createsuperuser` and tests by the one way there is, `accounts.services.user_register`."""

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> User:
        from apps.accounts.services import user_register

        return user_register(actor=Actor(kind="system", reason="create_user"), email=email, password=password, **extra)

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> User:
        return self.create_user(email, password, is_moderator=True, **extra)

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=(username or "").lower())


class User(AbstractBaseUser, PermissionsMixin):
    """`is_staff` marks a site moderator. `username` is the name others see, unique so that it can be mentioned."""

    class Theme(models.TextChoices):
        SYSTEM = "system", _("Follow the system")
        LIGHT = "light", _("Light")
        DARK = "dark", _("Dark")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(max_length=254, unique=True)
    username = models.CharField(max_length=50, unique=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)
    language = models.CharField(max_length=10, blank=True)
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM)
    last_space_id = models.BigIntegerField(null=True)
    session_epoch = models.PositiveIntegerField(default=0)  # raised to end every browser session
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(Lower("username"), name="accounts_user_name_once")]

    def __str__(self) -> str:
        return self.email

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Django compares it with what a session was opened with; a new epoch is, to sessions, what a new password is."""
        own = self.password if not self.session_epoch else f"{self.password}:{self.session_epoch}"
        return salted_hmac(
            "django.contrib.auth.models.AbstractBaseUser.get_session_auth_hash", own, secret=secret, algorithm="sha256"
        ).hexdigest()

    def get_full_name(self) -> str:
        """The name others see; Django's admin asks for it."""
        return self.username

    @property
    def initials(self) -> str:
        """One character for the avatar."""
        return self.username[:1].upper()
