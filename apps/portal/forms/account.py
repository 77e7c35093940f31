"""Forms of the sign-up page and the profile."""

from __future__ import annotations

from typing import Any

from allauth.account import forms as allauth_forms
from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.accounts.services import user_register
from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.portal.account import INVITATION, JOINED, pending_invitation
from apps.spaces.services.invitations import invitation_register


class SignupForm(allauth_forms.SignupForm):  # type: ignore[misc]
    """E-mail, password and, if wished, the name others see; an invitation in the session is accepted with it."""

    display_name = forms.CharField(
        label=_("Your name"),
        max_length=50,
        min_length=2,
        required=False,
        help_text=_("What others see. Left empty, it is made from your e-mail address."),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    field_order = ("email", "display_name", "password1")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["email"].label = _("E-mail address")
        self.fields["password1"].help_text = _("8 to 32 characters, with at least one letter and one digit.")

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponse | None]:
        """(account, None), or the form again with what was wrong beside its field."""
        try:
            return self._register(request), None
        except DomainError as error:
            field = {"username": "display_name", "password": "password1"}.get(error.field or "", error.field)
            if error.code == "invitation_of_another":
                field = "email"
            self.add_error(field if field in self.fields else None, str(error))
            return None, render(request, "account/signup.html", {"form": self}, status=400)

    def _register(self, request: HttpRequest) -> User:
        actor, data = Actor.anonymous(), self.cleaned_data
        wanted = {"email": data["email"], "password": data["password1"], "username": data["display_name"], "language": get_language() or ""}
        token, invitation = pending_invitation(request)
        if invitation is None:
            return user_register(actor=actor, **wanted)
        user, membership = invitation_register(actor=actor, token=token, **wanted)
        request.session.pop(INVITATION, None)
        request.session[JOINED] = membership.space_id
        return user


class LoginForm(allauth_forms.LoginForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = _("E-mail address")
        self.fields["login"].widget.attrs.pop("placeholder", None)
        self.fields["password"].widget.attrs.pop("placeholder", None)
        self.fields["password"].help_text = ""


class NameForm(forms.Form):
    username = forms.CharField(
        label=_("Your name"),
        min_length=2,
        max_length=50,
        help_text=_("What others see."),
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )


class AppearanceForm(forms.Form):
    language = forms.ChoiceField(label=_("Language"), choices=[("zh-hans", "简体中文"), ("en", "English")], required=False)
    theme = forms.ChoiceField(label=_("Appearance"), choices=User.Theme.choices, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert {code for code, _name in settings.LANGUAGES} == {"zh-hans", "en"}
