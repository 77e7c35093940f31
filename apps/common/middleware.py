"""Request id, content security policy, language, and expected errors turned into pages."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation

from apps.common import context
from apps.common.errors import DomainError

Get = Callable[[HttpRequest], HttpResponse]
_REQUEST_ID = re.compile(r"^[\w.:/-]{1,64}$")

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "worker-src 'self' blob:; frame-src 'self'; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"
)

# SECURITY: the admin's toolkit evaluates the expressions of its own attributes (Alpine) and writes its colours into the page; no inline
# script runs there either.
ADMIN_SECURITY_POLICY = CONTENT_SECURITY_POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-eval'").replace(
    "style-src 'self'", "style-src 'self' 'unsafe-inline'"
)


class RequestIdMiddleware:
    """Takes `X-Request-ID` or makes one, puts it on every log line and echoes it (contract platform 1.2)."""

    def __init__(self, get_response: Get) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("X-Request-ID", "")
        request.id = given if _REQUEST_ID.match(given) else str(uuid.uuid4())  # type: ignore[attr-defined]
        with context.of_request(request.id, request.method or "", request.path):  # type: ignore[attr-defined]
            response = self.get_response(request)
        response.headers["X-Request-ID"] = request.id  # type: ignore[attr-defined]
        return response


class NulMiddleware:
    """Leaves NUL characters out of what an address asks for: nobody types one, no text holds one, and PostgreSQL refuses them."""

    def __init__(self, get_response: Get) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "%00" in request.META.get("QUERY_STRING", ""):
            asked = request.GET.copy()
            for key, values in list(asked.lists()):
                asked.setlist(key, [value.replace("\0", "") for value in values])
            request.GET = asked  # type: ignore[assignment]
        return self.get_response(request)


class ContentSecurityMiddleware:
    """No inline script or style anywhere; a response that set its own policy (sandboxed previews) keeps it."""

    def __init__(self, get_response: Get) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not request.path.startswith("/api/docs"):
            policy = ADMIN_SECURITY_POLICY if request.path.startswith("/admin/") else CONTENT_SECURITY_POLICY
            response.headers.setdefault("Content-Security-Policy", policy)
        return response


class LanguageMiddleware:
    """The language of the person (profile), else the cookie, else what the browser asks for, else `KB_LANGUAGE`.

    ActorMiddleware calls `activate` again once it knows the person.
    """

    def __init__(self, get_response: Get) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        activate(request, "")
        response = self.get_response(request)
        response.headers.setdefault("Content-Language", translation.get_language() or settings.LANGUAGE_CODE)
        translation.deactivate()
        return response


def activate(request: HttpRequest, preferred: str) -> None:
    """Choose the language of this request and put it on `request.LANGUAGE_CODE`."""
    known = dict(settings.LANGUAGES)
    cookie = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    language = next((code for code in (preferred, cookie) if code in known), "") or language_asked_for(
        request.headers.get("Accept-Language", "")
    )
    translation.activate(language)
    request.LANGUAGE_CODE = language  # type: ignore[attr-defined]


def language_asked_for(header: str) -> str:
    """The first language of an `Accept-Language` header that the portal speaks, else `KB_LANGUAGE`."""
    for entry in header.split(","):
        tag = entry.split(";")[0].strip().lower()
        if tag.startswith("zh"):
            return "zh-hans"
        if tag.startswith("en"):
            return "en"
    return settings.LANGUAGE_CODE


class DomainErrorMiddleware:
    """An expected error that a page view raised becomes the page (or fragment) that says so; REST views have their own handler."""

    def __init__(self, get_response: Get) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        from apps.common.api.errors import database_fault
        from apps.common.web.errors import error_response

        expected = error if isinstance(error, DomainError) else database_fault(error)
        return error_response(request, expected) if expected is not None else None
