"""A source that does as it is told: what it holds, how it lists it, when it fails; and a count of what it was asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from apps.common.storage import temp_folder
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, Resource, SourceError, connectors

TYPE = "scripted"


@dataclass(frozen=True)
class Thing:
    """One item on a shelf; `stamp` is its fingerprint, "" for none; `text` None: there is nothing to take over."""

    title: str
    text: str | None
    stamp: str = ""
    folder: str = ""
    file_name: str = ""


@dataclass
class Shelf:
    """What the source holds and does. `key`: the credential it wants. `as_delta`: the listing names what changed since the cursor.

    `per_page` items a page, each with a cursor of its own. `on_fetch(item)` may raise.
    """

    things: dict[str, Thing] = field(default_factory=dict)
    key: str = "secret-key"
    per_page: int = 100
    listing_error: SourceError | None = None
    fail_after_pages: int | None = None
    faults: tuple[SourceError, ...] = ()
    fetch_errors: dict[str, SourceError] = field(default_factory=dict)
    on_fetch: Callable[[Item], None] = lambda item: None
    on_page: Callable[[int], None] = lambda number: None
    as_delta: bool = False
    changes: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    listed: int = 0

    def fill(self, count: int, start: int = 1) -> Shelf:
        for number in range(start, start + count):
            self.put(f"id-{number}", f"Note {number}", f"The text of note number {number}.")
        return self

    def put(self, name: str, title: str, text: str | None, *, stamp: str | None = None, folder: str = "", file_name: str = "") -> None:
        old = self.things.get(name)
        made = stamp if stamp is not None else f"{len(text or '')}-{hash(text)}"
        self.things[name] = Thing(title, text, made, folder, file_name or (old.file_name if old else ""))
        self.changes.append(name)

    def change(self, name: str, **values: Any) -> None:
        self.things[name] = replace(self.things[name], **values)
        self.changes.append(name)

    def drop(self, *names: str) -> dict[str, Thing]:
        self.changes += names
        return {name: self.things.pop(name) for name in names}


shelves: dict[str, Shelf] = {}


class Scripted:
    """Connector over `shelves[settings["shelf"]]`."""

    meta = ConnectorMeta(
        type=TYPE,
        name="Scripted",
        description="For tests",
        icon="folder",
        priority=99,
        auth_type="api_key",
        capabilities=("incremental", "deletion_sync"),
        inputs=(
            Input("api_key", "Key", "secret", "credentials", required=True),
            Input("shelf", "Shelf", "text", "settings", required=True),
        ),
        has_resources=True,
    )

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        if settings.get("shelf") and settings["shelf"] not in shelves:
            raise SourceError("bad_settings", "there is no such shelf", field="shelf")
        return {"shelf": settings.get("shelf", "")}

    def check(self, link: Link) -> None:
        self._shelf(link)

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        shelf = self._shelf(link)
        folders = sorted({thing.folder for thing in shelf.things.values() if thing.folder})
        if not parent_id:
            return [Resource(folder, folder, "folder", has_children=True) for folder in folders]
        inside = [(name, thing) for name, thing in shelf.things.items() if thing.folder == parent_id]
        return [Resource(name, thing.title, "note", parent_id=parent_id) for name, thing in inside]

    def ancestors(self, link: Link, resource_ids: tuple[str, ...]) -> list[str]:
        shelf = self._shelf(link)
        return sorted({shelf.things[name].folder for name in resource_ids if name in shelf.things and shelf.things[name].folder})

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        shelf = self._shelf(link)
        shelf.listed += 1
        if shelf.listing_error is not None and shelf.fail_after_pages is None:
            raise shelf.listing_error
        if shelf.as_delta and cursor is not None:
            yield from self._delta(shelf, cursor)
            return
        names = list(shelf.things)
        start = int((cursor or {}).get("at", 0)) if (cursor or {}).get("open") else 0
        pages = [names[at : at + shelf.per_page] for at in range(start, len(names), shelf.per_page)] or [[]]
        for number, part in enumerate(pages):
            shelf.on_page(number)
            if shelf.fail_after_pages == number and shelf.listing_error is not None:
                raise shelf.listing_error
            is_last = number == len(pages) - 1
            ends = {"open": not is_last, "at": start + (number + 1) * shelf.per_page}
            closing: Cursor = {"seen": len(shelf.changes)} if shelf.as_delta else {"at": 0}
            yield Page(
                tuple(self._item(name, shelf.things[name]) for name in part), closing if is_last else ends, is_last,
                shelf.faults if is_last else (),
            )  # fmt: skip

    def _delta(self, shelf: Shelf, cursor: Cursor) -> Iterator[Page]:
        changed = dict.fromkeys(shelf.changes[cursor["seen"] :])
        items = [
            self._item(name, shelf.things[name]) if name in shelf.things else Item(name, deleted=True)
            for name in changed
        ]  # fmt: skip
        yield Page(tuple(items), {"seen": len(shelf.changes)}, False)

    def fetch(self, link: Link, item: Item) -> Content | None:
        shelf = self._shelf(link)
        shelf.fetched.append(item.external_id)
        shelf.on_fetch(item)
        if item.external_id in shelf.fetch_errors:
            raise shelf.fetch_errors[item.external_id]
        thing = shelf.things[item.external_id]
        if thing.text is None:
            return None
        with tempfile.NamedTemporaryFile("w", dir=temp_folder(), prefix="kb-scripted-", delete=False, encoding="utf-8") as file:
            file.write(thing.text)
        return Content(Path(file.name), thing.file_name or f"{item.external_id}.md", "text/markdown")

    def _item(self, name: str, thing: Thing) -> Item:
        return Item(name, thing.title, thing.stamp, thing.folder, f"https://source.example/{name}", handle={"id": name})

    def _shelf(self, link: Link) -> Shelf:
        shelf = shelves[str(link.settings["shelf"])]
        if link.credentials.get("api_key") != shelf.key:
            raise SourceError("auth", "the key is wrong")
        return shelf


def register() -> None:
    """Make the scripted connector known; once per process."""
    if TYPE not in connectors:
        connectors.add(TYPE, Scripted())  # type: ignore[arg-type]


def unregister() -> None:
    connectors._items.pop(TYPE, None)
    shelves.clear()
