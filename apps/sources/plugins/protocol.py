"""What a connector must do: name what a source holds, say when it changed, hand over its content. Plain values, no models, no requests.

A connector never writes and never decides what happens to a document; the sync engine (`apps/sources/engine`) does. Whatever it asks of the
outside goes through `Link.web`, which checks addresses, limits time and size, and stops when the run is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from apps.common.registry import Registry

#: Where a listing stands, as JSON; only the connector that made it reads it.
Cursor = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Input:
    """One input of the wizard. `where`: secrets and what belongs to the account are credentials (sealed, never echoed), the rest settings.

    `kind` "lines" is a text of one value per line. `label` and `hint` are lazy translations.
    """

    name: str
    label: Any
    kind: Literal["text", "secret", "url", "lines", "number", "choice", "boolean"] = "text"
    where: Literal["credentials", "settings"] = "credentials"
    required: bool = False
    hint: Any = ""
    choices: tuple[tuple[str, Any], ...] = ()
    default: Any = ""


@dataclass(frozen=True, slots=True)
class ConnectorMeta:
    """How a connector is offered (contract content 7.2: type, name, description, icon, priority, auth_type, capabilities)."""

    type: str
    name: Any
    description: Any
    icon: str
    priority: int
    auth_type: Literal["none", "api_key", "oauth2", "token", "password", "custom"]
    capabilities: tuple[str, ...] = ("incremental",)
    inputs: tuple[Input, ...] = ()
    has_resources: bool = False  # a tree of parts to choose from; without one everything the settings name is taken


@dataclass(frozen=True, slots=True)
class Link:
    """What a connector needs to reach one source. `resource_ids` empty: everything that may be seen. `web`: see `apps/sources/web.py`."""

    credentials: Mapping[str, str]
    settings: Mapping[str, Any]
    resource_ids: tuple[str, ...]
    web: Any


@dataclass(frozen=True, slots=True)
class Resource:
    """A part of the source that can be chosen (contract content 7.2)."""

    external_id: str
    name: str
    type: str = ""
    description: str = ""
    url: str = ""
    modified_at: datetime | None = None
    parent_id: str = ""
    has_children: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that becomes one document. `external_id` stays the same however often it is renamed, moved or changed.

    `fingerprint` is different whenever the content may be (revision, etag, blob id, time of change); equal means: not fetched. Empty means
    unknown: always fetched, and compared by content. `folder`, `title` name the document. `deleted`: the source says that it is gone.
    `handle` is what `fetch` needs to find it again (JSON).
    """

    external_id: str
    title: str = ""
    fingerprint: str = ""
    folder: str = ""
    url: str = ""
    modified_at: datetime | None = None
    resource_id: str = ""
    deleted: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    handle: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """Some items, in the order in which they should be taken over.

    `cursor`: given to the next `listing` once these items are taken over; None: nothing to remember yet. `whole`, on the last page only:
    everything that is selected has been named in this listing, so what is known and was not named has vanished. A delta (only what
    changed since the cursor) is never whole; it says `deleted`. `faults`: parts that could not be listed; with one, nothing has vanished.
    """

    items: tuple[Item, ...]
    cursor: Cursor | None = None
    whole: bool = False
    faults: tuple[SourceError, ...] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """The content of an item in a temporary file that the engine removes. `file_name` has the extension by which it is parsed."""

    path: Path
    file_name: str
    media_type: str = ""
    url: str = ""
    title: str = ""  # where only the content tells it
    metadata: Mapping[str, str] = field(default_factory=dict)


class SourceError(Exception):
    """Why a source, or one item of it, could not be read.

    `code` is stable and shown in words by the portal: `auth`, `forbidden`, `not_found`, `rate_limited`, `timeout`, `unavailable`,
    `bad_answer`, `too_large`, `refused_address`, `unknown_host`, `tls`, `redirect_loop`, `too_many`, `robots`, `bad_settings`, or one of
    the contract's `feishu_*`; `apps/sources/words.py` has them in words.
    `retry_after_s`: how long the source asked to be left alone. `passing`: worth another try by itself.
    """

    def __init__(
        self, code: str, detail: str = "", *, field: str = "", item: str = "", retry_after_s: float | None = None, passing: bool = False,
        params: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(detail or code)
        self.code, self.detail, self.field, self.item = code, detail, field, item
        self.retry_after_s, self.passing, self.params = retry_after_s, passing, dict(params or {})


class Connector(Protocol):
    """One per type, without state of its own; called from worker threads. Every method raises SourceError."""

    @property
    def meta(self) -> ConnectorMeta: ...

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings as they are stored. Raises: SourceError(bad_settings, field=...)."""

    def check(self, link: Link) -> None:
        """Returns when the source answers with these credentials and settings; reads as little as it can."""

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        """One level of the tree; [] where there is none."""

    def ancestors(self, link: Link, resource_ids: tuple[str, ...]) -> list[str]:
        """Ids that must be opened for these to be seen, outermost first."""

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        """What is there (None: from the start), or what changed since `cursor`. May be cut at any page and asked again from its cursor."""

    def fetch(self, link: Link, item: Item) -> Content | None:
        """The content of an item; None when there is nothing to take over (empty, or of a kind nobody can read): it counts as skipped."""


connectors: Registry[Connector] = Registry("connector")
