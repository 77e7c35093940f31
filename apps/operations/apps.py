from __future__ import annotations

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "apps.operations"

    def ready(self) -> None:
        from apps.operations import startup  # noqa: F401 - registers its check
