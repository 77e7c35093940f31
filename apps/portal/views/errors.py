"""Error pages; REST addresses get JSON, never HTML."""

from __future__ import annotations

import sys
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from apps.common import errors
from apps.common.api.errors import database_fault, put_headers
from apps.common.web.errors import error_response, is_rest


def bad_request(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return _answer(request, errors.InvalidInput(_("This request cannot be read."), api_code=1000))


def permission_denied(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return _answer(request, errors.Forbidden(_("This is not allowed.")))


def not_found(request: HttpRequest, exception: Any = None) -> HttpResponse:
    return _answer(request, errors.NotFound(_("Not found.")))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form whose token is missing or stale: the way back is to reload, and what was typed is kept by the page's drafts."""
    return _answer(request, errors.Forbidden(_("This page was open too long. Reload it and send the form again."), code="csrf_or_origin"))


def server_error(request: HttpRequest) -> HttpResponse:
    """What no view expected, and what befell the middleware around views: there a busy database is told apart here."""
    if busy := database_fault(sys.exc_info()[1]):
        try:
            return error_response(request, busy)
        except DatabaseError:  # the page around the message asks the database as well
            return put_headers(render_plain(busy), busy)
    if is_rest(request):
        return JsonResponse({"success": False, "error": {"code": 1007, "message": "Internal server error"}}, status=500)
    context = {
        "status": 500,
        "message": _("Something went wrong on our side. Your data is safe; try again."),
        "request_id": getattr(request, "id", ""),
    }
    return render(request, "portal/error.html", context, status=500)


def render_plain(error: errors.Unavailable) -> HttpResponse:
    """The bare sentence, for when nothing of the page's frame can be read."""
    return HttpResponse(str(error), content_type="text/plain; charset=utf-8", status=503)


def _answer(request: HttpRequest, error: errors.DomainError) -> HttpResponse:
    return error_response(request, error)
