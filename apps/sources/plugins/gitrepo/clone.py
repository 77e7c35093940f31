"""One commit of a repository, loaded without its history into a temporary object store."""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dulwich.object_store import DiskObjectStore, ObjectStoreGraphWalker
from dulwich.objects import Blob, Commit, ObjectID, Tag, Tree

from apps.common.storage import temp_folder
from apps.sources.plugins.gitrepo.packscan import check_pack
from apps.sources.plugins.gitrepo.transport import PACK_LIMIT, client_for, told_plainly
from apps.sources.plugins.protocol import SourceError
from apps.sources.plugins.support import readable_text

MAX_DEPTH = 40
MAX_ENTRIES = 200_000  # a tree of a few kilobytes can name the same folder millions of times


@dataclass(frozen=True, slots=True)
class File:
    path: str
    blob: str


def head_of(web: Any, url: str, branch: str, username: str, password: str) -> str:
    """The commit a branch or tag is at ("" for a repository without commits). Raises: SourceError."""
    client, path = client_for(web, url, username, password)
    with told_plainly(web):
        refs: dict[bytes, Any] = {bytes(name): sha for name, sha in client.get_refs(path.encode()).refs.items()}
    names = (
        [f"refs/heads/{branch}", f"refs/tags/{branch}^{{}}", f"refs/tags/{branch}"]
        if branch
        else ["HEAD", "refs/heads/main", "refs/heads/master"]
    )
    found = next((refs[name.encode()] for name in names if refs.get(name.encode())), None)
    if found is not None:
        return bytes(found).decode("ascii")
    if branch and refs:
        raise SourceError("not_found", "the repository has no such branch or tag", field="branch")
    return ""


class Clone:
    """The files of one commit; `close` removes what was loaded."""

    def __init__(self, web: Any, url: str, commit: str, username: str, password: str) -> None:
        self.web, self.commit = web, commit
        self.folder = Path(tempfile.mkdtemp(prefix="kb-git-", dir=temp_folder()))
        try:
            self._load(url, username, password)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if getattr(self, "store", None) is not None:
            self.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _load(self, url: str, username: str, password: str) -> None:
        client, path = client_for(self.web, url, username, password)
        (self.folder / "objects").mkdir()
        self.store = DiskObjectStore.init(self.folder / "objects")
        target, commit, abort = self.store.add_pack()
        loaded = 0

        def keep(data: bytes) -> int:
            nonlocal loaded
            self.web.check()
            loaded += len(data)
            if loaded > PACK_LIMIT:
                raise SourceError("too_large", "the repository is too large", params={"limit": PACK_LIMIT})
            return target.write(data)

        wanted = self.commit.encode()
        walker = ObjectStoreGraphWalker([], lambda _sha: [], shallow=set())
        with told_plainly(self.web):
            try:
                client.fetch_pack(path.encode(), lambda _refs, depth=None: [wanted], walker, keep, depth=1)  # type: ignore[arg-type, misc]
                target.flush()
                target.seek(0)
                check_pack(target)
            except BaseException:
                abort()
                raise
            commit()

    def files(self) -> Iterator[File]:
        """Every regular file, in order of path; links, submodules and names that are no names are left out."""
        with told_plainly(self.web):
            found: Any = self.store[self.commit.encode()]  # type: ignore[index]
            while isinstance(found, Tag):
                found = self.store[found.object[1]]
            if not isinstance(found, Commit):
                raise SourceError("bad_answer", "the branch is at no commit")
            yield from self._walk(found.tree, "", 0, [0])

    def _walk(self, sha: bytes, prefix: str, depth: int, count: list[int]) -> Iterator[File]:
        tree = self.store[sha]  # type: ignore[index]
        if not isinstance(tree, Tree):
            raise SourceError("bad_answer", "the repository is damaged")
        for entry in tree.items():
            count[0] += 1
            if count[0] > MAX_ENTRIES:
                raise SourceError("too_many", f"more than {MAX_ENTRIES} entries", params={"limit": MAX_ENTRIES})
            if count[0] % 1000 == 0:
                self.web.check()
            name = _name(entry.path or b"")
            if not name:
                continue
            path = f"{prefix}/{name}" if prefix else name
            if stat.S_ISDIR(entry.mode or 0) and depth < MAX_DEPTH:
                yield from self._walk(entry.sha or b"", path, depth + 1, count)
            elif stat.S_ISREG(entry.mode or 0):
                yield File(path, (entry.sha or b"").decode("ascii"))

    def bytes_of(self, blob: str) -> bytes:
        """The content of a file. Raises: SourceError(not_found)."""
        with told_plainly(self.web):
            if ObjectID(blob.encode()) not in self.store:
                raise SourceError("not_found", "the file is not in this commit", passing=True)
            found = self.store[blob.encode()]  # type: ignore[index]
            if not isinstance(found, Blob):
                raise SourceError("bad_answer", "the repository is damaged")
            return found.as_raw_string()


def _name(raw: bytes) -> str:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        name = raw.decode("gb18030", "replace")
    bad = "/" in name or "\\" in name or name in ("", ".", "..") or name.lower() == ".git" or not readable_text(name)
    return "" if bad else name
