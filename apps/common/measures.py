"""What this process measures of its own work, for `/metrics`: bounded label values only, and nothing of what anybody wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, disable_created_metrics

disable_created_metrics()  # a third more lines that say when a counter was first used
REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

HTTP_SECONDS = Histogram(
    "kb_http_request_seconds",
    "Time from a request to its answer (to the first byte of a stream), by route.",
    ["route", "method", "status"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    registry=REGISTRY,
)
SEARCH_SECONDS = Histogram(
    "kb_search_seconds",
    "Time of a whole search; outcome is ok, degraded (a leg was missing) or failed.",
    ["outcome"],
    buckets=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
    registry=REGISTRY,
)
LEG_SECONDS = Histogram(
    "kb_search_leg_seconds",
    "Time of one part of a search: words, vectors, or the embedding of the question.",
    ["leg"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
    registry=REGISTRY,
)


@contextmanager
def search_leg(leg: str) -> Iterator[None]:
    """The block's time counts as that leg's, also when it fails."""
    with LEG_SECONDS.labels(leg).time():
        yield


class MeasureMiddleware:
    """Counts and times every request by the name of its route."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self.get_response(request)
        method = request.method if request.method in METHODS else "other"
        status = f"{response.status_code // 100}xx"
        HTTP_SECONDS.labels(_route(request), method, status).observe(time.perf_counter() - started)
        return response


def _route(request: HttpRequest) -> str:
    """SECURITY: never a path as it was asked for; anybody could make as many of those as they like."""
    if request.resolver_match is not None:
        return request.resolver_match.view_name or "unnamed"
    return "static" if request.path.startswith(settings.STATIC_URL) else "unmatched"
