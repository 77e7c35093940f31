"""What every page with a form does: say what was wrong beside its field, keep what was typed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.translation import gettext as _

from apps.common.errors import DomainError


def put_error(form: forms.Form, error: DomainError, names: dict[str, str] | None = None) -> None:
    """An expected error of a service onto the field it names (`names`: service field -> form field), else onto the form."""
    field = (names or {}).get(error.field or "", error.field)
    form.add_error(field if field in form.fields else None, str(error))


def confirmed(request: HttpRequest, name: str) -> tuple[str, str]:
    """(what was typed into `confirm`, why it is not the base's name); the reason is "" when it is, blanks around it aside."""
    typed = request.POST.get("confirm", "")
    return typed, "" if typed.strip() == name.strip() else _("This is not the name of the knowledge base.")


def base_url(request: HttpRequest, configured: str) -> str:
    """Where people reach the portal: what is configured, else the address of this request."""
    return configured or request.build_absolute_uri("/")


SENT_KEPT_S = 3600


def sent_before(request: HttpRequest) -> bool:
    """Whether this very form (`{% form_once %}`) came in before: an impatient second click, or a browser that sent it again.

    Call it when the form is about to be acted upon; a form that comes back with errors is drawn with a number of its own.
    """
    number = request.POST.get("form_once", "")
    if not number:
        return False
    return not cache.add(f"form:{request.user.pk}:{number[:64]}", 1, SENT_KEPT_S)


def once(request: HttpRequest, key: str) -> Any:
    """A value kept in the session for the next page only (a fresh key or invitation address)."""
    return request.session.pop(key, None)
