"""Routes of this context: `upstream` under /api/v1/, `proxied` under both knowledge families."""

from __future__ import annotations

from django.urls import URLPattern

upstream: list[URLPattern] = []
proxied: list[URLPattern] = []
