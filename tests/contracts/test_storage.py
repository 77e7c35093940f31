"""What every file store promises, what a folder and a bucket promise beside it, and what a server that misbehaves is answered with."""

from __future__ import annotations

import copy
import errno
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages as configured
from django.core.files.uploadedfile import TemporaryUploadedFile

from apps.common.errors import StoreUnavailable
from apps.common.stores.folder import INCOMING, FolderStore
from apps.common.stores.objects import FIRST_WINDOW, PART_BYTES, ObjectStore
from kbportal import storages
from tests.support.filestore import BUCKET, KEYS, ObjectServer, fresh_prefix
from tests.support.redis import free_port

Store = Any
ACCESS = {"access_key": KEYS["KB_S3_ACCESS_KEY"], "secret_key": KEYS["KB_S3_SECRET_KEY"]}
BIG = bytes(range(256)) * 4096 * 2  # 2 MiB that differ everywhere


def made(entry: dict[str, Any]) -> Store:
    return configured.create_storage(entry)


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return made(storages.folder(tmp_path / "files"))
    return request.getfixturevalue("bucket")


@pytest.fixture(scope="module")
def connected(object_server: ObjectServer) -> ObjectStore:
    store = made(storages.objects(object_server.url(), **ACCESS))
    store.probe()
    return store


@pytest.fixture
def bucket(connected: ObjectStore) -> ObjectStore:
    """An empty prefix of its own; making a client takes longer than most tests, so there is one."""
    mine = copy.copy(connected)
    mine.location = fresh_prefix()
    return mine


def put(store: Store, key: str, data: bytes) -> str:
    return str(store.save(key, ContentFile(data)))


def get(store: Store, key: str) -> bytes:
    with store.reader(key) as source:
        return bytes(source.read())


def listed(store: Store, prefix: str = "") -> list[str]:
    return sorted(entry.key for entry in store.entries(prefix))


class TestEveryStore:
    @pytest.mark.parametrize("data", [b"", b"x", b"\x00\xff" * 1000, BIG], ids=["empty", "one", "binary", "big"])
    def test_gives_back_what_was_put(self, store: Store, data: bytes) -> None:
        assert put(store, "1/a/b/original", data) == "1/a/b/original"
        assert get(store, "1/a/b/original") == data
        assert store.size("1/a/b/original") == len(data)
        assert store.exists("1/a/b/original")

    def test_reads_any_range_in_any_order(self, store: Store) -> None:
        put(store, "k", BIG)
        with store.reader("k") as source:
            assert source.seek(0, os.SEEK_END) == len(BIG)
            assert source.read(10) == b""
            for at, length in ((1_500_000, 70_000), (0, 5), (len(BIG) - 3, 100), (1_500_010, 300_000), (FIRST_WINDOW - 2, 4)):
                source.seek(at)
                assert source.read(length) == BIG[at : at + length]
                assert source.tell() == min(at + length, len(BIG))
            source.seek(100)
            source.seek(23, os.SEEK_CUR)
            assert source.read() == BIG[123:]

    def test_what_is_not_there_is_said(self, store: Store) -> None:
        assert not store.exists("1/never")
        for ask in (store.reader, store.size):
            with pytest.raises(FileNotFoundError):
                ask("1/never")
        store.delete("1/never")
        assert listed(store) == [] and listed(store, "1") == []

    def test_a_key_that_is_taken_is_never_overwritten(self, store: Store) -> None:
        put(store, "1/k", b"first")
        other = put(store, "1/k", b"second")
        assert other != "1/k"
        assert (get(store, "1/k"), get(store, other)) == (b"first", b"second")

    def test_deletes_one_and_only_that(self, store: Store) -> None:
        for key in ("1/a/x", "1/a/xy", "1/ab"):
            put(store, key, b"1")
        store.delete("1/a/x")
        store.delete("1/a/x")
        assert listed(store) == ["1/a/xy", "1/ab"]

    def test_lists_a_folder_of_keys_with_sizes_and_times(self, store: Store) -> None:
        before = time.time() - 5
        for number in range(12):
            put(store, f"1/a/{number}/original", b"x" * number)
        put(store, "1/ab/original", b"neighbour")
        found = {entry.key: entry for entry in store.entries("1/a")}
        assert sorted(found) == sorted(f"1/a/{number}/original" for number in range(12))
        assert found["1/a/7/original"].size_bytes == 7
        assert all(before < entry.changed_at < time.time() + 5 for entry in found.values())
        assert len(listed(store)) == 13

    def test_takes_an_upload_that_lies_in_a_file(self, store: Store) -> None:
        upload = TemporaryUploadedFile("name of a person.pdf", "text/html", len(BIG), "utf-8")
        upload.write(BIG)
        upload.seek(0)
        put_under = store.save("1/k/original", upload)
        assert get(store, put_under) == BIG
        upload.close()

    def test_many_at_once(self, store: Store) -> None:
        def both(number: int) -> bytes:
            return get(store, put(store, f"{number % 3}/{number}/original", b"%d" % number * 1000))

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(both, range(40))) == [b"%d" % number * 1000 for number in range(40)]
        assert len(listed(store)) == 40

    def test_deleting_and_storing_side_by_side_lose_nothing(self, store: Store) -> None:
        def cycle(number: int) -> bool:
            for turn in range(10):
                key = put(store, f"1/same/{number}/{turn}", b"data")
                assert get(store, key) == b"data"
                store.delete(key)
            return True

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(cycle, range(4)))
        assert listed(store) == []

    def test_a_source_that_breaks_off_leaves_nothing(self, store: Store) -> None:
        class Broken(ContentFile):
            def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
                yield b"half"
                raise ConnectionResetError(errno.ECONNRESET, "the sender went away")

            def read(self, *_args: Any) -> bytes:
                raise ConnectionResetError(errno.ECONNRESET, "the sender went away")

        with pytest.raises((StoreUnavailable, OSError)):
            store.save("1/k", Broken(b"half and more"))
        assert not store.exists("1/k")
        assert listed(store) == []

    def test_answers_a_probe_and_gives_no_public_address(self, store: Store) -> None:
        store.probe()
        put(store, "1/k", b"x")
        with pytest.raises(NotImplementedError):
            store.url("1/k")

    @pytest.mark.parametrize("key", ["../outside", "1/../../outside", "/etc/passwd"])
    def test_keys_that_lead_out_are_refused(self, store: Store, key: str) -> None:
        from django.core.exceptions import SuspiciousOperation

        with pytest.raises(SuspiciousOperation):
            put(store, key, b"x")


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> FolderStore:
        return made(storages.folder(tmp_path / "files"))

    def test_half_written_files_are_not_seen_and_are_swept(self, folder: FolderStore, tmp_path: Path) -> None:
        seen: list[list[str]] = []

        class Watched(ContentFile):
            def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
                yield b"half"
                seen.append(listed(folder))
                yield b"whole"

        folder.save("1/k", Watched(b"."))
        assert seen == [[]] and get(folder, "1/k") == b"halfwhole"
        left = tmp_path / "files" / INCOMING / "left"
        left.write_bytes(b"of a crash")
        os.utime(left, (1, 1))
        assert folder.sweep(3600) == 1 and not left.exists()
        assert listed(folder) == ["1/k"]

    def test_files_are_private_and_empty_folders_go(self, folder: FolderStore, tmp_path: Path) -> None:
        put(folder, "1/a/b/original", b"x")
        assert (tmp_path / "files/1/a/b/original").stat().st_mode & 0o777 == 0o600
        folder.delete("1/a/b/original")
        assert not (tmp_path / "files/1").exists()

    def test_a_disk_without_links_works_too(self, folder: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_args: Any) -> None:
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuse)
        put(folder, "1/k", b"first")
        assert get(folder, put(folder, "1/k", b"second")) == b"second"
        assert get(folder, "1/k") == b"first"

    def test_a_full_disk_is_said_and_nothing_is_left(self, folder: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_handle: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreUnavailable) as caught:
            put(folder, "1/k", b"x")
        assert caught.value.why == "disk_full"
        assert listed(folder) == []

    def test_a_folder_that_may_not_be_used_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "files").write_text("a file where the folder should be")
        with pytest.raises(StoreUnavailable):
            made(storages.folder(tmp_path / "files")).probe()


class TestBucket:
    def test_large_files_come_in_parts_and_are_whole(self, bucket: ObjectStore) -> None:
        data = BIG * 9
        assert len(data) > PART_BYTES
        put(bucket, "1/k", data)
        assert get(bucket, "1/k") == data

    def test_a_range_costs_that_range(self, bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
        put(bucket, "k", BIG)
        asked: list[int] = []
        fetch = ObjectStore.fetch
        monkeypatch.setattr(ObjectStore, "fetch", lambda self, *args: asked.append(args[-1]) or fetch(self, *args))
        with bucket.reader("k") as source:
            source.seek(1_000_000)
            assert source.read(1000) == BIG[1_000_000:1_001_000]
        assert asked == [FIRST_WINDOW]

    def test_uploads_that_were_cut_off_are_swept(self, bucket: ObjectStore) -> None:
        key = f"{bucket.location}/1/k"
        bucket.client.create_multipart_upload(Bucket=BUCKET, Key=key)
        assert listed(bucket) == []
        assert bucket.sweep(100 * 365 * 86400) == 0
        assert bucket.sweep(60) == 1  # the test server says that every upload began in 2010
        assert bucket.sweep(60) == 0

    def test_only_what_is_under_the_prefix_is_seen(self, bucket: ObjectStore) -> None:
        bucket.client.put_object(Bucket=BUCKET, Key=f"{bucket.location}x/1/k", Body=b"of another portal")
        bucket.client.put_object(Bucket=BUCKET, Key=f"{bucket.location}/1/", Body=b"")
        put(bucket, "1/k", b"mine")
        assert listed(bucket) == ["1/k"]

    def test_names_and_types_of_people_do_not_reach_the_server(self, bucket: ObjectStore) -> None:
        content = ContentFile(b"<script>", name="evil.html")
        content.content_type = "text/html"  # type: ignore[attr-defined]
        bucket.save("1/k/original", content)
        head = bucket.client.head_object(Bucket=BUCKET, Key=f"{bucket.location}/1/k/original")
        assert (head["ContentType"], head["Metadata"]) == ("application/octet-stream", {})

    def test_threads_share_one_client(self, bucket: ObjectStore) -> None:
        with ThreadPoolExecutor(4) as pool:
            clients = {id(client) for client in pool.map(lambda _n: bucket.client, range(8))}
        assert len(clients) == 1

    def test_an_object_that_was_replaced_is_not_mixed(self, bucket: ObjectStore) -> None:
        put(bucket, "k", BIG)
        with bucket.reader("k") as source:
            assert source.read(10) == BIG[:10]
            bucket.client.put_object(Bucket=BUCKET, Key=f"{bucket.location}/k", Body=BIG[::-1])
            source.seek(1_000_000)
            with pytest.raises(FileNotFoundError):
                source.read(10)


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The address of a server that gives every request the same answer."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = handle_one

        def log_message(self, *_args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def refusing(status: int, code: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        body = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    return answer


EVERYTHING: dict[str, Callable[[Store], Any]] = {
    "put": lambda store: put(store, "1/k", b"x"),
    "get": lambda store: get(store, "1/k"),
    "size": lambda store: store.size("1/k"),
    "exists": lambda store: store.exists("1/k"),
    "delete": lambda store: store.delete("1/k"),
    "list": lambda store: listed(store),
    "probe": lambda store: store.probe(),
    "sweep": lambda store: store.sweep(0),
}


class TestServersThatMisbehave:
    def at(self, endpoint: str, **options: str) -> ObjectStore:
        return made(storages.objects(ObjectServer(endpoint).url("p", **options), **ACCESS))

    def why(self, store: Store) -> dict[str, str]:
        """What each method says of a store that cannot be used."""
        found = {}
        for name, ask in EVERYTHING.items():
            with pytest.raises(StoreUnavailable) as caught:
                ask(store)
            assert caught.value.code == "storage_unavailable"
            assert "127.0.0.1" not in str(caught.value), "where the files are is nobody's business"
            found[name] = caught.value.why
        return found

    def test_nobody_listens(self) -> None:
        assert set(self.why(self.at(f"http://127.0.0.1:{free_port()}", timeout_s="1")).values()) == {"unreachable"}

    @pytest.mark.parametrize(("status", "code", "why"), [(403, "AccessDenied", "access_denied"), (501, "NotImplemented", "refused")])
    def test_it_refuses(self, status: int, code: str, why: str) -> None:
        with answering(refusing(status, code)) as endpoint:
            assert set(self.why(self.at(endpoint)).values()) == {why}

    def test_it_never_answers(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            store = self.at(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s="0.1")
            started = time.monotonic()
            assert set(self.why(store).values()) == {"timeout"}
            assert time.monotonic() - started < 30

    def test_the_bucket_is_missing(self, object_server: ObjectServer) -> None:
        store = made(storages.objects(object_server.url("p", bucket="no-such-bucket"), **ACCESS))
        assert set(self.why(store).values()) == {"bucket_missing"}


def test_an_answer_that_breaks_off_is_asked_for_again(bucket: ObjectStore) -> None:
    put(bucket, "k", BIG)
    real, broken = bucket.endpoint_url, []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        import urllib.request

        headers = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
        asked = urllib.request.Request(real + handler.path, headers=headers, method=handler.command)
        with urllib.request.urlopen(asked) as upstream:
            handler.send_response(upstream.status)
            for name, value in upstream.headers.items():
                handler.send_header(name, value)
            handler.end_headers()
            body = upstream.read()
        if handler.command == "GET" and len(broken) < 2:
            broken.append(len(body))
            handler.wfile.write(body[: len(body) // 2])
            handler.close_connection = True
            return
        handler.wfile.write(body)

    with answering(answer) as endpoint:
        flaky = made(storages.objects(ObjectServer(endpoint).url(bucket.location), **ACCESS))
        assert get(flaky, "k") == BIG
    assert len(broken) == 2


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://bucket/p", "must start with s3://"),
        ("s3:///p", "must name a bucket"),
        ("s3://key:secret@bucket/p", "do not belong in the URL"),
        ("s3://bucket/../p", "the prefix may hold"),
        ("s3://bucket/p?endpoint=http://x", "endpoint is no option"),
        ("s3://bucket/p?endpoint_url=minio:9000", "must start with http"),
        ("s3://bucket/p?addressing_style=dns", "addressing_style is one of"),
        ("s3://bucket/p?timeout_s=soon", "timeout_s is a number"),
    ],
)
def test_urls_that_cannot_be_used_are_explained(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        storages.objects(url)


def test_half_a_key_is_refused_and_a_whole_url_is_understood() -> None:
    with pytest.raises(ValueError, match="belong together"):
        storages.objects("s3://bucket/p", access_key="only this")
    options = storages.objects("s3://my-bucket/a/b/?endpoint_url=https://s3.example:9000&region=eu-1&addressing_style=path")["OPTIONS"]
    assert (options["bucket_name"], options["location"], options["region_name"]) == ("my-bucket", "a/b", "eu-1")
    assert (options["endpoint_url"], options["addressing_style"]) == ("https://s3.example:9000", "path")
    assert "access_key" not in options


def test_disk_space_is_that_of_the_data_folder(settings: Any, tmp_path: Path) -> None:
    from apps.common import storage

    settings.DATA_DIR = tmp_path
    assert abs(storage.free_bytes() - shutil.disk_usage(tmp_path).free) < 1 << 30
