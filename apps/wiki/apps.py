from django.apps import AppConfig


class WikiConfig(AppConfig):
    name = "apps.wiki"
    label = "wiki"

    def ready(self) -> None:
        from apps.wiki import jobs, listeners, policies  # noqa: F401
