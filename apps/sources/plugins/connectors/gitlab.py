"""Projects of a GitLab: the files of one ref, by its REST API (version 4). Contract content 7.3 and 11.5."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, SourceError, connectors
from apps.sources.plugins.renames import MAX_FILES, identities, remembered
from apps.sources.plugins.support import (
    EXTENSIONS_INPUT,
    Plugin,
    bad,
    base_url,
    batches,
    below,
    cleaned,
    extensions_of,
    has_extension,
    lines_of,
    mark,
    needed,
    readable_text,
    relative_paths,
    taken,
)

FILE_LIMIT = 100 << 20
MAX_PROJECTS = 100
MAX_PAGES = 1_000


@connectors.register("gitlab")
class GitLab(Plugin):
    meta = ConnectorMeta(
        "gitlab",
        _("GitLab"),
        _("Documents in projects of a GitLab."),
        "git-merge",
        8,
        "token",
        ("incremental", "hierarchical"),
        (
            Input("base_url", _("Address of the GitLab"), "url", "credentials", required=True, hint=_("Like https://gitlab.example.com")),
            Input("access_token", _("Access token"), "secret", "credentials", required=True, hint=_("With the scope read_api.")),
            Input(
                "projects", _("Projects"), "lines", "settings", required=True,
                hint=_("One per line: number or path, then if wanted @branch and :folder,folder. Example: docs/handbook@main:guide"),
            ),
            EXTENSIONS_INPUT,
        ),
    )  # fmt: skip

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = cleaned(self.meta, {**settings, "projects": "-"})
        found["projects"] = _projects(settings.get("projects"))
        extensions_of(found)
        return found

    def check(self, link: Link) -> None:
        if not link.settings.get("projects"):  # credentials alone
            _api(link, "/user")
            return
        for project in _projects(link.settings.get("projects")):
            _api(link, f"/projects/{_id(project)}")

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        states: dict[str, Any] = dict((cursor or {}).get("projects") or {})
        projects = _projects(link.settings.get("projects"))
        states = {key: state for key, state in states.items() if key in {project["project_id"] for project in projects}}
        whole, faults = True, []
        for project in projects:
            key = project["project_id"]
            known = states.get(key) if isinstance(states.get(key), dict) else None
            try:
                found = _Project(link, project, known)
                if found.unchanged:
                    whole = False
                    continue
                batch: list[tuple[Item, ...]] = list(batches(found.items()))
            except SourceError as error:
                if error.code in ("auth", "rate_limited") or len(projects) == 1:
                    raise
                error.item = key
                faults.append(error)
                if len(faults) == len(projects):
                    raise
                whole = False
                continue
            for items in batch[:-1]:
                yield Page(items, {"projects": dict(states)})
            states[key] = found.state
            yield Page(batch[-1], {"projects": dict(states)})
        yield Page((), {"projects": dict(states)}, whole=whole and not faults, faults=tuple(faults))

    def fetch(self, link: Link, item: Item) -> Content | None:
        handle = item.handle
        path = f"/projects/{quote(str(handle['project']), safe='')}/repository/blobs/{handle['blob']}/raw"
        answer = link.web.request("GET", _url(link, path), headers=_headers(link), max_bytes=FILE_LIMIT, large=True)
        return taken(answer, str(handle["path"]).rpartition("/")[2], media_type="")


class _Project:
    """One project at the head of its ref, compared with what the cursor knows of it."""

    def __init__(self, link: Link, project: Mapping[str, Any], known: Mapping[str, Any] | None) -> None:
        self.link, self.project = link, project
        facts = _api(link, f"/projects/{_id(project)}")
        self.name = str(facts.get("path") or facts.get("name") or project["project_id"])
        self.ref = str(project.get("ref") or facts.get("default_branch") or "")
        self.web_url = str(facts.get("web_url") or "")
        self.wanted = extensions_of(link.settings)
        self.chosen = mark(self.ref, project.get("paths"), sorted(self.wanted))
        self.commit = ""
        if self.ref:
            self.commit = str(_api(link, f"/projects/{_id(project)}/repository/commits/{quote(self.ref, safe='')}").get("id") or "")
        self.known = known or {}
        self.unchanged = bool(known) and self.known.get("commit") == self.commit and self.known.get("chosen") == self.chosen
        self.state: dict[str, Any] = {}

    def items(self) -> Iterator[Item]:
        """Everything that is there, then what was there and is gone."""
        before = self.known.get("files") if isinstance(self.known.get("files"), dict) else None
        found = dict(self._tree()) if self.commit else {}
        ids = identities(found, before)
        self.state = {"commit": self.commit, "chosen": self.chosen, "files": remembered(found, ids)}
        for path, blob in sorted(found.items()):
            yield self._item(path, blob, ids[path])
        alive = set(ids.values())
        for path, entry in (before or {}).items():
            old = entry[1] if len(entry) > 1 else path
            if old not in alive and path not in found:
                yield Item(self._external(old), deleted=True, resource_id=self.project["project_id"])

    def _tree(self) -> Iterator[tuple[str, str]]:
        seen: set[str] = set()
        for folder in self.project.get("paths") or [""]:
            for entry in _pages(self.link, f"/projects/{_id(self.project)}/repository/tree", folder, self.commit):
                path = str(entry.get("path") or "")
                regular = entry.get("type") == "blob" and str(entry.get("mode") or "100644").startswith("100")
                fine = regular and has_extension(path, self.wanted) and readable_text(path) and ".." not in path.split("/")
                if fine and path not in seen and below(path, [folder] if folder else []):
                    seen.add(path)
                    if len(seen) > MAX_FILES:
                        raise SourceError("too_many", f"more than {MAX_FILES} files", params={"limit": MAX_FILES})
                    yield path, str(entry.get("id") or "")

    def _external(self, own: str) -> str:
        return f"{self.project['project_id']}:{own}"

    def _item(self, path: str, blob: str, own: str) -> Item:
        inner, _slash, name = path.rpartition("/")
        top = re.sub(r"[/\\]", "-", f"{self.name}-{self.ref}")
        return Item(
            self._external(own),
            title=name,
            fingerprint=blob,
            folder=f"{top}/{inner}" if inner else top,
            url=f"{self.web_url}/-/blob/{quote(self.ref)}/{quote(path)}" if self.web_url.startswith("http") else "",
            resource_id=self.project["project_id"],
            metadata={"path": path, "ref": self.ref},
            handle={"project": self.project["project_id"], "path": path, "blob": blob},
        )


def _projects(value: Any) -> list[dict[str, Any]]:
    """The projects of the settings: the contract's list, or one line for each. Raises: SourceError(bad_settings)."""
    entries = [_line(line) for line in lines_of(value)] if isinstance(value, str) else value
    if not isinstance(entries, list) or not entries:
        raise bad("projects", _("Name at least one project."))
    if len(entries) > MAX_PROJECTS:
        raise bad("projects", _("These are too many projects."))
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        project_id = str(entry.get("project_id") or "").strip().strip("/") if isinstance(entry, Mapping) else ""
        if not re.fullmatch(r"\d{1,18}|[\w.-]+(?:/[\w.-]+)+", project_id):
            raise bad("projects", _("Name each project by its number or its full path, like group/project."))
        if project_id in found:
            raise bad("projects", _("A project is named twice."))
        raw = entry.get("paths") or []
        if not isinstance(raw, list) or not all(isinstance(path, str) for path in raw):
            raise bad("projects", _("The folders of a project are a list of paths."))
        project: dict[str, Any] = {"project_id": project_id}
        if ref := str(entry.get("ref") or "").strip():
            project["ref"] = ref[:250]
        if paths := relative_paths("projects", "\n".join(raw)):
            project["paths"] = paths
        found[project_id] = project
    return list(found.values())


def _line(line: str) -> dict[str, Any]:
    head, _colon, folders = line.partition(":")
    name, _at, ref = head.partition("@")
    return {"project_id": name, "ref": ref, "paths": [folder.strip() for folder in folders.split(",") if folder.strip()]}


def _id(project: Mapping[str, Any]) -> str:
    return quote(str(project["project_id"]), safe="")


def _url(link: Link, path: str) -> str:
    needed(link.credentials, "base_url", "access_token")
    return f"{base_url(link.credentials, '')}/api/v4{path}"


def _headers(link: Link) -> dict[str, str]:
    return {"PRIVATE-TOKEN": needed(link.credentials, "access_token")[0]}


def _api(link: Link, path: str) -> dict[str, Any]:
    found = link.web.json("GET", _url(link, path), headers=_headers(link))
    if not isinstance(found, dict):
        raise SourceError("bad_answer", "the answer is JSON of another shape")
    return found


def _pages(link: Link, path: str, folder: str, commit: str) -> Iterator[dict[str, Any]]:
    """The entries of a tree, over all pages; an empty project has none."""
    asked = {"ref": commit, "recursive": "true", "per_page": "100", "path": folder, "pagination": "keyset"}
    first = _url(link, path)
    url, params = first, dict(asked)
    for _number in range(MAX_PAGES):
        with link.web.request("GET", url, headers=_headers(link), params=params, ok=(200, 404)) as answer:
            if answer.status == 404:
                if folder:
                    return  # a folder that is gone
                raise SourceError("not_found", "the project has no such tree")
            try:
                entries = answer.json()
            except ValueError:
                entries = None
            if not isinstance(entries, list):
                raise SourceError("bad_answer", "the answer is no list")
            yield from (entry for entry in entries if isinstance(entry, dict))
            following = re.search(r'<([^<>]+)>\s*;\s*rel="next"', answer.headers.get("link", ""))
            number = answer.headers.get("x-next-page", "").strip()
        if following and urlsplit(following.group(1)).netloc == urlsplit(first).netloc:
            url, params = following.group(1), {}
        elif number.isdigit():
            url, params = first, {**asked, "page": number}
        else:
            return
    raise SourceError("too_many", f"more than {MAX_PAGES * 100} entries", params={"limit": MAX_PAGES * 100})
