"""Who is in a space."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from apps.common.errors import Conflict
from apps.common.policy import allowed
from apps.common.web.views import PageView
from apps.portal.forms.spaces import RoleForm
from apps.spaces.selectors import key_counts, member_list, space_get
from apps.spaces.services.members import member_leave, member_remove, member_role_set

PER_PAGE = 50


class MembersPageView(PageView):
    actions = {"GET": "member.list"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        search = request.GET.get("q", "").strip()[:200]
        pages = Paginator(member_list(actor=self.actor, search=search), PER_PAGE)
        page = pages.get_page(request.GET.get("page"))
        may_write = allowed(self.actor, "member.write")
        keys = key_counts(actor=self.actor) if may_write else {}
        rows = [{"member": row, "is_me": row.user_id == self.actor.user_id, "keys": keys.get(row.user_id, 0)} for row in page]
        context = {
            "space": space_get(actor=self.actor),
            "rows": rows,
            "members_page": page,
            "q": search,
            "may_write": may_write,
            "may_leave": allowed(self.actor, "member.leave"),
        }
        return self.page("portal/members.html", context)


class MemberRoleView(PageView):
    actions = {"POST": "member.write"}

    def post(self, request: HttpRequest, space_id: int, user_id: uuid.UUID) -> HttpResponse:
        form = RoleForm(request.POST)
        if not form.is_valid():
            messages.error(request, _("Choose a role."))
            return redirect("members-page", space_id)
        try:
            row = member_role_set(actor=self.actor, space=space_get(actor=self.actor), user_id=user_id, role=form.cleaned_data["role"])
        except Conflict as error:
            messages.error(request, str(error))
        else:
            messages.success(request, _("%(name)s is now: %(role)s.") % {"name": row.user.username, "role": row.get_role_display()})
        return redirect("members-page", space_id)


class MemberRemoveView(PageView):
    actions = {"POST": "member.write"}

    def post(self, request: HttpRequest, space_id: int, user_id: uuid.UUID) -> HttpResponse:
        try:
            member_remove(actor=self.actor, space=space_get(actor=self.actor), user_id=user_id)
        except Conflict as error:
            messages.error(request, str(error))
        else:
            messages.success(request, _("The person is no longer a member."))
        return redirect("root") if user_id == self.actor.user_id else redirect("members-page", space_id)


class MemberLeaveView(PageView):
    actions = {"POST": "member.leave"}

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        space = space_get(actor=self.actor)
        try:
            member_leave(actor=self.actor, space=space)
        except Conflict as error:
            messages.error(request, str(error))
            return redirect("members-page", space_id)
        messages.success(request, _("You have left %(name)s.") % {"name": space.name})
        return redirect("root")
