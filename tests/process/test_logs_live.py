"""What the processes of a running portal log: JSON lines that can be followed from a request to its work, without anybody's secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.rest import PASSWORD, Rest
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


def lines(stack: LiveStack) -> list[dict[str, Any]]:
    text = stack.log_path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_a_request_and_its_work_can_be_followed_and_no_secret_stands_there(shared_stack: LiveStack) -> None:
    rest = Rest(shared_stack.base_url).sign_up()
    me = rest.data("GET", "/auth/me")
    space = str(me["tenant"]["id"])
    asking = Rest(rest.base_url, token=rest.token, headers={"X-Request-ID": "follow-me-4711"})
    assert asking.call("GET", "/knowledge/00000000-0000-0000-0000-000000000001").headers["X-Request-ID"] == "follow-me-4711"
    document = rest.upload(rest.make_base(), "note.md", "# Note\n\nSomething to read.\n").body["data"]["id"]
    rest.wait(document)
    wrong = Rest(rest.base_url, headers={"Authorization": "Bearer not-a-real-token-1", "X-API-Key": "kb-not-a-real-key-1"})
    assert wrong.call("GET", "/knowledge-bases?token=not-in-the-log-1&password=nor-this-1").status == 401

    (refused,) = [line for line in lines(shared_stack) if line.get("request_id") == "follow-me-4711"]
    assert (refused["process"], refused["level"], refused["space"]) == ("web", "WARNING", space)
    assert refused["user"].startswith("user:")
    worked = until(
        lambda: [line for line in lines(shared_stack) if line.get("run", "").startswith("parse:") and "worked for" in line["message"]],
        "the worker to say what it worked",
    )
    assert {(line["process"], line["space"]) for line in worked} >= {("worker", space)}
    until(lambda: any(line["process"] == "schedule" for line in lines(shared_stack)), "the schedule to log", timeout_s=60)
    text = shared_stack.log_path.read_text(encoding="utf-8")
    for secret in (PASSWORD, rest.token, "not-a-real", "not-in-the-log", "nor-this", "Something to read"):
        assert secret not in text
