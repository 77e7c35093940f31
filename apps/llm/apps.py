from django.apps import AppConfig


class LlmConfig(AppConfig):
    name = "apps.llm"
    label = "llm"

    def ready(self) -> None:
        from apps.llm import policies  # noqa: F401
