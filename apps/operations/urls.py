"""Addresses for machines that watch the portal."""

from __future__ import annotations

from django.urls import path

from apps.operations import views

urlpatterns = [path("metrics", views.metrics, name="metrics")]
