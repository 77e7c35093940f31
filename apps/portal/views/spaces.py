"""Entering the portal, organizations and their settings."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from apps.accounts.selectors import user_get
from apps.common.errors import DomainError, InvalidInput
from apps.common.policy import allowed
from apps.common.web.views import PageView
from apps.portal.forms.spaces import DeleteForm, SpaceForm
from apps.portal.views.forms import put_error, sent_before
from apps.spaces.selectors import default_space, member_list, space_get
from apps.spaces.services.space import space_create, space_delete, space_update


class RootView(PageView):
    """The last space one was in; sign-in for who is not signed in."""

    actions = {"GET": "portal.enter"}

    def get(self, request: HttpRequest) -> HttpResponse:
        space = default_space(user=user_get(actor=self.actor))
        return redirect("home", space.pk) if space else redirect("space-new")


class SpaceNewView(PageView):
    actions = {"GET": "space.create", "POST": "space.create"}

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.page("portal/space_new.html", {"form": SpaceForm()})

    def post(self, request: HttpRequest) -> HttpResponse:
        form = SpaceForm(request.POST)
        if form.is_valid():
            if sent_before(request):
                return redirect("/")
            try:
                space = space_create(actor=self.actor, **form.cleaned_data)
            except DomainError as error:
                put_error(form, error)
            else:
                messages.success(request, _("%(name)s is ready. Invite the people you work with.") % {"name": space.name})
                return redirect("invitations-page", space.pk)
        return self.page("portal/space_new.html", {"form": form}, status=400)


class SpaceSettingsView(PageView):
    actions = {"GET": "space.update", "POST": "space.update"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        space = space_get(actor=self.actor)
        return self._show(SpaceForm(initial={"name": space.name, "description": space.description}), DeleteForm())

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        form = SpaceForm(request.POST)
        if form.is_valid():
            try:
                space_update(actor=self.actor, space=space_get(actor=self.actor), **form.cleaned_data)
            except InvalidInput as error:
                put_error(form, error)
            else:
                messages.success(request, _("The settings are saved."))
                return redirect("space-settings", space_id)
        return self._show(form, DeleteForm(), status=400)

    def _show(self, form: SpaceForm, delete_form: DeleteForm, status: int = 200) -> HttpResponse:
        space = space_get(actor=self.actor)
        return self.page("portal/space_settings.html", settings_context(self, space, form, delete_form), status=status)


class SpaceDeleteView(PageView):
    actions = {"POST": "space.delete"}

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        space, form = space_get(actor=self.actor), DeleteForm(request.POST)
        if form.is_valid():
            try:
                space_delete(actor=self.actor, space=space, typed_name=form.cleaned_data["typed_name"])
            except DomainError as error:
                put_error(form, error)
            else:
                messages.success(request, _("%(name)s is deleted.") % {"name": space.name})
                return redirect("root")
        fresh = SpaceForm(initial={"name": space.name, "description": space.description})
        return self.page("portal/space_settings.html", settings_context(self, space, fresh, form), status=400)


def settings_context(view: PageView, space: object, form: SpaceForm, delete_form: DeleteForm) -> dict[str, object]:
    """What templates/portal/space_settings.html reads."""
    return {
        "space": space,
        "form": form,
        "delete_form": delete_form,
        "may_delete": allowed(view.actor, "space.delete"),
        "members": member_list(actor=view.actor).count(),
    }
