from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    label = "retrieval"

    def ready(self) -> None:
        from apps.retrieval import listeners, policies  # noqa: F401
