"""Expected errors as pages or htmx fragments, from the same table as REST."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from apps.common.api.errors import json_error, put_headers, status_of
from apps.common.errors import DomainError, Unauthenticated


def is_rest(request: HttpRequest) -> bool:
    return request.path.startswith(("/api/", "/v1/"))


def error_response(request: HttpRequest, error: DomainError) -> HttpResponse:
    """The page that says what happened; sign-in for people who are not signed in; a short body for htmx (shown as a toast)."""
    if is_rest(request):
        return json_error(request, error)
    if isinstance(error, Unauthenticated):
        target = reverse("account_login") + "?" + urlencode({"next": request.get_full_path()})
        if request.headers.get("HX-Request"):
            response = HttpResponse(status=401)
            response["HX-Redirect"] = target
            return response
        return redirect(target)
    status, _code = status_of(error)
    template = "components/_error_fragment.html" if request.headers.get("HX-Request") else "portal/error.html"
    context = {"status": status, "message": str(error), "code": error.code, "details": error.details}
    return put_headers(render(request, template, context, status=status), error)
