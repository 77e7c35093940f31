"""`manage.py rotate_secrets`: encrypt every stored secret with the newest key."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from apps.common.crypto import SEALED, rotated
from apps.common.errors import Unavailable
from apps.common.scope import unscoped


class Command(BaseCommand):
    help = (
        "Encrypt the stored API keys of models and the credentials of data sources with the first of KB_ENCRYPTION_KEYS; afterwards "
        "older keys may be dropped."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        done, lost = 0, []
        with unscoped("secrets of every space"):
            for label, field in SEALED.items():
                model: Any = apps.get_model(label)
                for row in model.objects.exclude(**{field: ""}).order_by("pk").iterator(chunk_size=200):
                    stored = getattr(row, field)
                    try:
                        fresh = rotated(stored)
                    except Unavailable:
                        lost.append(f"{row} (space {row.space_id})")
                        continue
                    done += model.objects.filter(**{"pk": row.pk, field: stored}).update(**{field: fresh})
        self.stdout.write(f"{done} secrets encrypted with the newest key")
        if lost:
            raise CommandError("none of the keys reads these, enter them again: " + ", ".join(lost))
