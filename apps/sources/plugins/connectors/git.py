"""A Git repository of documents: the files of one branch; a file that is renamed without a change stays the same document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import gettext_lazy as _

from apps.sources.plugins.protocol import ConnectorMeta, Content, Cursor, Input, Item, Link, Page, SourceError, connectors
from apps.sources.plugins.renames import MAX_FILES, identities, known_of, remembered
from apps.sources.plugins.support import (
    EXTENSIONS_INPUT,
    PATHS_INPUT,
    Plugin,
    bad,
    batches,
    below,
    extensions_of,
    has_extension,
    mark,
    relative_paths,
    web_address,
)
from apps.sources.web import temporary

_LFS = b"version https://git-lfs.github.com/spec/"
_BRANCH = re.compile(r"(?!/|-)(?!.*(?:\.\.|@\{|//|[\x00-\x20~^:?*\[\\\x7f]))[^/](?:.{0,198}[^/.])?")


@connectors.register("git")
class Repository(Plugin):
    meta = ConnectorMeta(
        "git",
        _("Git repository"),
        _("Markdown and other documents in a branch of a Git repository."),
        "git",
        8,
        "token",
        ("incremental", "deletion_sync", "hierarchical"),
        (
            Input("url", _("Address"), "text", "settings", required=True, hint=_("https://… or git://…, as for git clone.")),
            Input("branch", _("Branch or tag"), "text", "settings", hint=_("Empty: the repository's default branch.")),
            PATHS_INPUT,
            EXTENSIONS_INPUT,
            Input("username", _("User name"), "text", "credentials", hint=_("Only for repositories that ask for one.")),
            Input("access_token", _("Password or access token"), "secret", "credentials"),
        ),
    )

    def clean(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        found = super().clean(settings)
        parts = urlsplit(found["url"]) if found["url"].startswith("git://") else None
        if parts is None:
            web_address("url", found["url"])
        elif not parts.hostname or parts.username or any(ord(sign) < 33 for sign in found["url"]):
            raise bad("url", _("This is not an address of a repository. Write one like https://example.com/team/docs.git."))
        if found.get("branch") and not _BRANCH.fullmatch(found["branch"]):
            raise bad("branch", _("This is not the name of a branch or tag."))
        relative_paths("paths", found.get("paths"))
        extensions_of(found)
        return found

    def check(self, link: Link) -> None:
        self._head(link)

    def listing(self, link: Link, cursor: Cursor | None) -> Iterator[Page]:
        url = str(link.settings["url"])
        wanted, paths = extensions_of(link.settings), relative_paths("paths", link.settings.get("paths"))
        chosen = mark(link.settings.get("branch"), sorted(wanted), paths)
        known = known_of(cursor, url)
        head = self._head(link)
        if cursor and known is not None and cursor.get("commit") == head and cursor.get("chosen") == chosen:
            yield Page((), cursor)
            return
        found = {file.path: file.blob for file in self._files(link, head) if has_extension(file.path, wanted) and below(file.path, paths)}
        if len(found) > MAX_FILES:
            raise SourceError("too_many", f"more than {MAX_FILES} files", params={"limit": MAX_FILES})
        ids = identities(found, known)
        items = (_item(path, blob, ids[path], head) for path, blob in sorted(found.items()))
        pages = [Page(batch) for batch in batches(items)]
        last = pages.pop()
        yield from pages
        yield Page(last.items, {"scope": url, "commit": head, "chosen": chosen, "files": remembered(found, ids)}, whole=True)

    def fetch(self, link: Link, item: Item) -> Content | None:
        data = self._clone(link, str(item.handle["commit"])).bytes_of(str(item.handle["blob"]))
        if not data or data.startswith(_LFS):
            return None  # a pointer to a file that is kept elsewhere
        return Content(temporary(data), str(item.handle["path"]).rpartition("/")[2])

    def _head(self, link: Link) -> str:
        from apps.sources.plugins.gitrepo.clone import head_of

        return head_of(link.web, str(link.settings["url"]), str(link.settings.get("branch") or ""), *_account(link))

    def _clone(self, link: Link, commit: str) -> Any:
        from apps.sources.plugins.gitrepo.clone import Clone

        url = str(link.settings["url"])
        return link.web.keep("clone", (url, commit), lambda: Clone(link.web, url, commit, *_account(link)))

    def _files(self, link: Link, commit: str) -> Iterator[Any]:
        return self._clone(link, commit).files() if commit else iter(())


def _account(link: Link) -> tuple[str, str]:
    return str(link.credentials.get("username") or ""), str(link.credentials.get("access_token") or "")


def _item(path: str, blob: str, external_id: str, commit: str) -> Item:
    folder, _slash, name = path.rpartition("/")
    return Item(
        external_id,
        title=name,
        fingerprint=blob,
        folder=folder,
        metadata={"path": path},
        handle={"path": path, "blob": blob, "commit": commit},
    )
