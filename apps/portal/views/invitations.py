"""Inviting people, and being invited."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from apps.accounts.selectors import user_get
from apps.common.errors import Conflict, DomainError, Forbidden, Gone
from apps.common.web.views import PageView
from apps.portal.account import INVITATION
from apps.portal.forms.spaces import InviteForm, LinkForm
from apps.portal.views.forms import base_url, once, put_error, sent_before
from apps.spaces.selectors import invitation_get, invitation_list, invitation_lookup, my_invitation_get, my_invitations, space_get
from apps.spaces.services.invitations import (
    invitation_accept,
    invitation_accept_token,
    invitation_create,
    invitation_decline,
    invitation_revoke,
    invite_link_create,
)

FRESH = "fresh_invitation"  # session key: the address to show once


class InvitationsPageView(PageView):
    """Open invitations, and the two ways to make one."""

    actions = {"GET": "invitation.write", "POST": "invitation.write"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return self._show(InviteForm(), LinkForm())

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        by_link = request.POST.get("by") == "link"
        form: Any = LinkForm(request.POST) if by_link else InviteForm(request.POST)
        if form.is_valid():
            if sent_before(request):
                return redirect("invitations-page", space_id)
            try:
                fresh = self._make(by_link, form.cleaned_data)
            except DomainError as error:
                put_error(form, error)
            else:
                request.session[FRESH] = fresh
                return redirect("invitations-page", space_id)
        return self._show(InviteForm() if by_link else form, form if by_link else LinkForm(), status=400)

    def _make(self, by_link: bool, wanted: dict[str, Any]) -> dict[str, str]:
        space, base = space_get(actor=self.actor), base_url(self.request, settings.KB_BASE_URL)
        if by_link:
            _row, address = invite_link_create(actor=self.actor, space=space, base_url=base, **wanted)
            return {"address": address, "email": ""}
        language = self.request.LANGUAGE_CODE  # type: ignore[attr-defined]
        row, address = invitation_create(actor=self.actor, space=space, base_url=base, language=language, **wanted)
        return {"address": address, "email": row.email}

    def _show(self, invite: InviteForm, link: LinkForm, status: int = 200) -> HttpResponse:
        context = {
            "space": space_get(actor=self.actor),
            "rows": list(invitation_list(actor=self.actor)[:200]),
            "invite_form": invite,
            "link_form": link,
            "fresh": once(self.request, FRESH),
            "mails_are_printed": settings.EMAIL_BACKEND.endswith("console.EmailBackend"),
        }
        return self.page("portal/invitations.html", context, status=status)


class InvitationRevokeView(PageView):
    actions = {"POST": "invitation.write"}

    def post(self, request: HttpRequest, space_id: int, invitation_id: int) -> HttpResponse:
        try:
            invitation_revoke(actor=self.actor, invitation=invitation_get(actor=self.actor, invitation_id=invitation_id))
        except Conflict as error:
            messages.error(request, str(error))
        else:
            messages.success(request, _("The invitation is withdrawn; its link opens nothing any more."))
        return redirect("invitations-page", space_id)


class InvitationLandingView(PageView):
    """Where an invitation's address leads: accept when signed in, else sign in or sign up and come back."""

    actions = {"GET": "invitation.open", "POST": "invitation.respond"}

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            invitation = invitation_lookup(token=token)
        except Gone as error:
            return self.page("portal/invitation_gone.html", {"message": str(error)}, status=410)
        person = user_get(actor=self.actor) if self.actor.kind == "user" else None
        if person is None:
            request.session[INVITATION] = token
        here = reverse("invitation-landing", args=[token])
        context = {
            "invitation": invitation,
            "person": person,
            "is_for_me": person is not None and (invitation.is_link or invitation.email == person.email),
            "sign_in_url": reverse("account_login") + "?" + urlencode({"next": here}),
            "sign_up_url": reverse("account_signup") + ("?" + urlencode({"email": invitation.email}) if invitation.email else ""),
        }
        response = self.page("portal/invitation.html", context)
        response["Referrer-Policy"] = "no-referrer"  # SECURITY: the address is the key
        return response

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            membership = invitation_accept_token(actor=self.actor, token=token)
        except Conflict as error:
            messages.info(request, str(error))
            return redirect("home", error.details["space_id"])
        except Gone as error:
            return self.page("portal/invitation_gone.html", {"message": str(error)}, status=410)
        request.session.pop(INVITATION, None)
        messages.success(request, _("Welcome to %(name)s.") % {"name": membership.space.name})
        return redirect("home", membership.space_id)


class MyInvitationsPageView(PageView):
    actions = {"GET": "invitation.mine"}

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page("portal/my_invitations.html", {"rows": my_invitations(actor=self.actor)})


class MyInvitationAnswerView(PageView):
    """`answer` is accept or decline."""

    actions = {"POST": "invitation.respond"}

    def post(self, request: HttpRequest, invitation_id: int, answer: str) -> HttpResponse:
        invitation = my_invitation_get(actor=self.actor, invitation_id=invitation_id)
        try:
            if answer == "decline":
                invitation_decline(actor=self.actor, invitation=invitation)
                messages.success(request, _("The invitation is declined."))
                return redirect("my-invitations-page")
            membership = invitation_accept(actor=self.actor, invitation=invitation)
        except (Conflict, Gone, Forbidden) as error:
            messages.error(request, str(error))
            return redirect("my-invitations-page")
        messages.success(request, _("Welcome to %(name)s.") % {"name": membership.space.name})
        return redirect("home", membership.space_id)
