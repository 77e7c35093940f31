"""What folders and repositories have of their own: links that lead outside, branches, history that was rewritten, packs that swell."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dulwich import porcelain
from dulwich.repo import Repo

from apps.sources.plugins.gitrepo import packscan
from apps.sources.plugins.protocol import Item, SourceError, connectors
from tests.support.hosted.folders import FolderBench, GitSocketBench


@pytest.fixture
def folder(settings: Any) -> Iterator[FolderBench]:
    bench = FolderBench()
    settings.SOURCE_FOLDERS = [str(bench.root)]
    yield bench
    bench.close()


@pytest.fixture
def repository(settings: Any) -> Iterator[GitSocketBench]:
    settings.FETCH_ALLOW = ["127.0.0.1/32"]
    bench = GitSocketBench()
    yield bench
    bench.close()


def test_links_that_lead_outside_are_not_followed(folder: FolderBench, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    (folder.root / "out.md").symlink_to(tmp_path / "secret.md")
    (folder.root / "outer").symlink_to(tmp_path)
    (folder.root / ".hidden.md").write_text("x", encoding="utf-8")

    found = folder.run()

    assert set(found.items) == {"docs/alpha.md", "docs/beta.md", "docs/gamma.md"}
    for path in ("out.md", "outer/secret.md", "../secret.md", "docs/../../secret.md"):
        link = folder.link()
        with pytest.raises(SourceError) as caught:
            folder.connector.fetch(link, Item("x", handle={"path": path}))
        assert caught.value.code == "not_found"


@pytest.mark.parametrize("path", ["/", "/etc", "relative", "{root}/..", "{root}-beside"])
def test_only_folders_the_operator_allowed_are_read(path: str, folder: FolderBench) -> None:
    with pytest.raises(SourceError) as caught:
        folder.connector.clean({"folder": path.format(root=folder.root)})
    assert (caught.value.code, caught.value.field) == ("bad_settings", "folder")


def test_a_file_that_replaces_a_renamed_one_is_another_document(folder: FolderBench) -> None:
    first = folder.run()
    folder.path("alpha").rename(folder.path("old"))
    folder.write("alpha", "Something else entirely.")

    later = folder.run(first.cursor)
    again = folder.run(later.cursor)

    # a path keeps its document; what was moved away under a new name is the new one
    assert later.id_of("Something else entirely.") == "docs/alpha.md"
    assert len(set(later.items)) == 4
    assert again.fingerprints == later.fingerprints


def test_links_and_odd_names_in_a_repository_are_left_out(repository: GitSocketBench) -> None:
    os.symlink("/etc/passwd", repository.root / "docs" / "link.md")
    repository.commit(docs__film="x")
    found = repository.run()

    assert "docs/link.md" not in found.items
    assert "docs/film.md" in found.items


def test_a_rewritten_history_is_read_anew(repository: GitSocketBench) -> None:
    first = repository.run()
    repo = Repo(str(repository.root))
    parent = repo[repo.head()].parents[0]
    repo.refs[b"refs/heads/" + porcelain.active_branch(repo)] = parent
    repo.close()

    later = repository.run(first.cursor)

    assert (later.whole, set(first.items) - set(later.items)) == (True, {"docs/gamma.md"})


def test_a_branch_that_is_not_there_is_named(repository: GitSocketBench) -> None:
    link = repository.link()
    link.settings["branch"] = "nowhere"  # type: ignore[index]
    with pytest.raises(SourceError) as caught:
        repository.connector.check(link)
    assert (caught.value.code, caught.value.field) == ("not_found", "branch")
    with pytest.raises(SourceError):
        connectors.get("git").clean({**repository.settings(), "branch": "--upload-pack=x"})


def pack(*objects: bytes) -> io.BytesIO:
    return io.BytesIO(b"PACK\0\0\0\2" + len(objects).to_bytes(4, "big") + b"".join(objects) + b"\0" * 20)


def packed(kind: int, size: int, data: bytes) -> bytes:
    head, size = [(kind << 4) | (size & 15)], size >> 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head) + (b"\0" * 20 if kind == 7 else b"") + zlib.compress(data)


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (pack(packed(3, 5, b"hello")), ""),
        (pack(packed(3, packscan.MAX_OBJECT + 1, b"x")), "too_large"),
        (pack(packed(3, 5, b"longer than it says")), "bad_answer"),
        (pack(packed(7, 10, b"\x05" + b"\xff\xff\xff\xff\x0f" + b"\x90\x05ab")), "too_large"),
        (io.BytesIO(b"PACK\0\0\0\2" + (1 << 31).to_bytes(4, "big")), "too_many"),
        (io.BytesIO(b"<html>"), "bad_answer"),
        (io.BytesIO(b"PACK\0\0\0\2\0\0\0\1"), "bad_answer"),
    ],
    ids=["fine", "declared too large", "longer than declared", "a delta that swells", "too many", "no pack", "cut"],
)
def test_a_pack_is_looked_at_before_it_is_unpacked(made: io.BytesIO, code: str) -> None:
    if not code:
        assert packscan.check_pack(made) == 1
        return
    with pytest.raises(SourceError) as caught:
        packscan.check_pack(made)
    assert caught.value.code == code
