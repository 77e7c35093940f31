"""What every page of the admin shares."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse


def page(request: HttpRequest, template: str, title: str, context: dict[str, Any], *, status: int = 200) -> TemplateResponse:
    """A page in the admin's frame."""
    return TemplateResponse(request, template, {**admin.site.each_context(request), "title": title, **context}, status=status)
