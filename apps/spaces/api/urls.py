"""Routes of this context: `upstream` under /api/v1/, `proxied` under both knowledge families."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.spaces.api import auth, keys, views

TENANT = "tenants/<int:workspace_id>"

upstream: list[URLPattern] = [
    path("auth/register", auth.RegisterView.as_view(), name="auth-register"),
    path("auth/login", auth.LoginView.as_view(), name="auth-login"),
    path("auth/validate", auth.ValidateView.as_view(), name="auth-validate"),
    path("auth/me", auth.MeView.as_view(), name="auth-me"),
    path("auth/me/preferences", auth.PreferencesView.as_view(), name="auth-preferences"),
    path("auth/switch-tenant", auth.SwitchTenantView.as_view(), name="auth-switch-tenant"),
    path("auth/invitations/lookup", auth.LookupView.as_view(), name="auth-invitation-lookup"),
    path("auth/register-by-invite", auth.RegisterByInviteView.as_view(), name="auth-register-by-invite"),
    path("tenants", views.TenantsView.as_view(), name="tenants"),
    path(TENANT, views.TenantView.as_view(), name="tenant"),
    path(f"{TENANT}/members", views.MembersView.as_view(), name="members"),
    path(f"{TENANT}/members/<str:user_id>", views.MemberView.as_view(), name="member"),
    path(f"{TENANT}/leave", views.LeaveView.as_view(), name="tenant-leave"),
    path(f"{TENANT}/invitations", views.InvitationsView.as_view(), name="invitations"),
    path(f"{TENANT}/invitations/<int:invitation_id>", views.InvitationView.as_view(), name="invitation"),
    path(f"{TENANT}/invite-links", views.InviteLinksView.as_view(), name="invite-links"),
    path(f"{TENANT}/api-keys", keys.KeysView.as_view(), name="api-keys"),
    path(f"{TENANT}/api-keys/<int:key_id>", keys.KeyView.as_view(), name="api-key"),
    path("me/invitations", views.MyInvitationsView.as_view(), name="my-invitations"),
    path("me/invitations/pending-count", views.MyPendingView.as_view(), name="my-invitations-pending"),
    path("me/invitations/accept-by-token", views.AcceptByTokenView.as_view(), name="my-invitation-accept-token"),
    path("me/invitations/<int:invitation_id>/accept", views.AcceptView.as_view(), name="my-invitation-accept"),
    path("me/invitations/<int:invitation_id>/decline", views.DeclineView.as_view(), name="my-invitation-decline"),
    path("system/info", keys.SystemInfoView.as_view(), name="system-info"),
    path("system/capabilities", keys.SystemCapabilitiesView.as_view(), name="system-capabilities"),
]
proxied: list[URLPattern] = []
