"""OpenAPI from the `operations` of each view, so that the document cannot say anything the view does not."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, inline_serializer
from rest_framework import serializers

from apps.common.policy import rule_for


class ErrorBody(serializers.Serializer[Any]):
    """`code`: contract codes, e.g. 1003 not found."""

    code = serializers.IntegerField()
    message = serializers.CharField()
    details = serializers.JSONField(allow_null=True)


class ErrorOut(serializers.Serializer[Any]):
    success = serializers.BooleanField(default=False)
    error = ErrorBody()


_envelopes: dict[str, Any] = {}


def _envelope(name: str, op: Any) -> Any:
    """The answer of an operation; one and the same class wherever its view is mounted, so that it is one component of the document."""
    if name not in _envelopes:
        _envelopes[name] = _make_envelope(name, op)
    return _envelopes[name]


def _make_envelope(name: str, op: Any) -> Any:
    if op.shape == "file":
        return {(op.status, "application/octet-stream"): bytes}
    if op.shape == "bare":
        return {op.status: op.reply}
    if op.shape == "bare_list":
        return {op.status: op.reply(many=True)}
    fields: dict[str, serializers.Field[Any, Any, Any, Any]] = {"success": serializers.BooleanField(default=True)}
    many = op.shape in ("list", "page", "nested_page")
    data: Any = op.reply(many=many) if op.reply is not None else serializers.JSONField()
    if op.shape == "message":
        fields["message"] = serializers.CharField(required=False)
        if op.reply is not None:
            fields["data"] = op.reply(required=False)
    elif op.shape == "nested_page":
        fields["data"] = inline_serializer(
            f"{name}Page",
            {
                "total": serializers.IntegerField(),
                "page": serializers.IntegerField(),
                "page_size": serializers.IntegerField(),
                "data": data,
            },
        )
    else:
        fields["data"] = data
    if op.shape == "page":
        fields |= {"total": serializers.IntegerField(), "page": serializers.IntegerField(), "page_size": serializers.IntegerField()}
    return {op.status: inline_serializer(f"{name}Reply", fields)}


class OperationSchema(AutoSchema):  # type: ignore[misc]
    """Reads `ApiView.operations[method]`."""

    @property
    def _op(self) -> Any:
        return getattr(self.view, "operations", {}).get(self.method)

    def get_operation_id(self) -> str:
        if self._op is None:
            return str(super().get_operation_id())
        family = "organization_" if self.path.startswith("/v1/tenants/") else "personal_" if self.path.startswith("/v1/") else ""
        return f"{family}{self.view.__class__.__name__.removesuffix('View')}_{self.method}".lower()

    def get_summary(self) -> str | None:
        return self._op.summary if self._op else super().get_summary()

    def get_description(self) -> str:  # type: ignore[override]
        op = self._op
        if op is None:
            return super().get_description()
        found = rule_for(op.action)
        who = "everyone" if found.public else f"{found.needs.name.lower()} of the space" if found.needs else "any signed-in person"
        keys = (
            "not with API keys"
            if found.people_only
            else "any key"
            if found.any_key
            else ", ".join(sorted(found.capabilities)) or "full access"
        )
        return f"{op.description}\n\nAction `{op.action}`: {who}; key capability: {'-' if found.public else keys}.".strip()

    def get_tags(self) -> list[str]:
        return list(self._op.tags) if self._op and self._op.tags else super().get_tags()

    def get_request_serializer(self) -> Any:
        op = self._op
        if op is None or op.body is None:
            return None
        return {"multipart/form-data": op.body} if op.multipart else op.body

    def get_override_parameters(self) -> list[Any]:
        return [self._op.query] if self._op and self._op.query else []

    def get_response_serializers(self) -> Any:
        op = self._op
        if op is None:
            return super().get_response_serializers()
        name = (
            "".join(part.capitalize() for part in op.action.replace("-", "_").replace(".", "_").split("_"))
            + self.view.__class__.__name__
            + self.method.capitalize()
        )
        return _envelope(name, op) | dict.fromkeys(op.errors, ErrorOut)

    def get_examples(self) -> list[OpenApiExample]:
        op = self._op
        return [OpenApiExample(name, value=value, request_only=True) for name, value in op.examples.items()] if op else []

    def get_auth(self) -> list[Any]:
        op = self._op
        return [] if op and rule_for(op.action).public else [{"bearer": []}, {"apiKey": []}]
