"""Spaces (the contract's tenants) and who belongs to them."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Space(models.Model):
    """A tenant. A personal space is made with its owner's account and has exactly one member. `owner`: who made it."""

    class Kind(models.TextChoices):
        PERSONAL = "personal", _("Personal space")
        ORGANIZATION = "organization", _("Organization")

    name = models.CharField(max_length=128)
    description = models.CharField(max_length=512, blank=True)
    kind = models.CharField(max_length=16, choices=Kind)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["owner"], condition=models.Q(kind="personal"), name="spaces_space_one_personal"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def space_id(self) -> int:
        """For `authorize`: a space is in itself."""
        return self.pk

    @property
    def is_personal(self) -> bool:
        return self.kind == self.Kind.PERSONAL


class Membership(models.Model):
    """A person's role in a space. Global (not space-owned): the door reads it before any scope is open."""

    class Role(models.TextChoices):
        ADMIN = "admin", _("Admin")
        MEMBER = "member", _("Member")

    space = models.ForeignKey(Space, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    joined_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["space", "user"], name="spaces_membership_once")]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.space_id}"
