"""Notion: the pages an integration may see, as Markdown. Rows of databases are pages with properties."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.http import Fetched
from apps.common.text import clean_line
from apps.sources.plugins.notes.notion_blocks import plain_text, property_text, to_markdown
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, Resource, SourceError, connectors
from apps.sources.plugins.support import Plugin, base_url, batches, listed, markdown_file, moment, needed

HOME = "https://api.notion.com"
VERSION = "2022-06-28"
MAX_THINGS = 20_000
MAX_BLOCKS = 20_000
_CODES = {
    "unauthorized": "auth",
    "restricted_resource": "forbidden",
    "object_not_found": "not_found",
    "rate_limited": "rate_limited",
    "validation_error": "bad_answer",
}


@dataclass(frozen=True, slots=True)
class Thing:
    """A page or a database. `parent`: the id of another thing or of a block, "" at the top."""

    id: str
    kind: str
    title: str
    parent: str
    parent_kind: str
    changed: str
    url: str


@connectors.register("notion")
class Notion(Plugin):
    meta = ConnectorMeta(
        "notion",
        "Notion",
        _("Pages and databases shared with a Notion integration."),
        "document",
        1,
        "api_key",
        ("incremental",),
        (
            Input(
                "api_key", _("Integration secret"), "secret", "credentials", required=True,
                hint=_("Made at notion.so/my-integrations; share the pages with the integration."),
            ),
            Input("base_url", _("Address of the API"), "url", "settings", hint=_("Empty: https://api.notion.com")),
        ),
        has_resources=True,
    )  # fmt: skip

    def check(self, link: Link) -> None:
        _api(link, "GET", "/users/me")

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        things = _things(link)
        places = {thing.id: _owner(link, things, thing) for thing in things.values()}
        return [
            Resource(
                thing.id, thing.title, thing.kind, url=thing.url, modified_at=moment(thing.changed), parent_id=places[thing.id],
                has_children=thing.id in places.values(),
            )
            for thing in things.values()
            if places[thing.id] == parent_id
        ]  # fmt: skip

    def ancestors(self, link: Link, resource_ids: tuple[str, ...]) -> list[str]:
        things = _things(link)
        found: list[str] = []
        for resource_id in map(_plain_id, resource_ids):
            chain = _chain(link, things, resource_id)[1:]
            found += [above for above in reversed(chain) if above not in found]
        return found

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        things = _things(link)
        chosen = {_plain_id(resource_id) for resource_id in link.resource_ids}
        items, now = [], []
        for thing in sorted(things.values(), key=lambda thing: (thing.changed, thing.id)):
            if thing.kind != "page":
                continue
            chain = _chain(link, things, thing.id)
            if not chosen or chosen & set(chain):
                now.append(thing.id)
                top = next((place for place in chain if place in chosen), chain[-1])
                items.append(_item(things, thing, chain, top))
        before = [str(known) for known in (cursor or {}).get("pages") or []]
        faults: list[SourceError] = []
        for known in before:
            if known in things:
                continue
            try:
                if _is_gone(link, known):
                    items.append(Item(known, deleted=True))
                else:
                    now.append(known)  # the search had forgotten it
            except SourceError as error:
                if error.code in ("auth", "rate_limited"):
                    raise
                error.item = known
                faults.append(error)
                now.append(known)
        kept = sorted({*now, *(known for known in before if known in things)})
        pages = [Page(batch) for batch in batches(items)]
        last = pages.pop()
        yield from pages
        # A page that is merely no longer selected stays, so a selection never claims to be the whole.
        yield Page(last.items, {"pages": kept}, whole=False, faults=tuple(faults))

    def fetch(self, link: Link, item: Item) -> Content | None:
        page = _api(link, "GET", f"/pages/{item.handle['id']}")
        if page.get("archived") or page.get("in_trash"):
            raise SourceError("not_found", "the page is in the trash", item=item.external_id)
        left = [MAX_BLOCKS]

        def children(block_id: str) -> Iterator[dict[str, Any]]:
            for block in _paged(link, "GET", f"/blocks/{block_id}/children"):
                left[0] -= 1
                if left[0] < 0:
                    raise SourceError("too_large", "the page has too many blocks", params={"limit": MAX_BLOCKS})
                yield block

        body = to_markdown(children(str(item.handle["id"])), children)
        facts = "\n".join(_facts(page))
        title = _title(page) or item.title
        return markdown_file("\n\n".join(part for part in (facts, body) if part.strip()), title, url=item.url)


def _facts(page: dict[str, Any]) -> Iterator[str]:
    """The properties of a database's row, one a line."""
    properties = page.get("properties")
    for name, value in properties.items() if isinstance(properties, dict) else ():
        if isinstance(value, dict) and value.get("type") != "title" and (text := clean_line(property_text(value))):
            yield f"- **{clean_line(name)}**: {text}"


def _explain(answer: Fetched) -> SourceError | None:
    if answer.status == 200:
        return None
    try:
        said = answer.json()
    except ValueError:
        return None
    code = _CODES.get(str(said.get("code"))) if isinstance(said, dict) else None
    if code is None or code == "rate_limited":  # the header says for how long
        return None
    return SourceError(code, f"Notion answered {said.get('code')}")


def _api(link: Link, method: str, path: str, *, json: Any = None, params: Any = None) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {needed(link.credentials, 'api_key')[0]}", "Notion-Version": VERSION}
    home = base_url({"base_url": link.settings.get("base_url") or link.credentials.get("base_url")}, HOME)
    found = link.web.json(method, f"{home}/v1{path}", headers=headers, json=json, params=params, explain=_explain)
    if not isinstance(found, dict):
        raise SourceError("bad_answer", "the answer is JSON of another shape")
    return found


def _paged(link: Link, method: str, path: str, body: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """The results of all pages of an answer."""
    start = ""
    seen: set[str] = set()
    while True:
        more = {"page_size": 100, **({"start_cursor": start} if start else {})}
        found = _api(
            link, method, path, json={**(body or {}), **more} if method == "POST" else None, params=None if method == "POST" else more
        )
        yield from listed(found, "results")
        start = str(found.get("next_cursor") or "") if found.get("has_more") else ""
        if not start:
            return
        if start in seen or len(seen) > MAX_THINGS // 100:
            raise SourceError("too_many", "the answer has no end", params={"limit": MAX_THINGS})
        seen.add(start)


def _things(link: Link) -> dict[str, Thing]:
    """Everything the integration sees, once per run."""
    return link.web.keep("notion", link.credentials.get("api_key"), lambda: _load(link))  # type: ignore[no-any-return]


def _load(link: Link) -> dict[str, Thing]:
    found: dict[str, Thing] = {}
    for raw in _paged(link, "POST", "/search", {"sort": {"direction": "ascending", "timestamp": "last_edited_time"}}):
        thing = _thing(raw)
        if thing is not None:
            found[thing.id] = thing
    return found


def _thing(raw: dict[str, Any]) -> Thing | None:
    kind = str(raw.get("object") or "")
    if kind not in ("page", "database") or not raw.get("id") or raw.get("archived") or raw.get("in_trash"):
        return None
    parent = raw.get("parent") if isinstance(raw.get("parent"), dict) else {}
    above = str(parent.get("type") or "")  # type: ignore[union-attr]
    title = _title(raw) if kind == "page" else clean_line(plain_text(raw.get("title")))
    return Thing(
        _plain_id(str(raw["id"])),
        kind,
        title or str(_("Untitled")),
        _plain_id(str(parent.get(above) or "")) if above.endswith("_id") else "",  # type: ignore[union-attr]
        above,
        str(raw.get("last_edited_time") or ""),
        str(raw.get("url") or ""),
    )


def _title(page: dict[str, Any]) -> str:
    properties = page.get("properties")
    for value in properties.values() if isinstance(properties, dict) else ():
        if isinstance(value, dict) and value.get("type") == "title":
            return clean_line(plain_text(value.get("title")))
    return ""


def _plain_id(raw: str) -> str:
    return raw.replace("-", "").lower()


def _owner(link: Link, things: dict[str, Thing], thing: Thing) -> str:
    """The page or database a thing is in, "" for one at the top; a block is asked whose it is."""
    place, kind = thing.parent, thing.parent_kind
    for _step in range(10):
        if kind != "block_id" or not place:
            break
        try:
            parent = _block_parent(link, place)
        except SourceError as error:
            if error.code in ("auth", "rate_limited"):
                raise
            return ""
        kind = str(parent.get("type") or "")
        place = _plain_id(str(parent.get(kind) or "")) if kind.endswith("_id") else ""
    return place if place in things else ""


def _block_parent(link: Link, block_id: str) -> dict[str, Any]:
    known: dict[str, dict[str, Any]] = link.web.keep("notion-blocks", link.credentials.get("api_key"), dict)
    if block_id not in known:
        parent = _api(link, "GET", f"/blocks/{block_id}").get("parent")
        known[block_id] = parent if isinstance(parent, dict) else {}
    return known[block_id]


def _chain(link: Link, things: dict[str, Thing], thing_id: str) -> list[str]:
    """A thing and what it is in, innermost first."""
    chain, current = [thing_id], thing_id
    while current in things:
        current = _owner(link, things, things[current])
        if not current or current in chain:
            break
        chain.append(current)
    return chain


def _is_gone(link: Link, page_id: str) -> bool:
    try:
        page = _api(link, "GET", f"/pages/{page_id}")
    except SourceError as error:
        if error.code in ("not_found", "forbidden"):
            return True
        raise
    return bool(page.get("archived") or page.get("in_trash"))


def _item(things: dict[str, Thing], thing: Thing, chain: list[str], top: str) -> Item:
    folders = [things[place].title.replace("/", "-") for place in reversed(chain[1:]) if place in things]
    return Item(
        thing.id,
        title=thing.title,
        fingerprint=thing.changed,
        folder="/".join(folders),
        url=thing.url,
        modified_at=moment(thing.changed),
        resource_id=top,
        handle={"id": thing.id},
    )
