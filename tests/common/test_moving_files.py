"""`manage.py move_files`: folder and bucket hold the same afterwards, whatever happened on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages as configured
from django.core.management import CommandError, call_command
from django.utils import translation

from apps.common import moving_files, storage
from apps.common.models import WorkerBeat
from apps.common.stores.objects import ObjectStore
from kbportal import env, storages
from tests.support.filestore import KEYS, ObjectServer, fresh_prefix

pytestmark = pytest.mark.django_db

FILES = {f"1/base/document-{number}/v/original": b"%d" % number * 1000 for number in range(7)} | {"1/base/empty/v/original": b""}


class Way:
    """A folder with files, an empty prefix, and the command between them."""

    def __init__(self, server: ObjectServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.prefix = fresh_prefix()
        self.url = server.url(self.prefix)
        self.server = server
        self._capsys = capsys

    def go(self, to: str = "", **options: Any) -> str:
        call_command("move_files", to=to or self.url, **options)
        return self._capsys.readouterr().out

    def bytes(self, key: str) -> bytes:
        return bytes(self.server.client().get_object(Bucket="kbportal", Key=f"{self.prefix}/{key}")["Body"].read())


@pytest.fixture
def way(settings: Any, tmp_path: Path, object_server: ObjectServer, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Way]:
    for name in ("run", "tmp"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR, settings.TEMP_DIR = tmp_path, tmp_path / "tmp"
    settings.STORAGES = {**settings.STORAGES, "default": storages.folder(tmp_path / "files")}
    monkeypatch.setattr(env, "S3_ACCESS_KEY", KEYS["KB_S3_ACCESS_KEY"])
    monkeypatch.setattr(env, "S3_SECRET_KEY", KEYS["KB_S3_SECRET_KEY"])
    for key, data in FILES.items():
        storage.write(key, ContentFile(data))
    with translation.override("en"):
        yield Way(object_server, capsys)


def test_everything_arrives_and_can_go_back(way: Way, settings: Any, tmp_path: Path) -> None:
    said = way.go()
    assert "8 files" in said and "8 copied, 0 there before" in said and f"KB_STORAGE_URL={way.url}" in said
    assert {key: way.bytes(key) for key in way.server.keys(way.prefix)} == FILES
    assert set(storage.keys()) == set(FILES), "the folder keeps everything"
    settings.STORAGES = {
        **settings.STORAGES,
        "default": storages.objects(way.url, access_key=KEYS["KB_S3_ACCESS_KEY"], secret_key=KEYS["KB_S3_SECRET_KEY"]),
    }
    assert "8 copied" in way.go(str(tmp_path / "back"))
    back = tmp_path / "back"
    assert {str(path.relative_to(back)): path.read_bytes() for path in back.rglob("original")} == FILES


def test_an_interrupted_move_goes_on_where_it_was(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    carry, done = moving_files._carry, []

    def breaking(*args: Any, **named: Any) -> bool:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(args)
        return carry(*args, **named)

    monkeypatch.setattr(moving_files, "_carry", breaking)
    with pytest.raises(KeyboardInterrupt):
        way.go()
    assert len(way.server.keys(way.prefix)) == 3
    read: list[str] = []

    def counting(*args: Any, **named: Any) -> bool:
        read.append(args[2].key)
        return carry(*args, **named)

    monkeypatch.setattr(moving_files, "_carry", counting)
    assert "5 copied, 3 there before" in way.go()
    assert len(read) == 5
    storage.write("1/base/late/v/original", ContentFile(b"came meanwhile"))
    read.clear()
    assert "1 copied, 8 there before" in way.go()
    assert read == ["1/base/late/v/original"]
    read.clear()
    assert "0 copied, 9 there before" in way.go(again=True)
    assert len(read) == 9


def test_a_target_that_holds_something_else_is_refused_by_name(way: Way) -> None:
    key = next(iter(FILES))
    way.server.client().put_object(Bucket="kbportal", Key=f"{way.prefix}/{key}", Body=b"of somebody else")
    with pytest.raises(CommandError, match=f"{key}: the target holds another file"):
        way.go()
    assert way.bytes(key) == b"of somebody else"


def test_a_target_that_changes_bytes_is_found_out(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ObjectStore.reader

    def damaged(self: ObjectStore, name: str) -> Any:
        with reader(self, name) as source:
            return ContentFile(source.read()[:-1] + b"!")

    monkeypatch.setattr(ObjectStore, "reader", damaged)
    with pytest.raises(CommandError, match="gave back other bytes"):
        way.go()
    assert way.server.keys(way.prefix) == [], "the copy that differs is removed"


def test_what_cannot_be_a_target_is_explained(way: Way) -> None:
    for to, words in (
        ("folder", "are in .* already"),
        ("nowhere", "--to takes"),
        ("s3://b", "must name a bucket"),
        (way.server.url(bucket="no-such-bucket"), "its bucket does not exist"),
    ):
        with pytest.raises(CommandError, match=words):
            way.go(to)


def test_it_says_when_the_portal_runs_and_what_only_the_target_has(way: Way) -> None:
    from django.utils import timezone

    way.server.client().put_object(Bucket="kbportal", Key=f"{way.prefix}/1/gone", Body=b"deleted here meanwhile")
    now = timezone.now()
    WorkerBeat.objects.create(name="here:1", queues=["parse"], started_at=now, seen_at=now)
    said = way.go()
    assert "1 files are only in the target" in said
    assert "The portal is running: stop it" in said and "KB_STORAGE_URL=" not in said


def test_the_configured_store_is_what_the_settings_say() -> None:
    assert configured["default"].__class__.__name__ in ("FolderStore", "ObjectStore")
