"""What pages share: forms in dialogs, answers to htmx, errors of the domain beside their fields."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.cache import patch_vary_headers
from django.utils.decorators import method_decorator

from apps.common.policy import authorize
from apps.common.web import views

DIALOG_SLOT = "dialog-slot"


@method_decorator(login_not_required, name="dispatch")
class PageView(views.PageView):
    """A page for people: an API key may do the same over REST, but it has no business with forms and menus."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if getattr(request, "actor_error", None) is None:  # else the base says what was wrong with who asks
            authorize(self.actor, "portal.enter")
        return super().dispatch(request, *args, **kwargs)


def is_htmx(request: HttpRequest) -> bool:
    return bool(request.headers.get("HX-Request")) and not request.headers.get("HX-Boosted")


class DialogView(PageView):
    """A form that opens as a dialog over the page it was called from, or as a page of its own without script.

    `template` is the body (the form); `kind` is dialog or drawer.
    """

    template = ""
    kind = "dialog"

    def show(self, title: str, context: dict[str, Any], *, status: int = 200, wide: bool = False, back: str = "") -> HttpResponse:
        """The dialog (htmx) or the page around the same form."""
        whole = {
            "dialog_title": title,
            "dialog_body": self.template,
            "dialog_kind": self.kind,
            "dialog_wide": wide,
            "back": back,
            **context,
        }
        if is_htmx(self.request):
            response = render(self.request, "portal/_dialog.html", whole, status=status)
        else:
            whole.setdefault("crumbs", [{"label": title}])
            response = render(self.request, "portal/dialog_page.html", whole, status=status)
        patch_vary_headers(response, ["HX-Request"])
        return response

    def done(self, text: str, *, back: str, kind: str = "success", detail: str = "", undo: str = "", gone: str = "") -> HttpResponse:
        """The dialog closes, the list behind it is read again and a toast says what happened; without script: the page `back`."""
        return done(self.request, text, back=back, kind=kind, detail=detail, undo=undo, gone=gone)


def done(
    request: HttpRequest, text: str, *, back: str, kind: str = "success", detail: str = "", undo: str = "", gone: str = ""
) -> HttpResponse:
    """After an action: a toast and fresh lists for htmx, else a redirect to `back` with the same message.

    `undo`: where to POST to take it back. `gone`: id of a row that is no longer there to be selected.
    """
    if is_htmx(request):
        response = HttpResponse()
        toast = {"text": text, "kind": kind, "detail": detail, **({"undo_url": undo} if undo else {})}
        left = {"kb:row-gone": {"id": gone}} if gone else {}
        response["HX-Trigger"] = json.dumps({"toast": toast, **left, "kb:changed": {}})
        return response
    level = {"success": messages.SUCCESS, "warning": messages.WARNING, "danger": messages.ERROR}.get(kind, messages.INFO)
    messages.add_message(request, level, f"{text} {detail}".strip())
    return redirect(back)


def go(request: HttpRequest, address: str) -> HttpResponse:
    """Send the person to another page, also out of a dialog."""
    if is_htmx(request):
        response = HttpResponse(status=204)
        response["HX-Redirect"] = address
        return response
    return redirect(address)
