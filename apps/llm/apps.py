from django.apps import AppConfig


class LlmConfig(AppConfig):
    name = "apps.llm"
    label = "llm"

    def ready(self) -> None:
        from apps.common.crypto import SEALED
        from apps.llm import policies  # noqa: F401

        SEALED["llm.Model"] = "api_key"
