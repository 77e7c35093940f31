"""One's own account, language and theme."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import translation
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from apps.accounts.selectors import user_get
from apps.accounts.services import appearance_set, profile_update
from apps.common.errors import InvalidInput
from apps.common.web.views import PageView
from apps.portal.forms.account import AppearanceForm, NameForm
from apps.portal.views.forms import put_error
from apps.spaces.selectors import my_invitations

COOKIE_AGE_S = 365 * 24 * 3600
THEME_COOKIE = "kb_theme"


class ProfileView(PageView):
    actions = {"GET": "profile.read", "POST": "profile.update"}

    def get(self, request: HttpRequest) -> HttpResponse:
        user = user_get(actor=self.actor)
        return self._show(NameForm(initial={"username": user.username}))

    def post(self, request: HttpRequest) -> HttpResponse:
        form = NameForm(request.POST)
        if form.is_valid():
            try:
                profile_update(actor=self.actor, username=form.cleaned_data["username"])
            except InvalidInput as error:
                put_error(form, error)
            else:
                messages.success(request, _("Your name is saved."))
                return redirect("profile")
        return self._show(form, status=400)

    def _show(self, form: NameForm, status: int = 200) -> HttpResponse:
        user = user_get(actor=self.actor)
        theme = self.request.COOKIES.get(THEME_COOKIE) or user.theme
        shown = AppearanceForm(initial={"language": user.language or translation.get_language(), "theme": theme})
        context = {"form": form, "appearance": shown, "person": user, "invitations": my_invitations(actor=self.actor)}
        return self.page("portal/profile.html", context, status=status)


class AppearanceView(PageView):
    """Language and theme, from the profile, from the quick switch (also by htmx) and for people who are not signed in."""

    actions = {"POST": "appearance.set"}

    def post(self, request: HttpRequest) -> HttpResponse:
        language, theme = request.POST.get("language", ""), request.POST.get("theme", "")
        appearance_set(actor=self.actor, language=language, theme=theme)
        response: Any = HttpResponseRedirect(_back(request))
        if request.headers.get("HX-Request"):
            response = HttpResponse(status=204)
            if language:
                response["HX-Refresh"] = "true"
        for name, value in ((settings.LANGUAGE_COOKIE_NAME, language), (THEME_COOKIE, theme)):
            if value:
                response.set_cookie(name, value, max_age=COOKIE_AGE_S, samesite="Lax", secure=settings.SESSION_COOKIE_SECURE)
        return response


def _back(request: HttpRequest) -> str:
    """Where the switch was pressed; only addresses of this portal."""
    for target in (request.POST.get("next", ""), request.headers.get("Referer", "")):
        if target and url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
            return target
    return reverse("root")
