"""Yuque: the documents of its repositories, by its API version 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.http import Fetched
from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, Resource, SourceError, connectors
from apps.sources.plugins.support import Plugin, base_url, html_file, listed, markdown_file, moment, needed

HOME = "https://www.yuque.com"
STEP = 100
MAX_STEPS = 200


@connectors.register("yuque")
class Yuque(Plugin):
    meta = ConnectorMeta(
        "yuque",
        _("Yuque"),
        _("Documents in Yuque repositories."),
        "book",
        3,
        "api_key",
        ("incremental",),
        (
            Input("api_token", _("Token"), "secret", "credentials", required=True, hint=_("Made in Yuque under Settings, Token.")),
            Input("base_url", _("Address"), "url", "credentials", hint=_("Empty: https://www.yuque.com. Spaces have one of their own.")),
        ),
        has_resources=True,
    )

    def check(self, link: Link) -> None:
        _data(link, "/user")

    def resources(self, link: Link, parent_id: str = "") -> list[Resource]:
        if parent_id:
            return []
        return [
            Resource(
                str(repo.get("id")),
                str(repo.get("name") or repo.get("slug") or repo.get("id")),
                "repository",
                str(repo.get("description") or ""),
                f"{_home(link)}/{repo.get('namespace')}" if repo.get("namespace") else "",
                moment(repo.get("content_updated_at") or repo.get("updated_at")),
            )
            for repo in _repos(link)
        ]

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        repos = {str(repo.get("id")): repo for repo in _repos(link)}
        chosen = link.resource_ids or tuple(repos)
        faults: list[SourceError] = []
        for repo_id in chosen:
            repo = repos.get(repo_id)
            try:
                if repo is None:
                    raise SourceError("not_found", "the repository is not visible to this token", item=repo_id)
                for docs in _docs(link, repo_id):
                    yield Page(tuple(_item(link, repo, doc) for doc in docs if _is_document(doc)))
            except SourceError as error:
                if error.code in ("auth", "rate_limited") or len(chosen) == 1:
                    raise
                error.item = error.item or repo_id
                faults.append(error)
        yield Page((), whole=not faults, faults=tuple(faults))

    def fetch(self, link: Link, item: Item) -> Content | None:
        doc = _data(link, f"/repos/{item.handle['repo']}/docs/{item.handle['doc']}")
        if not isinstance(doc, dict):
            raise SourceError("bad_answer", "the answer holds no document")
        title = str(doc.get("title") or item.title)
        body, page = str(doc.get("body") or ""), str(doc.get("body_html") or "")
        if str(doc.get("format") or "markdown") == "markdown" and body.strip():
            return markdown_file(body, title, url=item.url)
        return html_file(page, title, url=item.url) if page.strip() else markdown_file(body, title, url=item.url)


def _home(link: Link) -> str:
    return base_url(link.credentials, HOME)


def _explain(answer: Fetched) -> SourceError | None:
    """An hour's worth of requests used up is said with 429 and a time."""
    if answer.status == 403 and answer.headers.get("x-ratelimit-remaining") == "0":
        return SourceError("rate_limited", "the hour's requests are used up", retry_after_s=3600.0, passing=True)
    return None


def _data(link: Link, path: str, **params: Any) -> Any:
    headers = {"X-Auth-Token": needed(link.credentials, "api_token")[0]}
    found = link.web.json("GET", f"{_home(link)}/api/v2{path}", headers=headers, params=params, explain=_explain)
    if not isinstance(found, dict) or "data" not in found:
        raise SourceError("bad_answer", "the answer holds no data")
    return found["data"]


def _repos(link: Link) -> list[dict[str, Any]]:
    """The repositories of whoever the token belongs to, and of the groups they are in."""
    return link.web.keep("yuque", (_home(link), link.credentials.get("api_token")), lambda: _load_repos(link))  # type: ignore[no-any-return]


def _load_repos(link: Link) -> list[dict[str, Any]]:
    user = _data(link, "/user")
    if not isinstance(user, dict) or not user.get("login"):
        raise SourceError("bad_answer", "the answer names no user")
    is_group = str(user.get("type")) == "Group"
    places = [f"/{'groups' if is_group else 'users'}/{user['login']}/repos"]
    if not is_group:
        try:
            groups = listed(_data(link, f"/users/{user.get('id') or user['login']}/groups"))
        except SourceError as error:
            if error.code not in ("not_found", "forbidden"):
                raise
            groups = []
        places += [f"/groups/{group['login']}/repos" for group in groups if group.get("login")]
    found: dict[str, dict[str, Any]] = {}
    for place in places:
        for repos in _steps(link, place):
            found.update({str(repo["id"]): repo for repo in repos if repo.get("id") and str(repo.get("type", "Book")) == "Book"})
    return list(found.values())


def _steps(link: Link, path: str) -> Iterator[list[dict[str, Any]]]:
    """A list by offset, a page at a time; a page that repeats the one before ends it."""
    before: list[Any] = []
    for number in range(MAX_STEPS):
        page = listed(_data(link, path, offset=number * STEP or None, limit=STEP))
        ids = [entry.get("id") for entry in page]
        if page and ids != before:
            yield page
        if len(page) < STEP or ids == before:
            return
        before = ids
    raise SourceError("too_many", f"more than {MAX_STEPS * STEP} entries", params={"limit": MAX_STEPS * STEP})


def _docs(link: Link, repo_id: str) -> Iterator[list[dict[str, Any]]]:
    return _steps(link, f"/repos/{repo_id}/docs")


def _is_document(doc: dict[str, Any]) -> bool:
    published = str(doc.get("status", "1")) != "0"
    return bool(doc.get("id")) and published and str(doc.get("type", "Doc")) == "Doc"


def _item(link: Link, repo: dict[str, Any], doc: dict[str, Any]) -> Item:
    changed = str(doc.get("content_updated_at") or doc.get("updated_at") or "")
    address = f"{_home(link)}/{repo['namespace']}/{doc.get('slug')}" if repo.get("namespace") and doc.get("slug") else ""
    return Item(
        str(doc["id"]),
        title=str(doc.get("title") or doc.get("slug") or doc["id"]),
        fingerprint=changed,
        folder=str(repo.get("name") or repo["id"]).replace("/", "-"),
        url=address,
        modified_at=moment(changed),
        resource_id=str(repo["id"]),
        handle={"repo": str(repo["id"]), "doc": str(doc["id"])},
    )
