"""One registry for every plug-in point: parsers, chunkers, embedders, search backends, job kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from apps.common.errors import InvalidInput

T = TypeVar("T")
F = TypeVar("F", bound=Callable[[], Any])


class Registry(Generic[T]):
    """Named implementations of one protocol.

    Raises: ValueError at import when a name is registered twice; InvalidInput, listing the known names, on an unknown name.
    """

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        if name in self._items:
            raise ValueError(f"{self.noun} {name!r} is registered twice")
        self._items[name] = item
        return item

    def register(self, name: str) -> Callable[[F], F]:
        """Decorate a class or factory; one instance of it is kept under `name`."""

        def keep(factory: F) -> F:
            self.add(name, factory())
            return factory

        return keep

    def get(self, name: str) -> T:
        try:
            return self._items[name]
        except KeyError:
            raise InvalidInput(f"unknown {self.noun} {name!r}", field=self.noun, known=sorted(self._items)) from None

    def names(self) -> list[str]:
        return sorted(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[tuple[str, T]]:
        return iter(sorted(self._items.items()))
