"""Base of every page: names its action, gets the actor, answers whole or as a fragment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django.utils.decorators import method_decorator
from django.utils.translation import gettext_lazy as _
from django.views import View

from apps.common.actor import Actor
from apps.common.errors import Forbidden
from apps.common.policy import authorize, rule_for


@method_decorator(login_not_required, name="dispatch")  # the action table decides, and says so with a way back
class PageView(View):
    """`actions` names the action of each handler; a class that leaves one out cannot be defined.

    Raises: TypeError at import.
    """

    actions: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        defined = {name for name in ("get", "post", "put", "patch", "delete") if name in vars(cls)}
        if missing := defined - {method.lower() for method in cls.actions}:
            raise TypeError(f"{cls.__name__} defines {sorted(missing)} without an action")

    @property
    def actor(self) -> Actor:
        return self.request.actor  # type: ignore[attr-defined,no-any-return]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        method = "GET" if request.method == "HEAD" else request.method or "GET"
        action = self.actions.get(method)
        if action is not None and not rule_for(action).public:
            if self.actor.kind == "key":
                raise Forbidden(_("API keys cannot be used here; sign in as a person."), code="people_only")
            if error := getattr(request, "actor_error", None):
                raise error
            authorize(self.actor, action)
        return super().dispatch(request, *args, **kwargs)  # type: ignore[return-value]

    def page(self, template: str, context: dict[str, Any] | None = None, *, status: int = 200) -> HttpResponse:
        return render(self.request, template, context or {}, status=status)

    def fragment_or_page(self, page: str, fragments: Mapping[str, str], context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        """The whole page, or for an htmx request just the partial whose root id it targets.

        `fragments`: {target id: template of the partial}. Same URL, same view; `Vary` says what the answer depends on.
        """
        target = self.request.headers.get("HX-Target", "") if self.request.headers.get("HX-Request") else ""
        boosted = self.request.headers.get("HX-Boosted")
        template = fragments.get(target, page) if not boosted else page
        response = render(self.request, template, context, status=status)
        patch_vary_headers(response, ["HX-Request", "HX-Target"])
        return response
