from django.apps import AppConfig


class SourcesConfig(AppConfig):
    name = "apps.sources"
    label = "sources"

    def ready(self) -> None:
        from apps.common.crypto import SEALED
        from apps.sources import jobs, listeners, policies  # noqa: F401
        from apps.sources.plugins import connectors  # noqa: F401

        SEALED["sources.DataSource"] = "sealed"
