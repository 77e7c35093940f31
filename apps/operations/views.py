"""Doors for machines that watch the portal."""

from __future__ import annotations

import hmac

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST

from apps.operations.metrics import exposition


@require_safe
@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus' text format for whoever knows `KB_METRICS_TOKEN`; without that setting there is no such page."""
    if not settings.METRICS_TOKEN:
        raise Http404
    scheme, _space, given = request.headers.get("Authorization", "").partition(" ")
    known = hmac.compare_digest(given.strip().encode(), settings.METRICS_TOKEN.encode())
    if scheme.lower() != "bearer" or not known:
        return HttpResponse(status=401, headers={"WWW-Authenticate": 'Bearer realm="metrics"'}, content_type="text/plain")
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})
