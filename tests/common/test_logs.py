"""What a log line carries, and what it never carries."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from django.test import Client

from apps.common import context
from apps.common.logs import ConsoleFormatter, ContextFilter, JsonFormatter, logging_config, process_name, without_secrets


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.getLogger("kbportal.test").makeRecord("kbportal.test", logging.INFO, "f", 1, message, args, None, extra=extra)
    ContextFilter().filter(made)
    return made


def test_a_json_line_carries_the_context_and_the_extras() -> None:
    tokens = [context.request_id.set("r-1"), context.space_id.set("7"), context.actor_name.set("user:3"), context.run_id.set("parse:9")]
    try:
        made = record("stored %d chunks", 12, seconds=1.5)
    finally:
        for variable, token in zip((context.request_id, context.space_id, context.actor_name, context.run_id), tokens, strict=True):
            variable.reset(token)
    line = json.loads(JsonFormatter("worker").format(made))
    assert line.pop("time").endswith("Z")
    assert line.pop("pid") == made.process
    assert line == {
        "level": "INFO",
        "logger": "kbportal.test",
        "process": "worker",
        "message": "stored 12 chunks",
        "request_id": "r-1",
        "space": "7",
        "user": "user:3",
        "run": "parse:9",
        "seconds": 1.5,
    }


def test_one_event_is_one_json_line_even_with_a_traceback() -> None:
    made = record("line one\nline two 知识")
    try:
        raise ValueError("boom password=hunter2")
    except ValueError:
        made.exc_info = sys.exc_info()
    text = JsonFormatter("web").format(made)
    assert "\n" not in text
    line = json.loads(text)
    assert line["message"] == "line one\nline two 知识"
    assert "ValueError: boom password=[hidden]" in line["traceback"]


def test_what_a_request_added_is_forgotten_after_it() -> None:
    with context.of_request("r-2"):
        context.actor_name.set("user:3")
        context.space_id.set("7")
        inside = json.loads(JsonFormatter("web").format(record("hello")))
    assert (inside["request_id"], inside["user"], inside["space"]) == ("r-2", "user:3", "7")
    assert {"request_id", "user", "space"} & set(json.loads(JsonFormatter("web").format(record("hello")))) == set()


def test_a_refusal_that_django_logs_after_the_request_still_names_it(db: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.handler.addFilter(ContextFilter())
    with caplog.at_level(logging.WARNING, logger="django.request"):
        Client().get("/no/such/page", headers={"X-Request-ID": "r-404"})
    (line,) = [json.loads(JsonFormatter("web").format(made)) for made in caplog.records if made.name == "django.request"]
    assert (line["request_id"], line["status_code"], line["user"]) == ("r-404", 404, "anonymous")


def test_a_console_line_is_readable() -> None:
    text = ConsoleFormatter("web").format(record("hello", request_id="abc", status=200))
    assert text[8:] == " web      INFO    kbportal.test: hello  [request_id=abc status=200]"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer [hidden]"),
        ("redis://:s3cret@10.0.0.1:6379/0", "redis://:[hidden]@10.0.0.1:6379/0"),
        ("postgres://kb:pa55@db/kb", "postgres://kb:[hidden]@db/kb"),
        ("GET /x?api_key=abcd1234&q=1", "GET /x?api_key=[hidden]&q=1"),
        ('{"password": "hunter2", "name": "x"}', '{"password": "[hidden]", "name": "x"}'),
        ("key sk-abcdefgh1234 used", "key [hidden] used"),
        ("{'X-API-Key': 'kb-0123456789abcdef'}", "{'X-API-Key': '[hidden]'}"),
        ("sign_in(email='a@b.c', password='hunter2')", "sign_in(email='a@b.c', password='[hidden]')"),
        ("{'Authorization': 'Bearer abcdef.123456'}", "{'Authorization': 'Bearer [hidden]'}"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [hidden]"),
        ("KB_SECRET_KEY=abc123 KB_PORT=8000", "KB_SECRET_KEY=[hidden] KB_PORT=8000"),
        ("aws_secret_access_key: 'abc/123+x'", "aws_secret_access_key: '[hidden]'"),
        ("Cookie: kb_session=abcdef123; kb_language=en", "Cookie: kb_session=[hidden]; kb_language=en"),
        ("access_token=abc refresh_token=def", "access_token=[hidden] refresh_token=[hidden]"),
        ("max_tokens=4000", "max_tokens=4000"),
        ("https://example.org:8443/path?q=token", "https://example.org:8443/path?q=token"),
        ("the tokeniser made 12 tokens", "the tokeniser made 12 tokens"),
    ],
)
def test_secrets_never_reach_a_line(text: str, safe: str) -> None:
    assert without_secrets(text) == safe


def test_an_extra_with_a_secret_name_is_hidden() -> None:
    line = json.loads(JsonFormatter("web").format(record("x", api_key="abc", access_token="def", count=1)))
    assert (line["api_key"], line["access_token"], line["count"]) == ("[hidden]", "[hidden]", 1)


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (["/x/apps/common/webserver.py", "5"], "web"),
        (["/x/celery/__main__.py", "-A", "kbportal", "worker"], "worker"),
        (["/x/bin/celery", "-A", "kbportal", "beat"], "schedule"),
        (["manage.py", "serve", "--only", "worker"], "serve"),
        (["/x/apps/common/supervised.py", '{"parts": {}}'], "serve"),
        (["manage.py", "migrate"], "migrate"),
        (["x.py"], "python"),
    ],
)
def test_process_name(argv: list[str], name: str) -> None:
    assert process_name(argv) == name


@pytest.mark.parametrize(("form", "formatter"), [("json", JsonFormatter), ("console", ConsoleFormatter)])
def test_the_form_chooses_the_formatter(form: str, formatter: type) -> None:
    config = logging_config(form, "INFO")
    assert config["formatters"]["line"]["()"] is formatter
