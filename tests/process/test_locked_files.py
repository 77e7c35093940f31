"""A locked PDF by REST on the whole stack: opened with its password, which is nowhere in what the portal keeps or says."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from tests.support.locked import locked_pdf
from tests.support.rest import Rest
from tests.support.stack import LiveStack

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SECRET = "Zq-Geheim-4711-密码"


def traces_of(stack: LiveStack, secret: str) -> list[str]:
    """Where the secret stands in the clear (or in base64) in files, logs and the rows of the database."""
    signs = [secret.encode(), base64.b64encode(secret.encode()).rstrip(b"="), secret.encode("unicode_escape")]
    places = {str(path): path.read_bytes() for path in stack.data_dir.rglob("*") if path.is_file()}
    places["the log"] = stack.log_path.read_bytes()
    places["the rows"] = stack.manage("dumpdata", "--all").stdout.encode()
    assert b"secret.pdf" in places["the rows"]
    return [name for name, data in places.items() if any(sign in data for sign in signs)]


def test_the_password_of_a_locked_file_is_nowhere(live_stack: Callable[..., LiveStack]) -> None:
    stack = live_stack(env={"KB_LOG_LEVEL": "DEBUG", "KB_EMBEDDER": "none"})
    rest = Rest(stack.base_url).sign_up("alice")
    base = rest.make_base()
    document = rest.upload(base, "secret.pdf", locked_pdf("Internal K-0001", "Page K-0002", password=SECRET)).body["data"]["id"]
    locked = rest.wait(document)
    assert (locked["parse_status"], locked["reason"]) == ("failed", "locked")
    rest.data("POST", f"/knowledge/{document}/reparse", {"password": SECRET + "x"})
    assert rest.wait(document)["reason"] == "wrong_password"
    answer = rest.call("POST", f"/knowledge/{document}/reparse", {"password": SECRET})
    assert answer.status == 200 and SECRET not in str(answer.body)
    done = rest.wait(document)
    assert (done["parse_status"], done["reason"]) == ("completed", "")
    assert [w["code"] for w in done["warnings"]] == ["opened_with_password"]
    assert [place["page"] for place in rest.search(base, "K-0002")[0]["source_locators"]] == [1, 2]
    again = rest.call("POST", f"/knowledge/{document}/reparse", {})
    assert (again.status, again.body["error"]["details"]["field"]) == (400, "password")
    assert traces_of(stack, SECRET) == []
