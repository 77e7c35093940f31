"""What every page's frame shows: space, spaces, navigation, recent bases, warnings."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


def shell(request: HttpRequest) -> dict[str, Any]:
    """`{"shell": ...}` for templates/base_app.html; empty for anonymous pages."""
    return {"actor": getattr(request, "actor", None), "shell": {}}
