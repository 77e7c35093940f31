"""`manage.py rotate_secrets`: encrypt every stored secret with the newest key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.common.crypto import rotated
from apps.common.errors import Unavailable
from apps.common.scope import unscoped
from apps.llm.models import Model


class Command(BaseCommand):
    help = "Encrypt the stored API keys of models with the first of KB_ENCRYPTION_KEYS; afterwards older keys may be dropped."

    def handle(self, *args: Any, **options: Any) -> None:
        done, lost = 0, []
        with unscoped("secrets of every space"):
            for row in Model.objects.exclude(api_key="").order_by("pk").iterator(chunk_size=200):
                try:
                    fresh = rotated(row.api_key)
                except Unavailable:
                    lost.append(f"{row.title} (space {row.space_id})")
                    continue
                done += Model.objects.filter(pk=row.pk, api_key=row.api_key).update(api_key=fresh)
        self.stdout.write(f"{done} secrets encrypted with the newest key")
        if lost:
            raise CommandError("none of the keys reads these, enter them again: " + ", ".join(lost))
