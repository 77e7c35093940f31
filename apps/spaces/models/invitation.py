"""Invitations: by e-mail to one address, or by a link that several may use."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models

from apps.common.scope import SpaceOwned
from apps.spaces.models.space import Membership


class Invitation(SpaceOwned):
    """The token itself is shown once and stored hashed. A link invitation has no e-mail address and may be used until it expires."""

    class Status(models.TextChoices):
        PENDING = "pending"
        ACCEPTED = "accepted"
        DECLINED = "declined"
        REVOKED = "revoked"
        EXPIRED = "expired"

    email = models.EmailField(max_length=254, blank=True)
    is_link = models.BooleanField(default=False)
    role = models.CharField(max_length=8, choices=Membership.Role)
    message = models.CharField(max_length=500, blank=True)
    token_hash = models.CharField(max_length=64, unique=True)
    status = models.CharField(max_length=8, choices=Status, default=Status.PENDING)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    accepted_count = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField()
    responded_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["space", "status", "-id"], name="spaces_invitation_list")]

    def __str__(self) -> str:
        return f"invitation {self.pk} to space {self.space_id}"

    def is_open(self, now: datetime) -> bool:
        return self.status == self.Status.PENDING and self.expires_at > now

    def status_at(self, now: datetime) -> str:
        """The stored status, or `expired` when it is pending no longer."""
        return self.Status.EXPIRED if self.status == self.Status.PENDING and self.expires_at <= now else self.status
