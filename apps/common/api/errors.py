"""The one table: class of error -> HTTP status -> body (contract platform 4, knowledge 1.4).

Three shapes are intended and clients depend on them: the envelope of handlers, the bare body of the door (authentication, role, key scope),
and the few routes that write their own. Unknown exceptions are logged with the request id and answered without their text.
"""

from __future__ import annotations

import logging
from typing import Any, TypeVar

from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from rest_framework import exceptions as drf
from rest_framework.response import Response

from apps.common import errors

AnyResponse = TypeVar("AnyResponse", bound=HttpResponse)
log = logging.getLogger(__name__)

RETRY_AFTER_S = 5

#: class -> (status, the contract's integer code)
TABLE: dict[type[errors.DomainError], tuple[int, int]] = {
    errors.InvalidInput: (400, 1010),
    errors.PayloadTooLarge: (413, 1010),
    errors.Unauthenticated: (401, 1001),
    errors.Forbidden: (403, 1002),
    errors.NotFound: (404, 1003),
    errors.Gone: (410, 1003),
    errors.Conflict: (409, 1005),
    errors.QuotaExceeded: (400, 1000),
    errors.RateLimited: (429, 1006),
    errors.Unavailable: (503, 1008),
    errors.StoreUnavailable: (503, 1008),
}

#: code -> (status, text): refusals of the door, answered bare (contract platform 1.3)
BARE: dict[str, tuple[int, str]] = {
    "missing_authentication": (401, "Unauthorized: missing authentication"),
    "invalid_token": (401, "Unauthorized: invalid or expired token"),
    "invalid_key": (401, "Unauthorized: invalid API key"),
    "invalid_workspace": (401, "Unauthorized: invalid workspace"),
    "space_required": (409, "Workspace required"),
    "bad_tenant_header": (400, "Invalid X-Tenant-ID header"),
    "foreign_tenant": (403, "Forbidden: insufficient permissions to access target workspace"),
    "not_a_member": (403, "Forbidden: not a member of the target workspace"),
    "key_other_tenant": (403, "Forbidden: workspace API key cannot switch workspaces"),
    "key_scope": (403, "Forbidden: API key scope does not allow this operation"),
    "role_too_low": (403, "Forbidden: insufficient workspace role"),
    "moderator_only": (403, "Forbidden: system administrator required"),
    "people_only": (403, "Forbidden: API keys cannot access this endpoint"),
}

#: code -> (status, body): refusals whose route writes a body of its own (contract platform 1.5, sign-in)
OWN: dict[str, tuple[int, dict[str, Any]]] = {
    "wrong_credentials": (401, {"success": False, "message": "Invalid email or password", "memberships": None}),
    "account_disabled": (401, {"success": False, "message": "Account is disabled", "memberships": None}),
}

#: code -> the string code the proxied families add (contract knowledge 2)
PROXY_CODES = {
    "role_too_low": "KNOWLEDGE_MANAGE_REQUIRED",
    "conflict": "KNOWLEDGE_CONFLICT",
    "revision_conflict": "KNOWLEDGE_CONFLICT",
    "version_conflict": "KNOWLEDGE_CONFLICT",
    "not_found": "NOT_FOUND",
    "space_required": "NO_CURRENT_TENANT",
    "foreign_tenant": "NOT_A_MEMBER",
    "not_a_member": "NOT_A_MEMBER",
    "personal_only": "KNOWLEDGE_PERSONAL_USE_REQUIRED",
    "tenant_not_current": "TENANT_NOT_CURRENT",
}


def status_of(error: errors.DomainError) -> tuple[int, int]:
    """(HTTP status, integer code) of an expected error. Raises: LookupError when its class is not in the table."""
    if error.code in BARE:
        return BARE[error.code][0], 0
    if error.code in OWN:
        return OWN[error.code][0], 0
    for kind in type(error).__mro__:
        if kind in TABLE:
            status, code = TABLE[kind]
            return error.details.get("http_status", status), error.details.get("api_code", code)
    raise LookupError(f"{type(error).__name__} is not in the error table")


def body_of(error: errors.DomainError, *, proxied: bool = False) -> dict[str, Any]:
    """The JSON body of an expected error, in the shape its kind of refusal has."""
    if error.code in BARE:
        text = BARE[error.code][1]
        body: dict[str, Any] = {"error": text}
        if error.code == "space_required":
            body["code"] = "TENANT_REQUIRED"
        if proxied and error.code in PROXY_CODES:
            body["code"] = PROXY_CODES[error.code]
        return body
    if error.code in OWN:
        return dict(OWN[error.code][1])
    _status, code = status_of(error)
    details: Any = {k: v for k, v in error.details.items() if k not in ("http_status", "api_code", "api_details")}
    if error.field:
        details["field"] = error.field
    if details or error.code not in (type(error).code,):
        details["reason"] = error.code
    details = error.details.get("api_details", details)  # where the contract gives `details` a form of its own
    body = {"success": False, "error": {"code": code, "message": str(error), "details": details or None}}
    if proxied:
        body["code"] = PROXY_CODES.get(error.code, error.code.upper())
    return body


def _domain(error: Exception) -> errors.DomainError | None:
    """The expected error that a framework exception stands for."""
    if isinstance(error, errors.DomainError):
        return error
    if isinstance(error, (Http404, drf.NotFound)):
        return errors.NotFound(_("Not found."))
    if isinstance(error, drf.MethodNotAllowed):
        return errors.InvalidInput(_("This method is not allowed here."), code="method_not_allowed", http_status=405, api_code=1004)
    if isinstance(error, drf.ParseError):
        return errors.InvalidInput(_("The request body cannot be read. Send valid JSON."), code="malformed_body", api_code=1000)
    if isinstance(error, drf.UnsupportedMediaType):
        return errors.InvalidInput(
            _("Send this as application/json or multipart/form-data."), code="unsupported_media_type", http_status=415, api_code=1000
        )
    if isinstance(error, drf.Throttled):
        return errors.RateLimited(_("Too many requests. Try again in a moment."), retry_after_s=int(getattr(error, "wait", None) or 1))
    if isinstance(error, (drf.NotAuthenticated, drf.AuthenticationFailed)):
        return errors.Unauthenticated(code="missing_authentication")
    if isinstance(error, (PermissionDenied, drf.PermissionDenied)):
        return errors.Forbidden(_("This is not allowed. Reload the page and try again."), code="csrf_or_origin")
    return database_fault(error)


def database_fault(error: BaseException | None) -> errors.Unavailable | None:
    """What to say when the database is busy or away, which passes by itself; None when the error is another one.

    SQLite says "locked" once its busy timeout is over; PostgreSQL's operational errors are all of this kind (server away, no connection
    free, a lock or a deadlock), while SQLite's others (a missing table, a full disk) are not.
    """
    if not isinstance(error, (OperationalError, InterfaceError)):
        return None
    if connection.vendor == "sqlite" and "locked" not in str(error):
        return None
    text = _("The database is busy or cannot be reached at the moment. Nothing was changed; try again in a few seconds.")
    return errors.Unavailable(text, code="database_busy", retry_after_s=RETRY_AFTER_S)


def is_proxied(path: str) -> bool:
    return path.startswith("/v1/")


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler: every error of a REST view leaves as JSON of the contract."""
    found = _domain(error)
    request = context.get("request")
    if found is None:
        log.exception("unexpected error in %s", getattr(request, "path", "?"), exc_info=error)
        return Response({"success": False, "error": {"code": 1007, "message": "Internal server error"}}, status=500)
    status, _code = status_of(found)
    response = Response(body_of(found, proxied=is_proxied(request.path) if request is not None else False), status=status)
    if status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="kbportal"'
    return put_headers(response, found)


def handle_flat(error: Exception, context: dict[str, Any]) -> Response:
    """`handle` for routes that answer `{"error": "..."}`, with the field, the reason and what a conflict tells beside it."""
    response = handle(error, context)
    told = response.data.get("error") if isinstance(response.data, dict) else None
    if isinstance(told, dict):
        details = told.get("details")
        details = details if isinstance(details, dict) else {}
        extra = {name: details[name] for name in ("field", "reason", "fields", "known", "current_version") if name in details}
        code = {"code": response.data["code"]} if "code" in response.data else {}
        response.data = {"error": told["message"], **extra, **code}
    return response


def put_headers(response: AnyResponse, error: errors.DomainError) -> AnyResponse:
    """Say in the header as well when to try again."""
    if "retry_after_s" in error.details:
        response["Retry-After"] = str(error.details["retry_after_s"])
    return response


def json_error(request: HttpRequest, error: errors.DomainError) -> JsonResponse:
    """The same for code outside DRF (unknown REST paths, middleware)."""
    status, _code = status_of(error)
    return put_headers(JsonResponse(body_of(error, proxied=is_proxied(request.path)), status=status), error)
