"""REST addresses of evaluations: the first is the contract's, the others are the product's own."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.evaluation.api import views as v

upstream: list[URLPattern] = [
    path("evaluation", v.EvaluationView.as_view(), name="evaluation"),
    path("evaluation/sets", v.SetsView.as_view(), name="evaluation-sets"),
    path("evaluation/sets/file", v.SetFileView.as_view(), name="evaluation-set-file"),
    path("evaluation/sets/draw", v.SetDrawView.as_view(), name="evaluation-set-draw"),
    path("evaluation/sets/<str:set_id>", v.SetView.as_view(), name="evaluation-set"),
    path("evaluation/runs", v.RunsView.as_view(), name="evaluation-runs"),
    path("evaluation/runs/<str:run_id>", v.RunView.as_view(), name="evaluation-run"),
    path("evaluation/runs/<str:run_id>/results", v.ResultsView.as_view(), name="evaluation-results"),
    path("evaluation/runs/<str:run_id>/cancel", v.CancelView.as_view(), name="evaluation-cancel"),
    path("evaluation/runs/<str:run_id>/compare", v.CompareView.as_view(), name="evaluation-compare"),
]
proxied: list[URLPattern] = []
