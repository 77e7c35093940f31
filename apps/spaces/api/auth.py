"""Sign-in routes that name a person's spaces (contract platform 1.5)."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle

from apps.accounts.models import User
from apps.accounts.selectors import user_get
from apps.accounts.services import preferences_update, token_revoke, tokens_issue, user_register, user_sign_in
from apps.common.actor import Actor
from apps.common.api.throttle import SignInThrottle
from apps.common.api.views import ApiView, Op
from apps.spaces.api import serializers as s
from apps.spaces.doors import enter_space
from apps.spaces.models import Space
from apps.spaces.selectors import default_space, home_id, invitation_lookup, membership_list, space_find
from apps.spaces.services.invitations import invitation_register
from apps.spaces.services.space import space_switch

TAGS = ("auth",)


class AccountThrottle(SimpleRateThrottle):
    """`KB_THROTTLE_SIGN_IN` per account tried, whatever addresses the attempts come from."""

    scope = "sign-in"

    def get_cache_key(self, request: Any, view: Any) -> str | None:
        email = request.data.get("email") if isinstance(request.data, dict) else None
        return f"throttle:account:{email.strip().lower()[:254]}" if isinstance(email, str) else None


class SessionAnswer(ApiView):
    """Answers with what a signed-in client starts from."""

    def session(self, user: User, space: Space | None, message: str) -> Response:
        """The login shape. `space` is the active one."""
        person = Actor(kind="user", user_id=user.pk)
        access, refresh = tokens_issue(actor=person, user=user, tenant_id=space.pk if space else None)
        self.render_context = {"home_id": home_id(actor=person)}
        return self.render(
            {
                "success": True,
                "message": message,
                "user": user,
                "active_tenant": space,
                "memberships": membership_list(actor=person),
                "token": access,
                "refresh_token": refresh,
            }
        )


class RegisterView(ApiView):
    operations = {
        "POST": Op(
            "auth.register",
            "Make an account",
            s.RegisterIn,
            reply=s.PersonOut,
            shape="bare",
            status=201,
            errors=(400, 403, 429),
            tags=TAGS,
            description="Also makes the personal workspace. Answers no tokens: sign in next. Password: 8 to 32 characters with a letter "
            "and a digit. 403 where sign-up is by invitation only.",
        )
    }
    throttle_classes = [SignInThrottle]

    def post(self, request: Any) -> Response:
        user = user_register(actor=self.actor, **self.read())
        self.render_context = {"home_id": home_id(actor=Actor(kind="user", user_id=user.pk))}
        return self.render({"success": True, "message": "Registration successful", "user": user})


class LoginView(SessionAnswer):
    operations = {
        "POST": Op(
            "auth.sign-in",
            "Sign in",
            s.LoginIn,
            reply=s.LoginOut,
            shape="bare",
            errors=(400, 401, 429),
            tags=TAGS,
            description="Wrong credentials answer 401: `success` false, the message `Invalid email or password` and `memberships` null.",
        )
    }
    throttle_classes = [SignInThrottle, AccountThrottle]

    def post(self, request: Any) -> Response:
        user = user_sign_in(actor=self.actor, **self.read())
        return self.session(user, default_space(user=user), "Login successful")


class ValidateView(ApiView):
    operations = {"GET": Op("auth.validate", "Whose token this is", reply=s.PersonOut, shape="bare", errors=(401, 403), tags=TAGS)}

    def get(self, request: Any) -> Response:
        self.render_context = {"home_id": home_id(actor=self.actor)}
        return self.render({"success": True, "message": "Token is valid", "user": user_get(actor=self.actor)})


class MeView(ApiView):
    operations = {
        "GET": Op(
            "auth.me",
            "The caller, their workspaces and the active one",
            reply=s.MeOut,
            errors=(401,),
            tags=TAGS,
            description="With an API key `user` stands for the key and `memberships` holds its workspace.",
        )
    }

    def get(self, request: Any) -> Response:
        space = space_find(actor=self.actor)
        is_key = self.actor.kind == "key"
        context = {"home_id": home_id(actor=self.actor)}
        return self.render(
            {
                "user": _key_user(self.actor) if is_key else s.UserOut(user_get(actor=self.actor), context=context).data,
                "tenant": space,
                "memberships": membership_list(actor=self.actor),
                "tenant_required": space is None,
                "capabilities": {"can_create_tenant": not is_key, "auto_accept_invitation": False},
            }
        )


class PreferencesView(ApiView):
    operations = {
        "PUT": Op(
            "auth.preferences",
            "Remember the active workspace",
            s.PreferencesIn,
            reply=s.PreferencesOut,
            errors=(400, 401, 403),
            tags=TAGS,
            description="`last_active_tenant_id` 0 clears it; keys this portal does not know are ignored.",
        )
    }

    def put(self, request: Any) -> Response:
        body = self.read()
        if "last_active_tenant_id" not in body:
            return self.render(user_get(actor=self.actor))
        wanted = body["last_active_tenant_id"] or None
        if wanted is not None:
            enter_space(self.actor, wanted)
        return self.render(preferences_update(actor=self.actor, last_space_id=wanted))


class SwitchTenantView(SessionAnswer):
    operations = {
        "POST": Op(
            "auth.switch-space",
            "Tokens for another of one's workspaces",
            s.SwitchIn,
            reply=s.LoginOut,
            shape="bare",
            errors=(400, 401, 403, 429),
            tags=TAGS,
            description="A `refresh_token` that is sent along is used up. Sending `X-Tenant-ID` with a request switches just that request.",
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        _entered, space = space_switch(actor=self.actor, space_id=body["tenant_id"])
        if body.get("refresh_token"):
            token_revoke(actor=self.actor, refresh=body["refresh_token"])
        return self.session(user_get(actor=self.actor), space, "Tenant switched successfully")


class LookupView(ApiView):
    operations = {
        "POST": Op(
            "invitation.lookup",
            "What an invitation token is for",
            s.TokenIn,
            reply=s.LookupOut,
            errors=(400, 410, 429),
            tags=TAGS,
            description="A token that is unknown, used up, withdrawn or expired answers 410.",
        )
    }
    throttle_classes = [SignInThrottle]

    def post(self, request: Any) -> Response:
        return self.render(invitation_lookup(token=self.read()["token"]))


class RegisterByInviteView(SessionAnswer):
    operations = {
        "POST": Op(
            "auth.register",
            "Make an account with an invitation",
            s.InvitedIn,
            reply=s.LoginOut,
            shape="bare",
            status=201,
            errors=(400, 403, 410, 429),
            tags=TAGS,
            description="Works where sign-up is by invitation only. The account joins the inviting workspace, all or nothing.",
        )
    }
    throttle_classes = [SignInThrottle]

    def post(self, request: Any) -> Response:
        user, membership = invitation_register(actor=Actor.anonymous(), **self.read())
        return self.session(user, membership.space, "Registration successful")


def _key_user(actor: Actor) -> dict[str, Any]:
    """The user an API key stands for in `auth/me` (contract platform 1.5)."""
    return {
        "id": f"api-key-{actor.key_id}",
        "username": "API key",
        "email": "",
        "avatar": "",
        "tenant_id": actor.space_id,
        "is_active": True,
        "can_access_all_tenants": False,
        "is_system_admin": False,
        "preferences": {},
        "created_at": None,
        "updated_at": None,
        "deleted_at": None,
    }
