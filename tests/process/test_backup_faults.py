"""Backup and restore when something goes wrong: killed, cut off, altered, in the wrong place, of another version."""

from __future__ import annotations

import io
import json
import signal
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connections, transaction
from django.db.utils import ConnectionHandler

from apps.operations.archive import ArchiveWriter
from kbportal import databases
from tests.support.stack import ROOT, LiveStack
from tests.support.waiting import until
from tests.upgrade.filling import fill

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SQLITE = {"KB_DATABASE_URL": "", "KB_BROKER_URL": ""}
LARGE = 400 << 20
ALIAS = "filled"


def portal(folder: Path) -> LiveStack:
    """A portal that is not started; commands run on its data."""
    stack = LiveStack(folder, env=SQLITE)
    stack.data_dir.mkdir(parents=True, exist_ok=True)
    return stack


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any) -> LiveStack:
    """A portal with rows in every table and the files they name, one of them large."""
    stack = portal(tmp_path_factory.mktemp("source") / "data")
    stack.manage("migrate", "--verbosity", "0")
    connections.settings[ALIAS] = ConnectionHandler({"default": databases.sqlite(stack.data_dir / "kbportal.sqlite3")}).settings["default"]
    with django_db_blocker.unblock():
        with connections[ALIAS].constraint_checks_disabled(), transaction.atomic(using=ALIAS):
            for model in ("auth_permission", "django_content_type"):
                with connections[ALIAS].cursor() as cursor:
                    cursor.execute(f"DELETE FROM {model}")
            fill(apps, ALIAS)
        connections[ALIAS].close()
        del connections[ALIAS], connections.settings[ALIAS]
    with closing(sqlite3.connect(stack.data_dir / "kbportal.sqlite3")) as connection, connection:
        connection.execute("UPDATE knowledge_document SET deleted_at = NULL, parse_status = 'completed', chunk_count = 0")
        connection.execute("UPDATE knowledge_knowledgebase SET deleted_at = NULL")
        names = connection.execute("SELECT storage_path, parsed_path FROM knowledge_document ORDER BY id").fetchall()
    for number, name in enumerate(name for row in names for name in row):
        path = stack.data_dir / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"file {number}".encode() * 1000)
    with (stack.data_dir / "files" / names[0][0]).open("wb") as file:
        file.truncate(LARGE)
    return stack


@pytest.fixture(scope="module")
def archive(source: LiveStack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup without the large file's bytes, so that the rest is quick."""
    path = tmp_path_factory.mktemp("archive") / "backup.tar"
    large = next(file for file in (source.data_dir / "files").rglob("*") if file.is_file() and file.stat().st_size == LARGE)
    large.write_bytes(b"large no more")
    done = source.manage("backup", "--to", str(path))
    assert "38 tables" in done.stdout or "tables" in done.stdout
    with large.open("wb") as file:
        file.truncate(LARGE)
    return path


def contents(data_dir: Path) -> dict[str, str]:
    """{path: contents} of the data folder, the broker and locks apart."""
    found = {}
    for path in sorted(data_dir.rglob("*")):
        inside = path.relative_to(data_dir).as_posix()
        if path.is_file() and not inside.startswith(("run/", "broker/", "index/")) and not inside.endswith(("-shm", "-wal")):
            found[inside] = f"{path.stat().st_size} {hash(path.read_bytes()[:100000])}"
    return found


def rewritten(archive: Path, target: Path, change: Callable[[dict[str, Any]], set[str]]) -> Path:
    """The same archive with another manifest; `change` returns the members to leave out."""
    with tarfile.open(archive) as tar, target.open("wb") as file:
        held = {entry.name: (tar.extractfile(entry) or io.BytesIO()).read() for entry in tar}
        manifest = json.loads(held.pop("manifest.json"))
        held.pop("manifest.sha256")
        left_out = change(manifest)
        writer = ArchiveWriter(file)
        for name, data in held.items():
            if name not in left_out:
                writer.add_bytes(name, data)
        del manifest["members"]
        writer.finish(manifest)
    return target


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait(10)


def begin(stack: LiveStack, processes: list[subprocess.Popen[bytes]], *argv: str) -> subprocess.Popen[bytes]:
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "manage.py", *argv], cwd=ROOT, env=stack.environ, **quiet)  # type: ignore[call-overload]
    processes.append(process)
    return process  # type: ignore[no-any-return]


def test_a_killed_backup_leaves_no_archive_and_the_next_one_is_whole(source: LiveStack, tmp_path: Path, processes: list[Any]) -> None:
    path, part = tmp_path / "backup.tar", tmp_path / ".backup.tar.part"
    killed = begin(source, processes, "backup", "--to", str(path))
    until(lambda: part.exists() and part.stat().st_size > 1 << 20, "the backup to be under way", timeout_s=120, every_s=0.002)
    killed.send_signal(signal.SIGKILL)
    killed.wait(10)
    assert killed.returncode == -signal.SIGKILL
    assert part.stat().st_size < LARGE
    assert not path.exists()
    assert "backup: " in source.manage("backup", "--to", str(path)).stdout
    assert path.stat().st_size > LARGE
    assert [file.name for file in tmp_path.iterdir()] == ["backup.tar"]
    assert list((source.data_dir / "run").glob("backup-snapshot*")) == []
    again = source.manage("backup", "--to", str(path), check=False)
    assert again.returncode == 1 and "exists already" in again.stderr


def test_a_backup_to_standard_output_without_secrets(source: LiveStack, archive: Path) -> None:
    env = source.environ | {"KB_EMAIL_URL": "smtp://me:pa55word@mail.example:587", "KB_EMBEDDING_API_KEY": "sk-hidden-from-you"}
    argv = [sys.executable, "manage.py", "backup", "--to", "-", "--without-secrets"]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, timeout=120, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        names = tar.getnames()
        settings = json.loads((tar.extractfile("settings.json") or io.BytesIO()).read())
    assert names[-2:] == ["manifest.json", "manifest.sha256"] and "secret_key" not in names
    assert settings["KB_PORT"] == str(source.port)
    assert {"KB_EMAIL_URL", "KB_EMBEDDING_API_KEY", "KB_SECRET_KEY"} & set(settings) == set()
    assert b"pa55word" not in done.stdout and b"sk-hidden" not in done.stdout
    assert b"without secrets" in done.stderr and b"backup: " in done.stderr


def test_a_damaged_archive_is_refused_before_anything_is_touched(archive: Path, tmp_path: Path) -> None:
    target = portal(tmp_path / "data")
    whole = archive.read_bytes()
    damaged = tmp_path / "damaged.tar"
    target.manage("check")  # makes the folders and the key
    before = contents(target.data_dir)
    for data, words in (
        (whole[: len(whole) // 2], "nothing was restored"),
        (whole.replace(b"file 1file 1", b"file 1fil3 1", 1), "is damaged: files/"),
    ):
        damaged.write_bytes(data)
        refused = target.manage("restore", str(damaged), check=False)
        assert refused.returncode == 1 and words in refused.stderr, refused.stderr
        assert contents(target.data_dir) == before


def test_a_killed_restore_leaves_what_was_there_and_the_next_one_replaces_it(
    source: LiveStack, archive: Path, tmp_path: Path, processes: list[Any]
) -> None:
    target = portal(tmp_path / "data")
    target.manage("restore", str(archive))
    (target.data_dir / "files" / "stray").mkdir()
    (target.data_dir / "files" / "stray" / "file").write_bytes(b"not of the backup")
    with closing(sqlite3.connect(target.data_dir / "kbportal.sqlite3")) as connection, connection:
        connection.execute("UPDATE knowledge_document SET title = 'changed since'")
    before = contents(target.data_dir)
    fresh = target.data_dir / "kbportal.sqlite3.restoring"
    killed = begin(target, processes, "restore", str(archive), "--force")
    until(fresh.exists, "the restore to be under way", timeout_s=120, every_s=0.002)
    killed.send_signal(signal.SIGKILL)
    killed.wait(10)
    after = {name: found for name, found in contents(target.data_dir).items() if "restoring" not in name}
    assert after == before

    refused = target.manage("restore", str(archive), check=False)
    assert refused.returncode == 1 and "not empty" in refused.stderr and "--force" in refused.stderr
    target.manage("restore", str(archive), "--force")
    assert not fresh.exists() and not (target.data_dir / "files" / "stray" / "file").exists()
    with closing(sqlite3.connect(target.data_dir / "kbportal.sqlite3")) as connection:
        assert connection.execute("SELECT count(*) FROM knowledge_document WHERE title = 'changed since'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM knowledge_document").fetchone() == (3,)

    (target.data_dir / "run" / "restoring").write_text(str(archive))  # as a restore leaves it that is killed in the change-over
    half = target.manage("serve", check=False)
    assert half.returncode == 1 and f"restore {archive} --force" in half.stderr
    target.manage("restore", str(archive), "--force")
    assert not (target.data_dir / "run" / "restoring").exists()


def test_an_older_backup_is_migrated_forward_and_a_newer_one_refused(archive: Path, tmp_path: Path) -> None:
    def older(manifest: dict[str, Any]) -> set[str]:
        manifest["migrations"] = [[app, name] for app, name in manifest["migrations"] if app != "retrieval" or name == "0001_initial"]
        later = [name for name in manifest["tables"] if name.startswith("retrieval_") and name != "retrieval_passagevector"]
        for table in later:
            del manifest["tables"][table]
        assert "retrieval_baseindex" in later
        return {name for name in manifest["members"] for table in later if name.startswith(f"rows/{table}/")}

    def newer(manifest: dict[str, Any]) -> set[str]:
        manifest["migrations"].append(["knowledge", "0999_from_the_future"])
        return set()

    target = portal(tmp_path / "data")
    refused = target.manage("restore", str(rewritten(archive, tmp_path / "newer.tar", newer)), check=False)
    assert refused.returncode == 1 and "knowledge.0999_from_the_future is not known here" in refused.stderr
    done = target.manage("restore", str(rewritten(archive, tmp_path / "older.tar", older)))
    assert "migrations up to this version" in done.stderr
    with closing(sqlite3.connect(target.data_dir / "kbportal.sqlite3")) as connection:
        assert connection.execute("SELECT count(*) FROM retrieval_baseindex").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM retrieval_passagevector").fetchone() == (3,)
