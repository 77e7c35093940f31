"""Shapes of people, spaces, members, invitations and keys (contract platform 1.5 to 1.8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from django.conf import settings
from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.accounts.models import User
from apps.common.api.views import PageQuery
from apps.spaces.models import ApiKey, Invitation, Membership, Space
from apps.spaces.selectors import STORAGE_QUOTA_BYTES, role_word, storage_used


class OptionalAbsent(serializers.Serializer[Any]):
    """What the contract marks optional is left out rather than null."""

    optional: ClassVar[tuple[str, ...]] = ()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        row = super().to_representation(instance)
        return {name: value for name, value in row.items() if name not in self.optional or value not in (None, "")}


def password_field(**kwargs: Any) -> serializers.CharField:
    return serializers.CharField(max_length=256, trim_whitespace=False, **kwargs)


class RegisterIn(serializers.Serializer[Any]):
    username = serializers.CharField(min_length=2, max_length=50)
    email = serializers.EmailField(max_length=254)
    password = password_field(min_length=6)


class InvitedIn(RegisterIn):
    token = serializers.CharField(max_length=200)


class LoginIn(serializers.Serializer[Any]):
    email = serializers.EmailField(max_length=254)
    password = password_field(min_length=6)


class TokenIn(serializers.Serializer[Any]):
    token = serializers.CharField(max_length=200)


class PreferencesIn(serializers.Serializer[Any]):
    """Only the key this portal knows; others are left alone. 0 clears."""

    last_active_tenant_id = serializers.IntegerField(min_value=0, max_value=2**63 - 1, required=False)


class SwitchIn(serializers.Serializer[Any]):
    tenant_id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    refresh_token = serializers.CharField(max_length=4096, required=False, allow_blank=True)


class PreferencesOut(serializers.Serializer[User]):
    last_active_tenant_id = serializers.IntegerField(source="last_space_id")

    def to_representation(self, instance: User) -> dict[str, Any]:
        return {"last_active_tenant_id": instance.last_space_id} if instance.last_space_id else {}


class UserOut(serializers.Serializer[User]):
    """`tenant_id` is the personal space, given as `home_id` in the context."""

    id = serializers.CharField()
    username = serializers.CharField()
    email = serializers.EmailField()
    avatar = serializers.SerializerMethodField()
    tenant_id = serializers.SerializerMethodField()
    is_active = serializers.BooleanField()
    can_access_all_tenants = serializers.SerializerMethodField()
    is_system_admin = serializers.BooleanField(source="is_staff")
    preferences = PreferencesOut(source="*")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.SerializerMethodField()

    def get_avatar(self, user: User) -> str:
        return ""

    def get_tenant_id(self, user: User) -> int:
        return int(self.context.get("home_id") or 0)

    def get_can_access_all_tenants(self, user: User) -> bool:
        return False

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_deleted_at(self, user: User) -> None:
        """Always null: the account of a person who is gone is not shown."""
        return None


class TenantOut(serializers.Serializer[Space]):
    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    status = serializers.SerializerMethodField()
    retriever_engines = serializers.SerializerMethodField()
    business = serializers.SerializerMethodField()
    storage_quota = serializers.SerializerMethodField()
    storage_used = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField()

    def get_status(self, space: Space) -> str:
        return "inactive" if space.deleted_at else "active"

    def get_retriever_engines(self, space: Space) -> dict[str, Any]:
        return {"engines": [{"retriever_type": kind, "retriever_engine_type": settings.SEARCH_BACKEND} for kind in ("keywords", "vector")]}

    def get_business(self, space: Space) -> str:
        return ""

    def get_storage_quota(self, space: Space) -> int:
        return STORAGE_QUOTA_BYTES

    def get_storage_used(self, space: Space) -> int:
        return storage_used(space_id=space.pk)


class TenantsOut(serializers.Serializer[Any]):
    items = TenantOut(many=True)


class SpaceIn(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=128)
    description = serializers.CharField(max_length=512, required=False, allow_blank=True, default="")


class SpaceChangeIn(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=128, required=False)
    description = serializers.CharField(max_length=512, required=False, allow_blank=True)


class RoleOfSpaceOut(serializers.Serializer[Membership]):
    tenant_id = serializers.IntegerField(source="space_id")
    tenant_name = serializers.CharField(source="space.name")
    role = serializers.SerializerMethodField()

    def get_role(self, membership: Membership) -> str:
        return role_word(membership)


class LoginOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()
    user = UserOut()
    active_tenant = TenantOut(allow_null=True)
    memberships = RoleOfSpaceOut(many=True)
    token = serializers.CharField()
    refresh_token = serializers.CharField()


class PersonOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()
    user = UserOut()


class CapabilitiesOfPersonOut(serializers.Serializer[Any]):
    can_create_tenant = serializers.BooleanField()
    auto_accept_invitation = serializers.BooleanField()


class MeOut(serializers.Serializer[Any]):
    user = serializers.JSONField()
    tenant = TenantOut(allow_null=True)
    memberships = RoleOfSpaceOut(many=True)
    tenant_required = serializers.BooleanField()
    capabilities = CapabilitiesOfPersonOut()


class MemberOut(OptionalAbsent):
    optional = ("invited_by",)

    user_id = serializers.CharField()
    email = serializers.EmailField(source="user.email")
    username = serializers.CharField(source="user.username")
    role = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()
    invited_by = serializers.SerializerMethodField()
    joined_at = serializers.DateTimeField()

    def get_role(self, membership: Membership) -> str:
        return role_word(membership)

    def get_status(self, membership: Membership) -> str:
        return "active" if membership.user.is_active else "suspended"

    def get_invited_by(self, membership: Membership) -> str | None:
        return str(membership.invited_by_id) if membership.invited_by_id else None


class MembersQuery(PageQuery):
    q = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)


class MembersOut(serializers.Serializer[Any]):
    members = MemberOut(many=True)
    total = serializers.IntegerField()
    page = serializers.IntegerField()
    page_size = serializers.IntegerField()


class MemberIn(serializers.Serializer[Any]):
    email = serializers.EmailField(max_length=254)
    role = serializers.CharField(max_length=20)


class RoleIn(serializers.Serializer[Any]):
    role = serializers.CharField(max_length=20)


class InvitationIn(MemberIn):
    message = serializers.CharField(max_length=500, required=False, allow_blank=True, default="")


class InviteLinkIn(RoleIn):
    message = serializers.CharField(max_length=500, required=False, allow_blank=True, default="")


class InvitationsQuery(PageQuery):
    include_terminal = serializers.BooleanField(required=False, default=False)


class InvitationOut(OptionalAbsent):
    """`invite_url` comes once, with the answer that made the invitation."""

    optional = ("invitee_email", "invited_by", "inviter_email", "inviter_name", "message", "responded_at")

    id = serializers.IntegerField()
    tenant_id = serializers.IntegerField(source="space_id")
    tenant_name = serializers.CharField(source="space.name")
    invitee_user_id = serializers.SerializerMethodField()
    invitee_email = serializers.CharField(source="email")
    invited_by = serializers.SerializerMethodField()
    inviter_email = serializers.SerializerMethodField()
    inviter_name = serializers.SerializerMethodField()
    role = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()
    message = serializers.CharField()
    expires_at = serializers.DateTimeField()
    responded_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    is_share_link = serializers.BooleanField(source="is_link")
    accepted_count = serializers.IntegerField()

    def get_invitee_user_id(self, row: Invitation) -> str:
        return ""

    def get_invited_by(self, row: Invitation) -> str | None:
        return str(row.invited_by_id) if row.invited_by_id else None

    def get_inviter_email(self, row: Invitation) -> str:
        return row.invited_by.email if row.invited_by else ""

    def get_inviter_name(self, row: Invitation) -> str:
        return row.invited_by.username if row.invited_by else ""

    def get_role(self, row: Invitation) -> str:
        return "admin" if row.role == Membership.Role.ADMIN else "contributor"

    def get_status(self, row: Invitation) -> str:
        return row.status_at(timezone.now())

    def to_representation(self, instance: Invitation) -> dict[str, Any]:
        row = super().to_representation(instance)
        if address := self.context.get("invite_url"):
            row["invite_url"] = address
        return row


class InvitationsOut(serializers.Serializer[Any]):
    invitations = InvitationOut(many=True)
    total = serializers.IntegerField()
    page = serializers.IntegerField()
    page_size = serializers.IntegerField()


class PendingOut(serializers.Serializer[Any]):
    pending_count = serializers.IntegerField()


class LookupOut(serializers.Serializer[Invitation]):
    tenant_id = serializers.IntegerField(source="space_id")
    tenant_name = serializers.CharField(source="space.name")
    role = serializers.SerializerMethodField()
    expires_at = serializers.DateTimeField()

    def get_role(self, row: Invitation) -> str:
        return "admin" if row.role == Membership.Role.ADMIN else "contributor"


class JoinedOut(serializers.Serializer[Membership]):
    tenant_id = serializers.IntegerField(source="space_id")
    role = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField()
    joined_at = serializers.DateTimeField()

    def get_role(self, membership: Membership) -> str:
        return role_word(membership)

    def get_status(self, membership: Membership) -> str:
        return "active"


class AcceptedOut(serializers.Serializer[Any]):
    membership = JoinedOut()


class KeyIn(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=100)
    full_access = serializers.BooleanField(required=False, default=False)
    knowledge_base_ids = serializers.ListField(child=serializers.UUIDField(), required=False, allow_null=True, max_length=1000)
    capabilities = serializers.ListField(child=serializers.CharField(max_length=64), required=False, allow_null=True, max_length=100)
    expires_at_unix = serializers.IntegerField(required=False, allow_null=True, min_value=0, max_value=253402300799)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """As the service takes it; an expiry of 0 means none."""
        seconds = attrs.get("expires_at_unix") or 0
        return {
            "name": attrs["name"],
            "full_access": attrs["full_access"],
            "capabilities": attrs.get("capabilities") or [],
            "kb_uids": attrs.get("knowledge_base_ids") or [],
            "expires_at": datetime.fromtimestamp(seconds, UTC) if seconds else None,
        }


class KeyOut(OptionalAbsent):
    """`api_key` is the key itself only in the answer that made it, later a hint of it; `token` comes only then."""

    optional = ("last_used_at", "expires_at")

    id = serializers.IntegerField()
    scope_type = serializers.SerializerMethodField()
    name = serializers.CharField()
    api_key = serializers.SerializerMethodField()
    full_access = serializers.BooleanField()
    knowledge_base_ids = serializers.ListField(source="kb_uids")
    capabilities = serializers.ListField()
    last_used_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()

    def get_scope_type(self, key: ApiKey) -> str:
        return "tenant"

    def get_api_key(self, key: ApiKey) -> str:
        return self.context.get("plain") or key.hint

    def to_representation(self, instance: ApiKey) -> dict[str, Any]:
        row = super().to_representation(instance)
        if plain := self.context.get("plain"):
            row["token"] = plain
        return row


class MessageOut(serializers.Serializer[Any]):
    success = serializers.BooleanField()
    message = serializers.CharField()


class SystemInfoOut(serializers.Serializer[Any]):
    version = serializers.CharField()
    edition = serializers.CharField()
    keyword_index_engine = serializers.CharField()
    vector_store_engine = serializers.CharField()
    graph_database_engine = serializers.CharField()
    minio_enabled = serializers.BooleanField()
    db_version = serializers.CharField()
    started_at = serializers.DateTimeField()
    uptime_seconds = serializers.IntegerField()


class SystemCapabilitiesOut(serializers.Serializer[Any]):
    edition = serializers.CharField()
    capabilities = serializers.DictField()
