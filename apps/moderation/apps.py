from django.apps import AppConfig


class ModerationConfig(AppConfig):
    name = "apps.moderation"
    label = "moderation"

    def ready(self) -> None:
        from apps.moderation import admin, policies  # noqa: F401
