from django.apps import AppConfig


class IngestionConfig(AppConfig):
    name = "apps.ingestion"
    label = "ingestion"

    def ready(self) -> None:
        from apps.ingestion import inspection, jobs, listeners, policies, startup  # noqa: F401
