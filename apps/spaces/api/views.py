"""Workspaces, members and invitations (contract platform 1.6 and 1.8)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from rest_framework.response import Response

from apps.common.api.views import ApiView, Op
from apps.common.errors import Forbidden, NotFound
from apps.spaces import selectors
from apps.spaces.api import serializers as s
from apps.spaces.models import Space
from apps.spaces.services import invitations as invitation_services
from apps.spaces.services import members as member_services
from apps.spaces.services import space as space_services

SPACES, MEMBERS = ("workspaces",), ("members",)


def base_url(request: Any) -> str:
    """Where people reach the portal: `KB_BASE_URL`, else the address of this request."""
    return settings.KB_BASE_URL or request.build_absolute_uri("/")


class WorkspaceView(ApiView):
    """Routes that name a workspace: it must be the active one, so that no answer tells which others exist (contract platform 1.6)."""

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.kwargs["workspace_id"] != self.actor.space_id:
            raise Forbidden(_("This is not the active workspace. Send X-Tenant-ID to choose it."), code="tenant_not_current")

    @property
    def space(self) -> Space:
        return selectors.space_get(actor=self.actor)


class TenantsView(ApiView):
    operations = {
        "GET": Op("space.list", "The active workspace, as a list", reply=s.TenantsOut, tags=SPACES),
        "POST": Op(
            "space.create",
            "Make an organization",
            s.SpaceIn,
            reply=s.TenantOut,
            status=201,
            errors=(400, 401, 403, 429),
            tags=SPACES,
            description="The caller becomes its admin. One person may make 10.",
        ),
    }

    def get(self, request: Any) -> Response:
        return self.render({"items": [selectors.space_get(actor=self.actor)]})

    def post(self, request: Any) -> Response:
        return self.render(space_services.space_create(actor=self.actor, **self.read()))


class TenantView(WorkspaceView):
    operations = {
        "GET": Op("space.read", "The active workspace", reply=s.TenantOut, tags=SPACES),
        "PUT": Op("space.update", "Rename or describe it", s.SpaceChangeIn, reply=s.TenantOut, tags=SPACES),
        "DELETE": Op(
            "space.delete",
            "Delete an organization for everyone",
            shape="message",
            errors=(401, 403, 409),
            tags=SPACES,
            description="A personal workspace cannot be deleted.",
        ),
    }

    def get(self, request: Any, workspace_id: int) -> Response:
        return self.render(self.space)

    def put(self, request: Any, workspace_id: int) -> Response:
        return self.render(space_services.space_update(actor=self.actor, space=self.space, **self.read()))

    def delete(self, request: Any, workspace_id: int) -> Response:
        space_services.space_delete(actor=self.actor, space=self.space)
        return self.render(None, message="Workspace deleted successfully")


class MembersView(WorkspaceView):
    operations = {
        "GET": Op("member.list", "Members", query=s.MembersQuery, reply=s.MembersOut, tags=MEMBERS),
        "POST": Op(
            "member.write",
            "Let a registered person in",
            s.MemberIn,
            reply=s.MemberOut,
            status=201,
            errors=(400, 401, 403, 404, 409),
            tags=MEMBERS,
            description="`role`: owner and admin mean admin, contributor and viewer mean member. API keys cannot make admins.",
        ),
    }

    def get(self, request: Any, workspace_id: int) -> Response:
        asked = self.asked()
        return self.render(paged("members", selectors.member_list(actor=self.actor, search=asked["q"]), asked))

    def post(self, request: Any, workspace_id: int) -> Response:
        return self.render(member_services.member_add(actor=self.actor, space=self.space, **self.read()))


class MemberView(WorkspaceView):
    operations = {
        "PUT": Op("member.write", "Change a role", s.RoleIn, reply=s.MemberOut, errors=(400, 401, 403, 404, 409), tags=MEMBERS),
        "DELETE": Op(
            "member.write",
            "Remove a member",
            shape="message",
            errors=(401, 403, 404, 409),
            tags=MEMBERS,
            description="Access ends with this request; API keys an admin made end with it.",
        ),
    }

    def put(self, request: Any, workspace_id: int, user_id: str) -> Response:
        role = self.read()["role"]
        return self.render(member_services.member_role_set(actor=self.actor, space=self.space, user_id=known_user_id(user_id), role=role))

    def delete(self, request: Any, workspace_id: int, user_id: str) -> Response:
        member_services.member_remove(actor=self.actor, space=self.space, user_id=known_user_id(user_id))
        return self.render(None, message="Member removed successfully")


class LeaveView(WorkspaceView):
    operations = {"POST": Op("member.leave", "Leave", shape="message", errors=(401, 403, 409), tags=MEMBERS)}

    def post(self, request: Any, workspace_id: int) -> Response:
        member_services.member_leave(actor=self.actor, space=self.space)
        return self.render(None, message="Left workspace successfully")


class InvitationsView(WorkspaceView):
    operations = {
        "GET": Op("invitation.list", "Invitations", query=s.InvitationsQuery, reply=s.InvitationsOut, tags=MEMBERS),
        "POST": Op(
            "invitation.write",
            "Invite by e-mail",
            s.InvitationIn,
            reply=s.InvitationOut,
            status=201,
            errors=(400, 401, 403, 409),
            tags=MEMBERS,
            description="The person need not be registered. Open for 7 days; `invite_url` is in this answer only.",
        ),
    }

    def get(self, request: Any, workspace_id: int) -> Response:
        asked = self.asked()
        rows = selectors.invitation_list(actor=self.actor, include_terminal=asked["include_terminal"])
        return self.render(paged("invitations", rows, asked))

    def post(self, request: Any, workspace_id: int) -> Response:
        invitation, address = invitation_services.invitation_create(
            actor=self.actor, space=self.space, base_url=base_url(request), language=request.LANGUAGE_CODE, **self.read()
        )
        self.render_context = {"invite_url": address}
        return self.render(invitation)


class InvitationView(WorkspaceView):
    operations = {"DELETE": Op("invitation.write", "Withdraw", shape="message", errors=(401, 403, 404, 409), tags=MEMBERS)}

    def delete(self, request: Any, workspace_id: int, invitation_id: int) -> Response:
        invitation = selectors.invitation_get(actor=self.actor, invitation_id=invitation_id)
        invitation_services.invitation_revoke(actor=self.actor, invitation=invitation)
        return self.render(None, message="Invitation revoked successfully")


class InviteLinksView(WorkspaceView):
    operations = {
        "POST": Op(
            "invitation.write",
            "Make an invitation link",
            s.InviteLinkIn,
            reply=s.InvitationOut,
            status=201,
            errors=(400, 401, 403),
            tags=MEMBERS,
            description="Whoever has `invite_url` may join for 7 days, until it is withdrawn; it is in this answer only.",
        )
    }

    def post(self, request: Any, workspace_id: int) -> Response:
        invitation, address = invitation_services.invite_link_create(
            actor=self.actor, space=self.space, base_url=base_url(request), **self.read()
        )
        self.render_context = {"invite_url": address}
        return self.render(invitation)


class MyInvitationsView(ApiView):
    operations = {"GET": Op("invitation.mine", "Invitations to me", reply=s.InvitationOut, shape="list", errors=(401, 403), tags=MEMBERS)}

    def get(self, request: Any) -> Response:
        return self.render(selectors.my_invitations(actor=self.actor))


class MyPendingView(ApiView):
    operations = {"GET": Op("invitation.mine", "How many wait for me", reply=s.PendingOut, errors=(401, 403), tags=MEMBERS)}

    def get(self, request: Any) -> Response:
        return self.render({"pending_count": len(selectors.my_invitations(actor=self.actor))})


class AcceptView(ApiView):
    operations = {
        "POST": Op("invitation.respond", "Accept", reply=s.AcceptedOut, errors=(401, 403, 404, 409, 410), tags=MEMBERS),
    }

    def post(self, request: Any, invitation_id: int) -> Response:
        invitation = selectors.my_invitation_get(actor=self.actor, invitation_id=invitation_id)
        return self.render({"membership": invitation_services.invitation_accept(actor=self.actor, invitation=invitation)})


class DeclineView(ApiView):
    operations = {"POST": Op("invitation.respond", "Decline", shape="message", errors=(401, 403, 404, 410), tags=MEMBERS)}

    def post(self, request: Any, invitation_id: int) -> Response:
        invitation = selectors.my_invitation_get(actor=self.actor, invitation_id=invitation_id)
        invitation_services.invitation_decline(actor=self.actor, invitation=invitation)
        return self.render(None, message="Invitation declined")


class AcceptByTokenView(ApiView):
    operations = {
        "POST": Op(
            "invitation.respond",
            "Accept with the token of an invitation link",
            s.TokenIn,
            reply=s.AcceptedOut,
            errors=(400, 401, 403, 409, 410),
            tags=MEMBERS,
        )
    }

    def post(self, request: Any) -> Response:
        token = self.read()["token"]
        return self.render({"membership": invitation_services.invitation_accept_token(actor=self.actor, token=token)})


def paged(name: str, rows: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """One page of a queryset under the name the contract gives the list."""
    page, size = asked["page"], asked["page_size"]
    start = (page - 1) * size
    return {name: list(rows[start : start + size]), "total": rows.count(), "page": page, "page_size": size}


def known_user_id(raw: str) -> Any:
    """A person's id from a path. Raises: NotFound when it cannot be one."""
    found = selectors.user_id_of(raw)
    if found is None:
        raise NotFound(_("This person is not a member of the space."), code="member_missing")
    return found
