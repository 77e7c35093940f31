"""API keys of a space."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models

from apps.common.scope import SpaceOwned


class ApiKey(SpaceOwned):
    """Stored as SHA-256; the plain text is shown once, when made. `hint` is what lists show of it.

    `full_access` clears the other limits. `kb_uids`: knowledge bases it may reach, empty for all. `capabilities`: contract platform 1.7.
    """

    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=20)
    full_access = models.BooleanField(default=False)
    capabilities = models.JSONField(default=list)
    kb_uids = models.JSONField(default=list)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["space", "-id"], name="spaces_apikey_list")]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    def is_live(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)
