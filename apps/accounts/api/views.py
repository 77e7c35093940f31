"""Sign-in routes that need no space (contract platform 1.5); the ones that name a person's spaces live in `apps.spaces.api`."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from apps.accounts.api.serializers import ConfigOut, MessageOut, OidcOut, PasswordIn, RefreshIn, TokensOut
from apps.accounts.selectors import registration_mode
from apps.accounts.services import password_change, tokens_refresh, user_sign_out
from apps.common.api.throttle import SignInThrottle
from apps.common.api.views import ApiView, Op
from apps.common.errors import Forbidden

TAGS = ("auth",)


class RefreshView(ApiView):
    operations = {
        "POST": Op(
            "auth.refresh",
            "Exchange a refresh token",
            RefreshIn,
            reply=TokensOut,
            shape="bare",
            errors=(400, 401, 429),
            tags=TAGS,
            description="A refresh token works once; the answer holds its successor.",
        )
    }
    throttle_classes = [SignInThrottle]

    def post(self, request: Any) -> Response:
        access, refresh = tokens_refresh(actor=self.actor, refresh=self.read()["refreshToken"])
        return self.render({"success": True, "message": "Token refreshed successfully", "access_token": access, "refresh_token": refresh})


class LogoutView(ApiView):
    operations = {
        "POST": Op(
            "auth.sign-out",
            "End every token of the bearer",
            reply=MessageOut,
            shape="bare",
            errors=(401,),
            tags=TAGS,
            description="An expired token is accepted.",
        )
    }

    def post(self, request: Any) -> Response:
        scheme, _space, bearer = request.headers.get("Authorization", "").partition(" ")
        user_sign_out(actor=self.actor, bearer=bearer.strip() if scheme.lower() == "bearer" else "")
        return self.render({"success": True, "message": "Logout successful"})


class ChangePasswordView(ApiView):
    operations = {
        "POST": Op(
            "auth.password",
            "Change the own password",
            PasswordIn,
            reply=MessageOut,
            shape="bare",
            errors=(400, 401, 403, 429),
            tags=TAGS,
            description="Ends every token and browser session of the person. `error.details` says what was wrong: "
            "`invalid_old_password`, `password_policy` or `same_password`.",
        )
    }
    throttle_classes = [SignInThrottle]

    def post(self, request: Any) -> Response:
        password_change(actor=self.actor, **self.read())
        return self.render({"success": True, "message": "Password changed successfully"})


class ConfigView(ApiView):
    operations = {
        "GET": Op("auth.config", "Who may sign up", reply=ConfigOut, shape="bare", errors=(), tags=TAGS),
    }

    def get(self, request: Any) -> Response:
        return self.render({"success": True, "registration_mode": registration_mode()})


class AutoSetupView(ApiView):
    operations = {
        "POST": Op(
            "auth.auto-setup",
            "Refused: this portal has no unattended set-up",
            reply=MessageOut,
            shape="bare",
            errors=(403,),
            tags=TAGS,
            description="Clients ask on their first visit and take the refusal as `sign in normally`.",
        )
    }

    def post(self, request: Any) -> Response:
        raise Forbidden("Auto setup is not available in this edition")


class OidcConfigView(ApiView):
    operations = {"GET": Op("auth.config", "Whether single sign-on is on", reply=OidcOut, shape="bare", errors=(), tags=TAGS)}

    def get(self, request: Any) -> Response:
        return self.render({"success": True, "enabled": False})
