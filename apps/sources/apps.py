from django.apps import AppConfig


class SourcesConfig(AppConfig):
    name = "apps.sources"
    label = "sources"

    def ready(self) -> None:
        from apps.sources import jobs, listeners, plugins, policies  # noqa: F401
