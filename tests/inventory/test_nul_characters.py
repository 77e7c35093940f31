"""A NUL character is wrong input like any other: PostgreSQL cannot store it, so no route may let it get that far."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction

from tests.support.route_samples import body_for, values_for
from tests.support.routes import Route, routes
from tests.support.world import World

pytestmark = pytest.mark.django_db
#: what lists, searches and pages take from an address
NAMES = (
    "keyword", "q", "query", "search", "tag_id", "tag", "file_type", "type", "page", "page_size", "sort", "order", "folder_path", "folder",
    "parse_status", "status", "agent_id", "kind", "next", "recursive", "ids", "kb_id", "token",
)  # fmt: skip
SPOILED = urlencode(dict.fromkeys(NAMES, "a\0b"))


def spoiled(value: Any) -> Any:
    """The same with a NUL in every text."""
    if isinstance(value, str):
        return value + "\0"
    if isinstance(value, list):
        return [spoiled(item) for item in value]
    return {key: spoiled(item) for key, item in value.items()} if isinstance(value, dict) else value


def answer(world: World, route: Route, method: str) -> int:
    """The status of the route when everything it is sent holds a NUL; what it changed is undone."""
    client = world.client("admin", by="session" if route.is_page else "bearer")
    client.raise_request_exception = False
    url = route.url(values_for(world, route.name))
    with transaction.atomic():
        if method == "GET":
            found = client.get(f"{url}?{SPOILED}")
        else:
            found = getattr(client, method.lower())(url, spoiled(body_for(world, method, route.name)))
        transaction.set_rollback(True)
    return int(found.status_code)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_no_route_fails_on_one(world: World, method: str) -> None:
    asked = {name: answer(world, route, method) for name, route in routes().items() if method in route.methods}
    assert len(asked) > 10
    assert {name: status for name, status in asked.items() if status >= 500} == {}


@pytest.mark.parametrize("url", ["/?q=a%00b", "/api/v1/knowledge-bases/%00", "/api/v1/knowledge/a%00b", "/api/v1/chunks/%00", "/%00"])
def test_in_a_path(world: World, url: str) -> None:
    for who in ("member", "anonymous"):
        assert world.client(who).get(url).status_code in (200, 302, 400, 401, 404)
