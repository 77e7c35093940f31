from django.apps import AppConfig


class SourcesConfig(AppConfig):
    name = "apps.sources"
    label = "sources"

    def ready(self) -> None:
        from apps.sources import jobs, listeners, policies
        from apps.sources.plugins import connectors  # noqa: F401
