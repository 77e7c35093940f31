"""Bearer tokens: the row is what makes a token revocable."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class AccessToken(models.Model):
    """One issued JWT (contract platform 1.4); `id` is its `jti`. Refresh tokens are rotated: the old one is revoked when used."""

    class Kind(models.TextChoices):
        ACCESS = "access"
        REFRESH = "refresh"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    kind = models.CharField(max_length=8, choices=Kind)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["expires_at"], name="accounts_token_expiry")]

    def __str__(self) -> str:
        return f"{self.kind} token of {self.user_id}"
