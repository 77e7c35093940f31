"""`manage.py serve` as people run it: real processes on a data folder and a port of their own."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.stack import ROOT, LiveStack
from tests.support.waiting import pid_alive, until

pytestmark = pytest.mark.process

Start = Callable[..., LiveStack]


def status(stack: LiveStack) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=10)
    try:
        connection.request("GET", "/healthz/live", headers={"Connection": "close"})
        return connection.getresponse().status
    finally:
        connection.close()


def serve(stack: LiveStack, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A `serve` that is expected to refuse; run beside `stack` with its environment changed by `env`."""
    command = [sys.executable, "manage.py", "serve", *argv]
    return subprocess.run(command, cwd=ROOT, env=stack.environ | env, capture_output=True, text=True, timeout=60, check=False)


def test_killed_processes_come_back_and_a_stop_leaves_nothing(live_stack: Start) -> None:
    stack = live_stack()
    first = until(lambda: stack.pids if len(stack.pids) == 4 else None, "all processes")
    assert sorted(first) == ["schedule", "supervisor", "web", "worker"]

    for name in ("worker", "web", "schedule"):
        stack.wait_replaced(name, stack.kill(name))
        assert stack.pids["supervisor"] == first["supervisor"]
    stack.wait_ready()
    now = stack.pids

    stack.stop()
    assert [name for name, pid in {**first, **now}.items() if pid_alive(pid)] == []
    lines = [json.loads(line) for line in stack.log_path.read_text().splitlines() if line.startswith("{")]
    ended = [line["message"] for line in lines if "ended unexpectedly" in line["message"]]
    assert [message.split(" ended")[0] for message in ended] == ["worker", "web", "schedule"]
    assert all("signal SIGKILL" in message for message in ended)
    assert lines[-1]["message"] == "stopped"
    assert "http://127.0.0.1:" in stack.log_path.read_text()


def test_a_killed_supervisor_leaves_no_process_and_the_next_start_takes_over(live_stack: Start) -> None:
    stack = live_stack()
    pids = until(lambda: stack.pids if len(stack.pids) == 4 else None, "all processes")
    stack.kill("supervisor")
    until(lambda: not any(pid_alive(pid) for pid in pids.values()), "every process to end with its supervisor")
    stack.restart()
    assert status(stack) == 200
    assert "did not stop cleanly; taking over" in stack.log_path.read_text()


def test_what_cannot_start_says_why_and_touches_nothing(live_stack: Start, tmp_path: Path) -> None:
    # With a database server several portals may share a data folder, so this is about the embedded shape.
    stack = live_stack(only="web", env={"KB_DATABASE_URL": "", "KB_BROKER_URL": ""})
    assert sorted(stack.pids) == ["supervisor", "web"]

    same_folder = serve(stack, KB_PORT="0")
    assert same_folder.returncode == 1
    assert f"pid {stack.pids['supervisor']}, {stack.base_url}/" in same_folder.stderr
    assert "KB_DATA_DIR=... KB_PORT=..." in same_folder.stderr

    same_port = serve(stack, KB_DATA_DIR=str(tmp_path / "other"))
    assert same_port.returncode == 1
    assert f"port {stack.port} on 127.0.0.1 is taken by another program" in same_port.stderr

    unknown = serve(stack, "--only", "web,wroker")
    assert (unknown.returncode, "--only takes web, worker, schedule; got wroker" in unknown.stderr) == (1, True)

    unmigrated = serve(stack, "--only", "worker", KB_DATA_DIR=str(tmp_path / "empty"))
    assert unmigrated.returncode == 1
    assert "migrations are pending; run: python manage.py migrate" in unmigrated.stderr

    assert status(stack) == 200
    assert "Traceback" not in same_folder.stderr + same_port.stderr + unknown.stderr + unmigrated.stderr


def test_two_portals_run_beside_each_other(live_stack: Start) -> None:
    one, two = live_stack(only="web"), live_stack(only="web")
    assert (status(one), status(two)) == (200, 200)
    one.stop()
    assert status(two) == 200


def test_interrupt_stops_within_ten_seconds_with_an_open_connection(live_stack: Start) -> None:
    stack = live_stack(only="web")
    pids = stack.pids
    with socket.create_connection(("127.0.0.1", stack.port)) as idle:
        idle.sendall(b"GET /healthz/live HTTP/1.1\r\n")  # a request that never ends
        stack.kill("web", signal.SIGTERM)  # the part itself ends on a plain stop signal too
        stack.wait_replaced("web", pids["web"])
        stack.kill("supervisor", signal.SIGINT)
    until(lambda: not any(pid_alive(pid) for pid in pids.values()), "everything to end", timeout_s=10)


def test_the_worker_runs_on_redis(live_stack: Start, redis_server: str) -> None:
    stack = live_stack(broker_url=redis_server)
    until(lambda: "worker" in stack.pids and "celery@" not in stack.log_tail() and "ready" in stack.log_path.read_text(), "the worker")
    assert status(stack) == 200
