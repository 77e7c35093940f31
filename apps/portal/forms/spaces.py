"""Forms about spaces: shape only, the rules are the services'."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from apps.spaces.capabilities import KNOWN, OFFERED
from apps.spaces.models import Membership

ROLES = [
    (Membership.Role.MEMBER, _("Member: reads and writes documents")),
    (Membership.Role.ADMIN, _("Admin: also manages bases, people and keys")),
]


class SpaceForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=128)
    description = forms.CharField(label=_("Description"), max_length=512, required=False, widget=forms.Textarea(attrs={"rows": 3}))


class DeleteForm(forms.Form):
    typed_name = forms.CharField(label=_("Name of the organization"), max_length=200)


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Membership.Role.choices)


class InviteForm(forms.Form):
    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=ROLES)
    message = forms.CharField(
        label=_("Message"), max_length=500, required=False, help_text=_("Goes into the mail."), widget=forms.Textarea(attrs={"rows": 2})
    )


class LinkForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=ROLES)


class KeyForm(forms.Form):
    """`bases`: (uid, name) pairs of the space."""

    name = forms.CharField(label=_("Name"), max_length=100, help_text=_("What uses it, so that you know it later."))
    access = forms.ChoiceField(
        label=_("Access"),
        choices=[("some", _("Only what is chosen below")), ("full", _("Everything an admin may do with contents"))],
        initial="some",
    )
    capabilities = forms.MultipleChoiceField(
        label=_("Allowed to"), choices=[(name, KNOWN[name]) for name in OFFERED], required=False, widget=forms.CheckboxSelectMultiple
    )
    bases = forms.MultipleChoiceField(
        label=_("Only these knowledge bases"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: all of them, later ones too."),
    )
    expires_on = forms.DateField(
        label=_("Works until"),
        required=False,
        widget=forms.DateInput(format="%Y-%m-%d"),
        help_text=_("The end of this day (UTC). Empty: until it is revoked."),
    )

    def __init__(self, *args: Any, bases: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["bases"].choices = bases  # type: ignore[attr-defined]
        if not bases:
            del self.fields["bases"]

    def wanted(self) -> dict[str, Any]:
        """What `key_create` takes."""
        data = self.cleaned_data
        day = data["expires_on"]
        return {
            "name": data["name"],
            "full_access": data["access"] == "full",
            "capabilities": data["capabilities"],
            "kb_uids": [uuid.UUID(uid) for uid in data.get("bases", [])],
            "expires_at": datetime.combine(day + timedelta(days=1), time.min, UTC) if day else None,
        }
