"""Faults that only a running portal can have: racing requests, clients that vanish, a locked database, nobody to work, parents that die."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.racing import run_together
from tests.support.redis import free_port
from tests.support.rest import Rest
from tests.support.stack import ROOT, LiveStack
from tests.support.waiting import pid_alive, until

pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

Start = Callable[..., LiveStack]


@pytest.fixture(scope="module")
def person(shared_stack: LiveStack) -> Rest:
    return Rest(shared_stack.base_url).sign_up()


def files_of(stack: LiveStack, folder: str) -> list[Path]:
    """Every file below a folder of the data folder."""
    return sorted(path for path in (stack.data_dir / folder).rglob("*") if path.is_file())


def test_ten_racing_uploads_of_the_same_bytes_make_one_document(shared_stack: LiveStack, person: Rest) -> None:
    base = person.make_base()
    data = f"# Race\n\nOnly once: {secrets.token_hex(8)}.\n".encode()
    before = len(files_of(shared_stack, "files"))
    answers = run_together([lambda n=n: person.upload(base, f"{n}.md", data) for n in range(10)])
    assert sorted(answer.status for answer in answers) == [200] + [409] * 9
    assert {answer.body.get("code") for answer in answers if answer.status == 409} == {"duplicate_file"}
    (uid,) = {answer.body["data"]["id"] for answer in answers}
    person.wait(uid)
    assert person.call("GET", f"/knowledge-bases/{base}/knowledge").body["total"] == 1
    originals = [path for path in files_of(shared_stack, "files") if uid in path.parts and path.name == "original"]
    assert len(originals) == 1 and originals[0].read_bytes() == data
    assert len(files_of(shared_stack, "files")) == before + len([p for p in files_of(shared_stack, "files") if uid in p.parts])
    assert "agree" in shared_stack.manage("reconcile", "--check", "--young", "0").stdout


def test_a_client_that_vanishes_in_the_middle_of_an_upload_leaves_nothing(shared_stack: LiveStack, person: Rest) -> None:
    base = person.make_base()
    before = files_of(shared_stack, "files"), files_of(shared_stack, "tmp")
    head = (
        f"POST /api/v1/knowledge-bases/{base}/knowledge/file HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {person.token}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 8000000\r\n\r\n"
        '--x\r\nContent-Disposition: form-data; name="file"; filename="half.md"\r\n\r\n'
    )
    connection = socket.create_connection(("127.0.0.1", shared_stack.port), timeout=10)
    connection.sendall(head.encode() + b"half of it " * 300_000)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, as a cable that is pulled
    connection.close()
    whole = person.upload(base, "whole.md", "# Whole\n\nThis one arrives.\n")
    assert whole.status == 200
    person.wait(whole.body["data"]["id"])
    listed = person.call("GET", f"/knowledge-bases/{base}/knowledge").body
    assert [row["file_name"] for row in listed["data"]] == ["whole.md"]
    until(lambda: files_of(shared_stack, "tmp") == before[1], "the temporary files to be gone")
    assert [p.name for p in files_of(shared_stack, "files") if p not in before[0]].count("original") == 1


def test_a_body_beyond_the_limit_is_refused_whatever_it_claims(shared_stack: LiveStack, person: Rest) -> None:
    def chunked() -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", shared_stack.port, timeout=60)
        parts = (b"x" * 1_000_000 for _n in range(60))
        connection.request("POST", "/api/v1/auth/login", body=parts, encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        return connection.getresponse()

    try:
        answer = chunked()
        said = json.loads(answer.read())
        assert (answer.status, said["error"]["details"]["reason"]) == (400, "too_large")
    except (BrokenPipeError, ConnectionResetError):
        pass  # it was cut off while still sending: as good as refused
    assert Rest(shared_stack.base_url).call("GET", "/auth/config").status == 200


def test_a_write_waits_for_the_lock_of_another_process(shared_stack: LiveStack, person: Rest) -> None:
    database = shared_stack.data_dir / "kbportal.sqlite3"
    if not database.exists():
        pytest.skip("SQLite's one write lock")
    base = person.make_base()
    other = sqlite3.connect(database, isolation_level=None, timeout=30)
    other.execute("BEGIN IMMEDIATE")
    answers: list[Any] = []
    started = time.monotonic()
    sending = threading.Thread(target=lambda: answers.append(person.upload(base, "note.md", "# Note\n\nWaited for: LOCK-2718.\n")))
    sending.start()
    read = person.call("GET", f"/knowledge-bases/{base}/knowledge")
    assert (read.status, read.body["total"]) == (200, 0), "reading goes on"
    sending.join(2.0)
    assert answers == [], "the request waits"
    other.execute("ROLLBACK")
    other.close()
    sending.join(40)
    assert answers[0].status == 200 and time.monotonic() - started > 2.0
    assert person.wait(answers[0].body["data"]["id"])["parse_status"] == "completed", "and the worker went on as well"
    assert [hit["knowledge_id"] for hit in person.search(base, "LOCK-2718")] == [answers[0].body["data"]["id"]]


def test_a_killed_worker_leaves_no_temporary_files(shared_stack: LiveStack, person: Rest) -> None:
    base = person.make_base()
    text = "\n\n".join(f"# 第{n}节\n\n第{n}节说明（{secrets.token_hex(4)}）。" * 3 for n in range(3000))
    document = person.upload(base, "long.md", text).body["data"]["id"]
    left = until(lambda: list((shared_stack.data_dir / "tmp").glob("*/kb-parse-*")), "a parse to begin", timeout_s=60, every_s=0.005)
    children = [int(line) for line in _children_of(shared_stack.pids["worker"])]
    old = shared_stack.kill("worker")
    until(lambda: not any(pid_alive(pid) for pid in children), "the parser to die with its worker")
    shared_stack.wait_replaced("worker", old)
    until(lambda: not any(path.exists() for path in left), "the next worker to tidy up", timeout_s=60)
    assert person.wait(document, "finalizing", "completed", "failed", timeout_s=120)["parse_status"] != "failed"
    until(lambda: files_of(shared_stack, "tmp") == [], "nothing temporary to be left", timeout_s=60)


def _children_of(pid: int) -> list[str]:
    listed = [Path(f"/proc/{pid}/task/{task}/children") for task in os.listdir(f"/proc/{pid}/task")]
    return [child for path in listed if path.exists() for child in path.read_text().split()]


PARENT = """
import sys
from pathlib import Path
from tests.support.stack import LiveStack
stack = LiveStack(Path(sys.argv[1])).start()
from tests.support.waiting import until
print(*until(lambda: len(stack.pids) == 4 and stack.pids.values(), "all parts"), flush=True)
input()
"""


def test_a_portal_started_by_a_test_run_ends_with_it(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", PARENT, str(tmp_path / "data")]
    run = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    pids = [int(word) for word in run.stdout.readline().split()]
    assert len(pids) == 4 and all(pid_alive(pid) for pid in pids)
    run.send_signal(signal.SIGKILL)
    run.wait()
    until(lambda: not any(pid_alive(pid) for pid in pids), "web, worker, schedule and supervisor to end", timeout_s=30)


FILES_OF_A = 500
CANCELLED = 100


def test_one_space_with_500_files_delays_no_other_and_its_cancels_add_up(live_stack: Start) -> None:
    stack = live_stack(only="web", env={"KB_EMBEDDER": "none"})
    ann, bob = Rest(stack.base_url).sign_up(), Rest(stack.base_url).sign_up()
    base_a, base_b = ann.make_base(), bob.make_base()

    def fill(first: int) -> list[str]:
        return [ann.upload(base_a, f"{n}.txt", f"File {n}").body["data"]["id"] for n in range(first, FILES_OF_A, 4)]

    files = [uid for part in run_together_long([lambda k=k: fill(k) for k in range(4)]) for uid in part]
    assert len(set(files)) == FILES_OF_A
    theirs = bob.upload(base_b, "note.md", "# Note\n\nFAIR-0815\n").body["data"]["id"]
    assert said_by_the_list(stack, bob, base_b) == "No worker is running"

    stack.stop()
    stack.only = ""
    stack.start()
    begun = time.monotonic()
    assert bob.wait(theirs, timeout_s=60)["parse_status"] == "completed"
    assert time.monotonic() - begun < 30

    slowest = 0.0
    states = []
    for uid in reversed(files[-CANCELLED:]):
        asked = time.monotonic()
        answer = ann.call("POST", f"/knowledge/{uid}/cancel-parse")
        slowest = max(slowest, time.monotonic() - asked)
        states.append((answer.status, ann.document(uid)["parse_status"]))
    assert states == [(200, "cancelled")] * CANCELLED and slowest < 5
    for uid in files[:-CANCELLED]:
        ann.call("POST", f"/knowledge/{uid}/cancel-parse")  # those that are done answer that there is nothing to stop

    def counts() -> dict[str, int]:
        listed = [ann.call("GET", f"/knowledge-bases/{base_a}/knowledge?page_size=1&parse_status={name}").body for name in ENDED]
        return {name: body["total"] for name, body in zip(ENDED, listed, strict=True)}

    ended = until(lambda: counts() if sum(counts().values()) == FILES_OF_A else None, "all of them to end", timeout_s=60)
    assert ended["failed"] == 0 and ended["cancelled"] >= CANCELLED and ended["completed"] >= 1


ENDED = ("completed", "failed", "cancelled")


def run_together_long(jobs: list[Callable[[], Any]]) -> list[Any]:
    """As `run_together`, for work that takes longer than its patience."""
    results: list[Any] = [None] * len(jobs)

    def work(number: int) -> None:
        results[number] = jobs[number]()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    return results


def said_by_the_list(stack: LiveStack, rest: Rest, base: str) -> str:
    """What `/healthz/ready` says of the worker, in the words of the list."""
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=10)
    connection.request("GET", "/healthz/ready")
    parts = json.loads(connection.getresponse().read())["parts"]
    return "No worker is running" if parts["worker"].startswith("no worker serves") else parts["worker"]


def test_what_is_deleted_while_its_work_fails_stays_deleted(live_stack: Start) -> None:
    endpoint = {"KB_EMBEDDING_BASE_URL": f"http://127.0.0.1:{free_port()}/v1", "KB_EMBEDDING_MODEL": "m", "KB_EMBEDDING_DIMENSION": "8"}
    stack = live_stack(env={"KB_EMBEDDER": "openai", **endpoint})
    rest = Rest(stack.base_url).sign_up()
    base = rest.make_base()
    text = "# 说明\n\n词语 ZQX-删除-42 只在这里。\n"
    document = rest.upload(base, "a.md", text).body["data"]["id"]
    found = lambda: [hit["knowledge_id"] for hit in rest.search(base, "ZQX-删除-42")]  # noqa: E731
    until(lambda: found() == [document], "it to be found by its words while the vector step fails", timeout_s=60)
    assert rest.document(document)["parse_status"] in ("finalizing", "failed", "completed")

    old = stack.kill("worker")
    assert rest.call("POST", f"/knowledge/{document}/reparse", {}).status == 200
    assert rest.call("DELETE", f"/knowledge/{document}").status == 200
    assert found() == [], "gone at once"
    assert rest.call("GET", f"/knowledge/{document}").status == 404
    stack.wait_replaced("worker", old)
    until(lambda: "agree" in stack.manage("reconcile", "--check", "--young", "0", check=False).stdout, "the clean-up to end", timeout_s=60)
    again = rest.upload(base, "a.md", text)
    assert again.status == 200 and again.body["data"]["id"] != document
    until(lambda: found() == [again.body["data"]["id"]], "the same bytes to be accepted and found again", timeout_s=60)
    stack.restart()
    assert found() == [again.body["data"]["id"]]
    assert rest.call("GET", f"/knowledge/{document}").status == 404
