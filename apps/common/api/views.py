"""Base of every REST view: each handler declares its action, what it reads and what it answers, in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.common.actor import Actor
from apps.common.api.auth import door_error
from apps.common.errors import InvalidInput
from apps.common.policy import authorize, rule_for

Shape = Literal["data", "list", "page", "nested_page", "bare", "bare_list", "message", "file"]
MAX_FAULT = 500
MAX_PAGE = 1_000_000_000  # databases count rows to skip in 64 bits
HTTP_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Op:
    """One handler: its action in the policy table, its input, its answer. The OpenAPI document is made from this.

    `body`, `query`: serializers that check shape. `reply`: serializer that renders. `shape`: the envelope (contract knowledge 1.5).
    `invalid_code`: integer code of a body of the wrong shape (contract: 1010 validation, 1000 where the route says so).
    """

    action: str
    summary: str
    body: type[serializers.Serializer[Any]] | None = None
    query: type[serializers.Serializer[Any]] | None = None
    reply: type[serializers.Serializer[Any]] | None = None
    shape: Shape = "data"
    status: int = 200
    errors: Sequence[int] = (400, 401, 403, 404)
    invalid_code: int = 1010
    multipart: bool = False
    examples: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    tags: Sequence[str] = ()


class ApiView(APIView):
    """Handlers stay thin: ids become objects through selectors, one service or selector works, a serializer renders.

    Raises: TypeError when a subclass defines a handler without declaring its operation (at import).
    """

    operations: ClassVar[Mapping[str, Op]] = {}
    render_context: Mapping[str, Any] = {}  # a handler may set more of what its serializer reads

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        declared = {method.lower() for method in cls.operations}
        defined = {method for method in HTTP_METHODS if method in vars(cls)}
        if missing := defined - declared:
            raise TypeError(f"{cls.__name__} defines {sorted(missing)} without an operation")

    @property
    def actor(self) -> Actor:
        return self.request._request.actor  # type: ignore[attr-defined,no-any-return]

    @property
    def op(self) -> Op:
        return self.operations[self._method]

    @property
    def _method(self) -> str:
        """DRF answers HEAD with the GET handler: the same action must be allowed for it."""
        return "GET" if self.request.method == "HEAD" else self.request.method or "GET"

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("tenant_id", None)  # the proxied organization family: ActorMiddleware has entered that space already
        return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self._method not in self.operations:
            return  # 405 comes from DRF
        if not rule_for(self.op.action).public:
            if error := door_error(request, needs_space=rule_for(self.op.action).needs is not None):
                raise error
            authorize(self.actor, self.op.action)

    def read(self) -> dict[str, Any]:
        """The validated body. Raises: InvalidInput naming the first field at fault, all faults in `details.fields`."""
        assert self.op.body is not None
        return self._validated(self.op.body, self.request.data)

    def asked(self) -> dict[str, Any]:
        """The validated query string."""
        assert self.op.query is not None
        return self._validated(self.op.query, self.request.query_params)

    def _validated(self, kind: type[serializers.Serializer[Any]], data: Any) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise InvalidInput(_("Send a JSON object."), api_code=self.op.invalid_code)
        form = kind(data=data, context={"request": self.request, "actor": self.actor})
        if form.is_valid():
            return dict(form.validated_data)
        faults = {name: _first(messages) for name, messages in form.errors.items()}
        name, message = next(iter(faults.items()))
        if name == "non_field_errors":
            raise InvalidInput(message, api_code=self.op.invalid_code)
        raise InvalidInput(f"{name}: {message}", field=name, fields=faults, api_code=self.op.invalid_code)

    def render(self, value: Any, **extra: Any) -> Response:
        """Answer `value` through the operation's serializer in the operation's envelope; `extra` goes beside `data`."""
        op = self.op
        context = {"request": self.request, "actor": self.actor, **self.render_context}
        if op.shape == "message":
            return Response({"success": True, **extra}, status=op.status)
        data = value
        if op.reply is not None and value is not None:
            data = op.reply(value, many=op.shape in ("list", "page", "nested_page", "bare_list"), context=context).data
        if op.shape in ("bare", "bare_list"):
            return Response(data, status=op.status)
        if op.shape == "nested_page":
            return Response({"success": True, "data": {**extra, "data": data}}, status=op.status)
        return Response({"success": True, "data": data, **extra}, status=op.status)

    def page(self, rows: Any, page: int, page_size: int) -> Response:
        """Answer one page of a queryset with `total`, `page`, `page_size`; a page past the end is empty, not an error."""
        start = (page - 1) * page_size
        total = rows.count()
        return self.render(list(rows[start : start + page_size]), total=total, page=page, page_size=page_size)


def _first(messages: Any) -> str:
    while isinstance(messages, (list, dict)):
        messages = next(iter(messages.values() if isinstance(messages, dict) else messages), "")
    text = str(messages)
    if len(text) <= MAX_FAULT:
        return text
    # Some messages quote what was sent, however long it was; their end says what is wrong with it.
    return f"{text[: MAX_FAULT * 2 // 3]}…{text[-MAX_FAULT // 3 :]}"


class PageQuery(serializers.Serializer[Any]):
    """`page` from 1, `page_size` 1..1000; 0 counts as omitted (contract knowledge 1.6)."""

    page = serializers.IntegerField(required=False, default=1, min_value=0, max_value=MAX_PAGE)
    page_size = serializers.IntegerField(required=False, default=20, min_value=0, max_value=1000)

    default_page_size: ClassVar[int] = 20

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs["page"] = attrs.get("page") or 1
        attrs["page_size"] = attrs.get("page_size") or self.default_page_size
        return attrs


class Empty(serializers.Serializer[Any]):
    """A body with nothing in it that is read."""


class ObjectField(serializers.JSONField):
    """A JSON object, whatever it holds."""

    default_error_messages: ClassVar[dict[str, Any]] = {"not_object": _("Send a JSON object.")}

    def to_internal_value(self, data: Any) -> Any:
        value = super().to_internal_value(data)
        if not isinstance(value, dict):
            self.fail("not_object")
        return value
