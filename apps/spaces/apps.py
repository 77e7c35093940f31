from django.apps import AppConfig


class SpacesConfig(AppConfig):
    name = "apps.spaces"
    label = "spaces"

    def ready(self) -> None:
        from apps.spaces import listeners, policies  # noqa: F401
