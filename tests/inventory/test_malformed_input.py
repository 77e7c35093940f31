"""Nonsense sent to every REST route: never a 5xx, always an error shape of the contract, in the caller's language, naming the field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from rest_framework import serializers

from tests.support.route_samples import body_for, values_for
from tests.support.routes import Route, routes
from tests.support.world import World

pytestmark = pytest.mark.django_db

DEEP = "[" * 20_000 + "]" * 20_000
NESTED: Any = "x"
for _level in range(60):
    NESTED = {"a": [NESTED]}
#: (content type, body) that no route can read
UNREADABLE = [
    ("application/json", b'{"name": '),
    ("application/json", b"{'name': 1}"),
    ("application/json", b'{"name": "\xff\xfe\xc3"}'),
    ("application/json", b"\xff\xfe{\x00}\x00"),
    ("application/json", DEEP.encode()),
    ("application/json", b'{"name": ' + b"9" * 5000 + b"}"),
    ("application/json; charset=klingon", b"{}"),
    ("application/json; charset=utf-16", b"{}"),
    ("text/plain", b"hello"),
    ("application/x-www-form-urlencoded", b"name=x"),
    ("application/xml", b"<a/>"),
    ("nonsense", b"{}"),
    ("", b"{}"),
    ("multipart/form-data", b"--x--"),
    ("multipart/form-data; boundary=x", b"no boundary in here"),
    ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="file"; filename="\xff\xfe.txt"\r\n\r\n\xff'),
    ("multipart/form-data; boundary=" + "x" * 500, b"--x--"),
]
THOROUGH = ("auth-login", "document-upload", "document-manual", "tag")
#: JSON of another form than the object that is asked for
OTHER_FORMS = ["null", "true", "3", '"text"', "[]", '["a", {}]', '{"": null}', "[[[[]]]]", json.dumps(NESTED)]
#: what is put into each field of a body in turn
WRONG: list[Any] = [
    None, True, -1, 1.5, 10**30, "", " ", "x" * 30_000, "\ud800", "\u202e\u0007", "-1", [], [None, [], {}], ["x" * 5000], [1] * 2000,
    {}, {"": None}, {"x" * 3000: [NESTED]}, NESTED, float("nan"),
]  # fmt: skip
#: values of an address's query
QUERIES = [
    "page=-1", "page=0", "page=1000000000", "page=99999999999999999999999999", "page=1e9", "page=x", "page=", "page=1&page=2&page=zzz",
    "page_size=-1", "page_size=1000000", "page_size=0", "page_size=%FF", "page=%E4%BD", "page[]=1", "page=%D9%A1", "%FF=1", "=", "&&&", "page=" + "9" * 5000,
]  # fmt: skip
QUERY_VALUES = [
    "",
    "-1",
    "0",
    "1e9",
    "99999999999999999999",
    "zzz",
    "%FF%FE",
    "%F0%9F%92%A9",
    "x" * 5000,
    "null",
    "a,,b",
    "'\"--",
    "%25%5F",
    "%ED%A0%80",
]
#: what is put into each field of a page's form in turn
FORM_VALUES = ("", "x" * 30_000, "-1", "9" * 5000, "\u202e\u0007", "[[", "%FF")
#: fields of the forms that need none of them filled in, so that the permission matrix sends them empty
FORMS: dict[str, tuple[str, ...]] = {
    "base-chunk-preview": ("strategy", "chunk_size", "chunk_overlap", "separators", "token_limit", "sample"),
    "base-reindex": ("model",),
    "base-settings": ("name", "description", "strategy", "chunk_size", "separators", "token_limit", "parent_chunk_size", "question_count"),
    "base-tags": ("tag", "do", "name", "color"),
    "document-edit": ("title", "folder", "content", "version"),
    "document-import": ("url", "title", "folder"),
    "document-password": ("password",),
    "document-reparse": ("encoding",),
    "folder-rename": ("source", "target", "merge"),
    "model-edit": ("name", "base_url", "api_key", "batch_size", "read_timeout_s"),
    "model-new": ("type", "name", "base_url", "api_key", "batch_size", "read_timeout_s"),
}
#: sentences the contract gives word for word, in English for everybody
FIXED = (
    "Auto setup is not available in this edition",
    "Token refresh failed",
    "At least one knowledge_base_id, knowledge_base_ids, knowledge_ids, or scoped tag must be provided",
)
CJK = re.compile(r"[\u4e00-\u9fff]")
LANGUAGES = ("zh-CN", "en")


def rest_routes() -> dict[str, Route]:
    return {name: route for name, route in routes().items() if not route.is_page}


def client_for(world: World, language: str) -> Client:
    client = world.client("admin")
    client.raise_request_exception = False
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    return client


def ask(client: Client, method: str, url: str, body: bytes | str, content_type: str = "application/json") -> Any:
    """The answer; what it changed is undone, whatever it was."""
    cache.clear()
    with transaction.atomic():
        try:
            return client.generic(method, url, body, content_type)
        finally:
            transaction.set_rollback(True)


def fault_of(answer: Any, language: str, *, fields: set[str] | None = None) -> str:
    """What is wrong with an answer, empty when nothing is; `fields`: those of which a 400 must name one."""
    if answer.status_code < 400:
        return ""
    if answer.status_code >= 500:
        return f"{answer.status_code}"
    if not answer.headers.get("Content-Type", "").startswith("application/json"):
        return f"{answer.status_code} without JSON"
    body = json.loads(answer.content)
    error = body.get("error", body.get("message"))
    if isinstance(error, str):
        return "" if error else "no words"  # the door's bare refusals (contract platform 1.3)
    if body.get("success") is not False or not isinstance(error.get("code"), int) or not error.get("message"):
        return f"{answer.status_code} in a shape of its own: {answer.content[:200]!r}"
    message = error["message"]
    words = re.sub(r"[\"'“”「《].*?[\"'“”」》]", "", message)
    if language == "en" and CJK.search(words):
        return f"Chinese for an English caller: {message[:120]}"
    if language != "en" and message not in FIXED and not CJK.search(words):
        return f"no Chinese: {message[:120]}"
    if len(answer.content) > 20_000:
        return f"an answer of {len(answer.content)} bytes gives back what was sent"
    if fields is not None and answer.status_code == 400:
        named = (error.get("details") or {}).get("field")
        if named is None or named.split(".")[0].split("[")[0] not in fields:
            return f"names {named!r} instead of one of {sorted(fields)}: {message[:120]}"
    return ""


def collected(world: World, cases: Iterator[tuple[str, str, str, Any, str, set[str] | None]]) -> dict[str, str]:
    """{what was sent: what is wrong}; languages take turns, so that each case is asked once."""
    clients = {language: client_for(world, language) for language in LANGUAGES}
    faults = {}
    for number, (label, method, url, body, content_type, fields) in enumerate(cases):
        language = LANGUAGES[number % 2]
        answer = ask(clients[language], method, url, body, content_type)
        if fault := fault_of(answer, language, fields=fields):
            faults[label[:200]] = fault
    return faults


def complain(faults: dict[str, str]) -> None:
    assert not faults, f"{len(faults)} answers\n" + "\n".join(f"{sent!r}: {fault}" for sent, fault in faults.items())


def written(value: Any) -> str:
    """JSON, with what Python alone would write for NaN: clients in Python send that."""
    return json.dumps(value)


def operations(*methods: str) -> Iterator[tuple[str, Route, str, Any]]:
    for name, route in sorted(rest_routes().items()):
        for method in route.methods:
            if method in methods:
                yield name, route, method, route.view.operations[method]


FAMILIES = ["api", "personal", "organization"]


def of_family(name: str, family: str) -> bool:
    return name.partition(":")[0] == family


def bodies_for(name: str, op: Any, family: str, turn: int) -> tuple[list[tuple[str, bytes]], list[str]]:
    """What is sent to one operation: one parser reads every body, so that most get a sample, and those that read none take turns."""
    if op.body is None and not op.multipart:
        return [UNREADABLE[turn % len(UNREADABLE)]], [OTHER_FORMS[turn % len(OTHER_FORMS)]]
    every = name.rpartition(":")[2] in THOROUGH
    return UNREADABLE if every else UNREADABLE[::4], OTHER_FORMS if family == "api" else OTHER_FORMS[:1]


@pytest.mark.parametrize("family", FAMILIES)
def test_bodies_that_cannot_be_read(world: World, family: str) -> None:
    turns = count()

    def cases() -> Iterator[Any]:
        for name, route, method, op in operations("POST", "PUT", "PATCH", "DELETE"):
            if not of_family(name, family):
                continue
            url = route.url(values_for(world, name))
            unreadable, forms = bodies_for(name, op, family, next(turns))
            for kind, body in unreadable:
                yield f"{method} {name} {kind} {body[:40]!r}", method, url, body, kind, None
            for text in forms:
                yield f"{method} {name} {text[:40]}", method, url, text, "application/json", None

    complain(collected(world, cases()))


def json_fields(op: Any) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
    return {} if op.body is None or op.multipart else {key: field for key, field in op.body().fields.items() if not field.read_only}


def test_each_field_of_each_body(world: World) -> None:
    turns = count()

    def cases() -> Iterator[Any]:
        for name, route, method, op in operations("POST", "PUT", "PATCH"):
            if not of_family(name, "api"):
                continue
            url, sample = route.url(values_for(world, name)), body_for(world, method, name)
            fields = json_fields(op)
            for key in fields:
                turn = next(turns)
                for value in WRONG[turn % 3 :: 3]:  # fields take turns, so that together they get every value many times over
                    sent = written({**sample, key: value})
                    yield (
                        f"{method} {name} {key}={sent[-60:] if len(sent) > 400 else written(value)[:60]}",
                        method,
                        url,
                        sent,
                        "application/json",
                        None,
                    )

    complain(collected(world, cases()))


def test_a_wrong_type_names_its_field(world: World) -> None:
    def cases() -> Iterator[Any]:
        for name, route, method, op in operations("POST", "PUT", "PATCH"):
            if not of_family(name, "api"):
                continue
            url, sample = route.url(values_for(world, name)), body_for(world, method, name)
            for key, field in json_fields(op).items():
                if isinstance(field, serializers.JSONField):
                    continue
                value: Any = (
                    "x" if isinstance(field, (serializers.ListField, serializers.DictField, serializers.BaseSerializer)) else {"a": [1]}
                )
                yield f"{method} {name} {key}={value}", method, url, written({**sample, key: value}), "application/json", {key}

    complain(collected(world, cases()))


def test_addresses(world: World) -> None:
    turns = count()

    def cases() -> Iterator[Any]:
        for name, route, method, op in operations("GET"):
            if not of_family(name, "api"):
                continue
            url = route.url(values_for(world, name))
            queries = QUERIES[next(turns) % 3 :: 3]
            for key in op.query().fields if op.query else ():
                queries += [f"{key}={value}" for value in QUERY_VALUES[next(turns) % 2 :: 2]] + [f"{key}=a&{key}=b"]
            for query in queries:
                yield f"{method} {name}?{query[:60]}", method, f"{url}?{query}", b"", "application/octet-stream", None

    complain(collected(world, cases()))


def test_pages(world: World) -> None:
    """Forms and addresses of the portal: a person gets a form with its errors or a page that says so, never a 500."""
    client = world.client("admin", by="session")
    client.raise_request_exception = False
    turns = count()
    faults = {}
    for name, route in sorted(routes().items()):
        if not route.is_page:
            continue
        url = route.url(values_for(world, name))
        asked: list[tuple[str, str, Any]] = (
            [("GET", f"{url}?{query}", None) for query in QUERIES[next(turns) % 5 :: 5]] if "GET" in route.methods else []
        )
        if "POST" in route.methods:
            sample, turn = body_for(world, "POST", name), next(turns)
            for value in FORM_VALUES[turn % 2 :: 2]:
                asked += [("POST", url, {**sample, key: value}) for key in sample]
            for place, key in enumerate(FORMS.get(name, ())):
                asked += [("POST", url, {key: value}) for value in FORM_VALUES[(turn + place) % 3 :: 3]]
            # A button without a form reads nothing of this: one field it does not know is enough.
            fields = sample or dict.fromkeys(FORMS.get(name, ("name",)), FORM_VALUES[turn % len(FORM_VALUES)])
            asked.append(("POST", url, {key: [value, value] for key, value in fields.items()}))
        for method, address, body in asked:
            cache.clear()
            with transaction.atomic():
                answer = client.get(address) if method == "GET" else client.post(address, body)
                transaction.set_rollback(True)
            if answer.status_code >= 500:
                faults[f"{method} {address} {str(body)[:80]}"] = str(answer.status_code)
    complain(faults)
