"""Who came first."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Founder(models.Model):
    """At most one row, its key always 1: two sign-ups that race to be the first account meet on that key and one of them waits."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"{self.user_id} came first"
