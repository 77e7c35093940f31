from django.apps import AppConfig


class FaqConfig(AppConfig):
    name = "apps.faq"
    label = "faq"

    def ready(self) -> None:
        from apps.faq import jobs, listeners, policies  # noqa: F401
