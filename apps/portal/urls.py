"""Pages and health checks."""

from __future__ import annotations

from django.urls import path, re_path

from apps.portal import ask_urls, base_urls, evaluation_urls, reader_urls, source_urls, wiki_urls
from apps.portal.views import health, invitations, keys, members, models, profile, spaces, styleguide

SPACE = "s/<int:space_id>"

urlpatterns = [
    *base_urls.urlpatterns,
    *reader_urls.urlpatterns,
    *ask_urls.urlpatterns,
    *source_urls.urlpatterns,
    *evaluation_urls.urlpatterns,
    *wiki_urls.urlpatterns,
    path("styleguide", styleguide.styleguide, name="styleguide"),
    path("health", health.health, name="health"),
    path("healthz/live", health.live, name="health-live"),
    path("healthz/ready", health.ready, name="health-ready"),
    path("", spaces.RootView.as_view(), name="root"),
    path("spaces/new", spaces.SpaceNewView.as_view(), name="space-new"),
    path(f"{SPACE}/settings", spaces.SpaceSettingsView.as_view(), name="space-settings"),
    path(f"{SPACE}/delete", spaces.SpaceDeleteView.as_view(), name="space-delete"),
    path(f"{SPACE}/members", members.MembersPageView.as_view(), name="members-page"),
    path(f"{SPACE}/members/<uuid:user_id>/role", members.MemberRoleView.as_view(), name="member-role"),
    path(f"{SPACE}/members/<uuid:user_id>/remove", members.MemberRemoveView.as_view(), name="member-remove"),
    path(f"{SPACE}/leave", members.MemberLeaveView.as_view(), name="member-leave"),
    path(f"{SPACE}/invitations", invitations.InvitationsPageView.as_view(), name="invitations-page"),
    path(f"{SPACE}/invitations/<int:invitation_id>/revoke", invitations.InvitationRevokeView.as_view(), name="invitation-revoke"),
    path(f"{SPACE}/keys", keys.KeysPageView.as_view(), name="keys-page"),
    path(f"{SPACE}/keys/<int:key_id>/revoke", keys.KeyRevokeView.as_view(), name="key-revoke"),
    path(f"{SPACE}/models", models.ModelsPageView.as_view(), name="models-page"),
    path(f"{SPACE}/models/new", models.ModelNewView.as_view(), name="model-new"),
    path(f"{SPACE}/models/<uuid:model_id>", models.ModelEditView.as_view(), name="model-edit"),
    path(f"{SPACE}/models/<uuid:model_id>/test", models.ModelTestView.as_view(), name="model-test"),
    path(f"{SPACE}/models/<uuid:model_id>/delete", models.ModelDeleteView.as_view(), name="model-delete"),
    path("invitations", invitations.MyInvitationsPageView.as_view(), name="my-invitations-page"),
    re_path(
        r"^invitations/(?P<invitation_id>[0-9]{1,18})/(?P<answer>accept|decline)$",
        invitations.MyInvitationAnswerView.as_view(),
        name="my-invitation-answer",
    ),
    path("invitations/<str:token>", invitations.InvitationLandingView.as_view(), name="invitation-landing"),
    path("profile", profile.ProfileView.as_view(), name="profile"),
    path("appearance", profile.AppearanceView.as_view(), name="appearance"),
]
