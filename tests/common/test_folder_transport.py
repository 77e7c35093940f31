"""The embedded broker under readers that look at every moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import Connection, Queue

import kbportal.celery  # noqa: F401 - registers the transport

QUEUE = Queue("bells", routing_key="bells")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for name in ("queue", "control"):
        (tmp_path / name).mkdir()
    yield tmp_path


def connect(folder: Path) -> Connection:
    options = {"data_folder_in": str(folder / "queue"), "data_folder_out": str(folder / "queue"), "control_folder": str(folder / "control")}
    return Connection("folder://localhost", transport_options={**options, "polling_interval": 0.01})


def take(folder: Path, count: int, got: list[int], lock: threading.Lock) -> None:
    with connect(folder) as connection, connection.SimpleQueue(QUEUE) as queue:
        while True:
            try:
                message = queue.get(timeout=2)
            except queue.Empty:
                return
            message.ack()
            with lock:
                got.append(message.payload["n"])


def test_every_message_reaches_exactly_one_reader_whole(folder: Path) -> None:
    with connect(folder) as connection, connection.SimpleQueue(QUEUE):
        pass  # the queue is bound before anybody sends
    got: list[int] = []
    lock = threading.Lock()
    readers = [threading.Thread(target=take, args=(folder, 300, got, lock)) for _ in range(3)]
    [reader.start() for reader in readers]
    with connect(folder) as connection, connection.SimpleQueue(QUEUE) as queue:
        for n in range(300):
            queue.put({"n": n, "padding": "x" * 20_000})
    [reader.join() for reader in readers]
    assert sorted(got) == list(range(300))
    assert [path.name for path in (folder / "queue").iterdir()] == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00"], ids=["empty", "cut off", "no text"])
def test_a_broken_message_is_dropped_and_the_next_one_arrives(folder: Path, content: bytes) -> None:
    with connect(folder) as connection, connection.SimpleQueue(QUEUE) as queue:
        (folder / "queue" / "000000000000001_x.bells.msg").write_bytes(content)
        queue.put({"n": 1})
        assert queue.get(timeout=5).payload == {"n": 1}
