"""Shapes of conversations (contract platform 2)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from apps.chat.models import ChatSession, Message
from apps.common.api.views import PageQuery


def ids() -> serializers.ListField:
    """A list that may be missing, null or empty (clients send all three)."""
    return serializers.ListField(child=serializers.CharField(), required=False, allow_null=True, allow_empty=True)


def text(**options: Any) -> serializers.CharField:
    return serializers.CharField(required=False, allow_blank=True, allow_null=True, **options)


class SessionIn(serializers.Serializer[Any]):
    """Unknown members are ignored: clients send settings of their own."""

    title = text(max_length=1000)
    description = text(max_length=1000)


class SessionOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField()
    description = serializers.CharField()
    tenant_id = serializers.IntegerField()
    user_id = serializers.CharField(required=False)
    is_pinned = serializers.BooleanField()
    pinned_at = serializers.DateTimeField(required=False)
    last_request_state = serializers.DictField(required=False)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, instance: ChatSession) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": str(instance.uid),
            "title": instance.title,
            "description": instance.description,
            "tenant_id": instance.space_id,
            "is_pinned": instance.pinned_at is not None,
            "created_at": stamp(instance.created_at),
            "updated_at": stamp(instance.updated_at),
            "deleted_at": None,
        }
        if instance.owner_user_id:
            row["user_id"] = str(instance.owner_user_id)
        if instance.pinned_at:
            row["pinned_at"] = stamp(instance.pinned_at)
        if instance.last_request:
            row["last_request_state"] = instance.last_request
        return row


class SessionQuery(PageQuery):
    keyword = serializers.CharField(required=False, allow_blank=True, default="", max_length=200)
    source = serializers.CharField(required=False, allow_blank=True, default="", max_length=32)  # type: ignore[assignment]
    agent_id = serializers.CharField(required=False, allow_blank=True, default="", max_length=128)


class BatchIn(serializers.Serializer[Any]):
    """`ids`, or `delete_all` for every conversation of one's own."""

    ids = ids()
    delete_all = serializers.BooleanField(required=False, default=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.get("ids") and not attrs["delete_all"]:
            raise serializers.ValidationError({"ids": _("Name the conversations in `ids`, or send `delete_all`.")})
        return attrs


class TitleIn(serializers.Serializer[Any]):
    messages = serializers.ListField(child=serializers.DictField(), required=False, allow_null=True, max_length=200)


class ChatQuery(serializers.Serializer[Any]):
    resource_urls = serializers.ChoiceField(choices=("handle", "public"), required=False, default="handle")


class ChatIn(serializers.Serializer[Any]):
    """A question. Members of upstream that have no meaning here (images, skills, web search) are ignored."""

    query = serializers.CharField(
        trim_whitespace=False,
        max_length=8000,
        error_messages={"required": _("Say what you ask in `query`."), "blank": _("Type a question.")},
    )
    knowledge_base_ids = ids()
    knowledge_ids = ids()
    tag_ids = ids()
    agent_id = text(max_length=128)
    agent_enabled = serializers.BooleanField(required=False, allow_null=True, default=False)
    summary_model_id = text(max_length=128, help_text='Id of a chat model, or "extractive" for the built-in answerer.')
    mentioned_items = serializers.ListField(child=serializers.DictField(), required=False, allow_null=True, max_length=50)
    disable_title = serializers.BooleanField(required=False, allow_null=True, default=False)
    channel = text(max_length=32)
    force_search = serializers.BooleanField(
        required=False, allow_null=True, default=False, help_text="Look it up even if the message is a greeting or about the portal."
    )


class StreamQuery(serializers.Serializer[Any]):
    message_id = serializers.CharField(
        error_messages={"required": _("Name the answer in `message_id`."), "blank": _("Name the answer in `message_id`.")}
    )


class StopIn(serializers.Serializer[Any]):
    message_id = text(max_length=128)


class LoadQuery(serializers.Serializer[Any]):
    """A `limit` that is no number counts as 20."""

    limit = serializers.CharField(required=False, allow_blank=True, default="20", max_length=40)
    before_time = serializers.CharField(required=False, allow_blank=True, default="", max_length=64)

    def validate_limit(self, value: str) -> int:
        return min(int(value), 1000) if value.isascii() and value.isdigit() and 0 < int(value[:6]) else 20

    def validate_before_time(self, value: str) -> datetime | None:
        if not value:
            return None
        found: datetime = serializers.DateTimeField().to_internal_value(_to_micro(value))
        return found


def _to_micro(value: str) -> str:
    """RFC 3339 with nanoseconds cut to microseconds; a "+" that a query string turned into a space is put back."""
    head, dot, tail = value.replace(" ", "+").partition(".")
    if not dot:
        return head
    digits = len(tail) - len(tail.lstrip("0123456789"))
    return f"{head}.{tail[: min(digits, 6)]}{tail[digits:]}"


class RatingIn(serializers.Serializer[Any]):
    rating = serializers.ChoiceField(choices=("up", "down", ""), allow_blank=True)
    note = text(max_length=1000)


class MessageSearchIn(serializers.Serializer[Any]):
    query = serializers.CharField(max_length=400)
    mode = serializers.ChoiceField(choices=("keyword", "vector", "hybrid"), required=False, default="keyword")
    limit = serializers.IntegerField(required=False, default=20, min_value=1, max_value=100)
    session_ids = ids()


class ChatMessageOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    session_id = serializers.UUIDField()
    request_id = serializers.CharField()
    content = serializers.CharField()
    role = serializers.CharField()
    knowledge_references = serializers.ListField(child=serializers.DictField())
    is_completed = serializers.BooleanField()
    is_fallback = serializers.BooleanField(required=False)
    agent_duration_ms = serializers.IntegerField(required=False)
    channel = serializers.CharField(required=False)
    model_id = serializers.CharField(required=False)
    state = serializers.CharField()
    answerer = serializers.CharField(required=False)
    reason = serializers.CharField(required=False)
    rating = serializers.CharField(required=False)
    parent_id = serializers.CharField(required=False)
    support = serializers.ListField(child=serializers.DictField(), required=False)
    search = serializers.DictField(required=False)
    usage = serializers.DictField(required=False)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, instance: Message) -> dict[str, Any]:
        cited = self.context.get("citations", {}).get(instance.pk, [])
        row: dict[str, Any] = {
            "id": str(instance.uid),
            "session_id": str(instance.session.uid),
            "request_id": instance.request_id,
            "content": instance.content,
            "role": instance.role,
            "knowledge_references": [passage.row() for passage in cited],
            "is_completed": not instance.is_live,
            "channel": instance.channel,
            "state": instance.state,
            "created_at": stamp(instance.created_at),
            "updated_at": stamp(instance.updated_at),
            "deleted_at": None,
        }
        if instance.role == Message.Role.ASSISTANT:
            row |= {
                "is_fallback": instance.is_fallback,
                "agent_duration_ms": instance.took_ms,
                "answerer": instance.answerer,
                "reason": instance.reason,
                "rating": instance.rating,
                "support": instance.support,
                "search": instance.search,
            }
            row |= {"model_id": instance.model_id} if instance.model_id else {}
            row |= {"usage": instance.usage} if instance.usage else {}
        return row


def stamp(moment: datetime) -> str:
    """RFC 3339 with a zone."""
    return moment.isoformat().replace("+00:00", "Z")


class SuggestedQuery(serializers.Serializer[Any]):
    """Ids separated by commas; none: every base one may read."""

    knowledge_base_ids = serializers.CharField(required=False, allow_blank=True, default="", max_length=4000)
    knowledge_ids = serializers.CharField(required=False, allow_blank=True, default="", max_length=4000)
    limit = serializers.IntegerField(required=False, default=6, min_value=1, max_value=20)


class SuggestedRowOut(serializers.Serializer[Any]):
    question = serializers.CharField()
    source = serializers.ChoiceField(choices=("faq", "document"))  # type: ignore[assignment]
    knowledge_base_id = serializers.CharField()


class SuggestedOut(serializers.Serializer[Any]):
    questions = SuggestedRowOut(many=True)


class FollowUpsIn(serializers.Serializer[Any]):
    regenerate = serializers.BooleanField(required=False, allow_null=True, default=False)


class FollowUpOut(serializers.Serializer[Any]):
    """`ask`: what to send as the question, where it names the document it is about."""

    id = serializers.CharField()
    text = serializers.CharField()
    ask = serializers.CharField()
    category = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    knowledge_base_ids = serializers.ListField(child=serializers.CharField())


class FollowUpsOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    session_id = serializers.CharField()
    assistant_message_id = serializers.CharField()
    status = serializers.ChoiceField(choices=("pending", "ready", "suppressed"))
    allow_regenerate = serializers.BooleanField()
    suppression_reason = serializers.CharField(required=False)
    questions = FollowUpOut(many=True)

    def to_representation(self, instance: tuple[Message, dict[str, Any]]) -> dict[str, Any]:
        message, kept = instance
        row: dict[str, Any] = {
            "id": kept["id"],
            "session_id": str(message.session.uid),
            "assistant_message_id": str(message.uid),
            "status": kept["status"],
            "allow_regenerate": kept["status"] != "pending",
            "questions": [
                {
                    "id": each["id"],
                    "text": each["text"],
                    "ask": each["ask"],
                    "category": "follow_up",
                    "source": each["source"],
                    "knowledge_base_ids": [each["kb_id"]] if each["kb_id"] else [],
                }
                for each in kept["questions"]
            ],
        }
        return row | ({"suppression_reason": kept["reason"]} if kept["reason"] else {})


class FollowUpEventIn(serializers.Serializer[Any]):
    suggestion_set_id = serializers.CharField(max_length=64)
    question_id = text(max_length=64)
    event_type = serializers.CharField(max_length=32)


class FoundMessagesOut(serializers.Serializer[Any]):
    items = serializers.ListField(child=serializers.DictField())
    total = serializers.IntegerField()


class StatsOut(serializers.Serializer[Any]):
    session_count = serializers.IntegerField()
    message_count = serializers.IntegerField()
