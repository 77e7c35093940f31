"""Identity of files that have only a path: one that was renamed or moved without a change keeps its id.

Shared by the folders (local, WebDAV, bucket, repository). The cursor remembers each path with a mark that a rename leaves alone.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

#: path -> [mark] or [mark, id], the id where it is not the path; JSON
Known = dict[str, list[str]]

MAX_FILES = 20_000  # what a cursor can hold


def identities(present: Mapping[str, str], known: Known | None) -> dict[str, str]:
    """The id of every path that is there. `present`: path -> mark ("" where nothing survives a rename).

    A path keeps its id. A new path whose mark belongs to exactly one path that is gone, and to no other new one, takes over that id.
    """
    before = known or {}
    ids = {path: _id_of(path, before[path]) for path in present if path in before}
    gone: dict[str, list[str]] = defaultdict(list)
    fresh: dict[str, list[str]] = defaultdict(list)
    for path, entry in before.items():
        if path not in present and entry[0]:
            gone[entry[0]].append(path)
    for path, mark in present.items():
        if path not in before and mark:
            fresh[mark].append(path)
    for mark, paths in fresh.items():
        if len(paths) == 1 and len(gone.get(mark, ())) == 1:
            old = gone[mark][0]
            ids[paths[0]] = _id_of(old, before[old])
    taken = set(ids.values())
    for path in sorted(present):
        if path not in ids:
            ids[path] = path if path not in taken else f"{path}@{hashlib.sha256(f'{path}|{present[path]}'.encode()).hexdigest()[:8]}"
            taken.add(ids[path])
    return ids


def remembered(present: Mapping[str, str], ids: Mapping[str, str]) -> Known:
    """What the cursor keeps of this listing."""
    return {path: [mark] if ids[path] == path else [mark, ids[path]] for path, mark in present.items()}


def known_of(cursor: Mapping[str, Any] | None, scope: str) -> Known | None:
    """What the cursor remembers, unless it was made for other settings (`scope`) or is not what it should be."""
    files = cursor.get("files") if cursor and cursor.get("scope") == scope else None
    return files if isinstance(files, dict) else None


def _id_of(path: str, entry: list[str]) -> str:
    return entry[1] if len(entry) > 1 else path
