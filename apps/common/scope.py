"""The ambient tenant filter: it fails closed.

`Model.objects` of a tenant model raises `ScopeMissing` unless a scope is open, and filters by the scope's space when one is. The net has
holes (forward foreign keys, raw SQL, the search index), so selectors still start from `.visible_to(actor)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db import models

from apps.common.actor import Actor


class ScopeMissing(RuntimeError):
    """A tenant model was queried while no scope was open."""


@dataclass(frozen=True, slots=True)
class Scope:
    space_id: int | None  # None: unscoped, for the reason given
    reason: str


_scope: ContextVar[Scope | None] = ContextVar("space_scope", default=None)


def current_scope() -> Scope | None:
    return _scope.get()


@contextmanager
def space_scope(space_id: int, reason: str = "request") -> Iterator[None]:
    """Open one space's scope for the block."""
    token = _scope.set(Scope(space_id, reason))
    try:
        yield
    finally:
        _scope.reset(token)


@contextmanager
def unscoped(why: str) -> Iterator[None]:
    """Lift the tenant filter for the block; only for sweeps, migrations, the moderator admin (a test lists the call sites)."""
    token = _scope.set(Scope(None, why))
    try:
        yield
    finally:
        _scope.reset(token)


def open_scope(space_id: int | None) -> None:
    """Open a scope without a block (the door); `close_scope` ends it. None opens none: tenant models stay unreachable."""
    _scope.set(Scope(space_id, "request") if space_id is not None else None)


def close_scope() -> None:
    _scope.set(None)


class SpaceQuerySet(models.QuerySet[Any]):
    """Base of tenant querysets: `visible_to` is where every selector starts."""

    def visible_to(self, actor: Actor) -> SpaceQuerySet:
        """Rows of the actor's space. Raises: nothing; no space sees no row."""
        if actor.space_id is None:
            return self.none()
        return self.filter(space_id=actor.space_id)


class ScopedManager(models.Manager.from_queryset(SpaceQuerySet)):  # type: ignore[misc]
    """Filters by the open scope; raises when none is open. The whole manager, because lists of blocked methods leak."""

    def get_queryset(self) -> Any:
        scope = _scope.get()
        if scope is None:
            raise ScopeMissing(f"{self.model.__name__}.objects was used while no space scope is open")
        rows = super().get_queryset()
        return rows if scope.space_id is None else rows.filter(space_id=scope.space_id)


def scoped_manager(queryset: type[SpaceQuerySet]) -> Any:
    """A scoped manager over a context's own queryset class."""
    return ScopedManager.from_queryset(queryset)()


class SpaceOwned(models.Model):
    """A tenant row: carries its own `space` so that scoping is one indexed comparison."""

    space = models.ForeignKey("spaces.Space", on_delete=models.CASCADE, related_name="+", db_index=False)

    objects: ClassVar[Any] = ScopedManager()

    class Meta:
        abstract = True
