"""Every route of the portal that is ours, with its view class and what its path takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from apps.common.api.views import ApiView
from apps.common.policy import rule_for
from apps.common.web.views import PageView


@dataclass(frozen=True)
class Route:
    """`name` with its namespace, e.g. "api:members"; `kwargs`: names of the path's parameters."""

    name: str
    view: Any
    kwargs: tuple[str, ...]

    @property
    def is_page(self) -> bool:
        return issubclass(self.view, PageView)

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.view.actions if self.is_page else self.view.operations)

    def action(self, method: str) -> str:
        return self.view.actions[method] if self.is_page else self.view.operations[method].action

    def is_public(self, method: str) -> bool:
        return rule_for(self.action(method)).public

    def url(self, values: dict[str, Any]) -> str:
        return reverse(self.name, kwargs={name: values[name] for name in self.kwargs})


def _walk(patterns: list[Any], namespace: str, outer: tuple[str, ...]) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    for entry in patterns:
        names = outer + tuple(getattr(entry.pattern, "converters", None) or entry.pattern.regex.groupindex)
        if isinstance(entry, URLResolver):
            inner = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from _walk(entry.url_patterns, inner, names)
        elif isinstance(entry, URLPattern):
            yield f"{namespace}{entry.name}", getattr(entry.callback, "view_class", None) or getattr(entry.callback, "cls", None), names


@cache
def patterns() -> list[tuple[str, Any, tuple[str, ...]]]:
    """(name, view class or None, parameters) of every URL pattern."""
    return list(_walk(get_resolver().url_patterns, "", ()))


@cache
def routes() -> dict[str, Route]:
    """Routes whose view is an `ApiView` or a `PageView`, by name."""
    ours = (ApiView, PageView)
    return {name: Route(name, view, kwargs) for name, view, kwargs in patterns() if isinstance(view, type) and issubclass(view, ours)}
