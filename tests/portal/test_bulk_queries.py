"""What is done to many documents costs the database the same number of statements as for a few."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.shelf import Shelf

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("method", "action", "form"),
    [
        ("GET", "tags", {}),
        ("POST", "tags", {"on": "tag"}),
        ("POST", "reparse", {}),
        ("POST", "delete", {}),
        ("GET", "zip", {}),
        ("GET", "move", {}),
    ],
)
def test_the_number_of_queries_does_not_grow(shelf: Shelf, method: str, action: str, form: dict[str, str]) -> None:
    tag = shelf.tag("kept")
    counts = []
    shelf.admin.get(shelf.url(""))
    for count in (2, 12):
        ids = [str(shelf.document(f"{count}-{number}.txt", tags=(tag,)).uid) for number in range(count)]
        sent: dict[str, Any] = {"ids": ids, **({"on": str(shelf.tag(f"new {count}").uid)} if form else {})}
        with CaptureQueriesContext(connection) as queries:
            answer = _ask(shelf, method, action, sent)
        assert answer.status_code in (200, 302)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def _ask(shelf: Shelf, method: str, action: str, sent: dict[str, Any]) -> Any:
    call = shelf.admin.get if method == "GET" else shelf.admin.post
    return call(shelf.url(f"bulk/{action}"), sent)


@pytest.fixture
def shelf() -> Shelf:
    made = Shelf()
    made.worker()
    return made
