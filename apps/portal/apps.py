from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "apps.portal"
    label = "portal"

    def ready(self) -> None:
        from apps.portal import listeners, policies  # noqa: F401
