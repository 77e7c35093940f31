"""Pages of evaluations: `/s/<space>/evaluation/...`."""

from __future__ import annotations

from django.urls import path

from apps.portal.views import evaluation as v

_HERE = "s/<int:space_id>/evaluation"
_SET = f"{_HERE}/sets/<uuid:set_id>"
_RUN = f"{_HERE}/runs/<uuid:run_id>"

urlpatterns = [
    path(_HERE, v.EvaluationView.as_view(), name="evaluation"),
    path(f"{_HERE}/sets/new", v.SetNewView.as_view(), name="evaluation-set-new"),
    path(_SET, v.SetView.as_view(), name="evaluation-set"),
    path(f"{_SET}/delete", v.SetDeleteView.as_view(), name="evaluation-set-delete"),
    path(f"{_HERE}/runs/new", v.RunNewView.as_view(), name="evaluation-run-new"),
    path(_RUN, v.RunView.as_view(), name="evaluation-run"),
    path(f"{_RUN}/stop", v.RunStopView.as_view(), name="evaluation-run-stop"),
    path(f"{_RUN}/delete", v.RunDeleteView.as_view(), name="evaluation-run-delete"),
    path(f"{_RUN}/compare", v.CompareView.as_view(), name="evaluation-compare"),
]
