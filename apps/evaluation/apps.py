from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    name = "apps.evaluation"
    label = "evaluation"

    def ready(self) -> None:
        from apps.evaluation import jobs, policies  # noqa: F401
