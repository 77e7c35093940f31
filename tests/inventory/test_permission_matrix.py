"""Every route and method against every identity, by a table written by hand: permission_matrix.toml, whose head explains its rows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.support.route_samples import BODIES, KWARGS, body_for, values_for
from tests.support.routes import Route, patterns, routes
from tests.support.world import IDENTITIES, World, unharmed

TABLE = Path(__file__).with_name("permission_matrix.toml")
SHAPE: dict[str, Any] = tomllib.loads(TABLE.read_text("utf-8"))
PROFILES: dict[str, dict[str, Any]] = SHAPE.pop("profiles")
FOREIGN_WORKS = 400  # below it a foreign id was let through

#: name of a pattern, or the first part of it -> why it is in no row
NOT_OURS = {
    "account_": "pages of django-allauth, tested in tests/accounts and tests/portal",
    "admin:": "the moderators' admin site, which asks for is_staff itself",
    "health": "health checks, open to everyone",
    "openapi": "the API document, open to everyone",
    "api-docs": "the page of the API document, open to everyone",
    "styleguide": "components with made-up contents, open to everyone",
}


def row_of(key: str) -> dict[str, Any]:
    """A row with its profile filled in; what the row says itself wins."""
    row = dict(SHAPE[key])
    return {**PROFILES[row.pop("like")], **row} if "like" in row else row


def pairs() -> dict[str, tuple[Route, str]]:
    return {f"{method} {name}": (route, method) for name, route in routes().items() for method in route.methods}


def test_every_pattern_is_a_declared_view_or_listed() -> None:
    strange = [name for name, _view, _kwargs in patterns() if name not in routes() and not name.startswith(tuple(NOT_OURS))]
    assert strange == []
    assert [prefix for prefix in NOT_OURS if not any(name.startswith(prefix) for name, _view, _kwargs in patterns())] == []


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert sorted(set(pairs()) - set(SHAPE)) == [], "routes without a row in permission_matrix.toml"
    assert sorted(set(SHAPE) - set(pairs())) == [], "rows without a route"
    assert sorted(set(BODIES) - set(pairs())) == [], "bodies without a route"
    assert sorted(set(KWARGS) - set(routes())) == [], "parameters without a route"


def test_every_row_names_every_identity() -> None:
    lacking = {key: sorted(set(IDENTITIES) - set(row_of(key))) for key in SHAPE}
    assert {key: names for key, names in lacking.items() if names} == {}


def row_counts() -> dict[str, int]:
    """{table: rows} of the whole database but sessions, by one query."""
    tables = [name for name in connection.introspection.django_table_names(only_existing=False) if name != "django_session"]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(f"SELECT '{name}', COUNT(*) FROM \"{name}\"" for name in tables))
        return dict(cursor.fetchall())


def ask(world: World, client: Any, route: Route, method: str, values: dict[str, Any]) -> Any:
    send = getattr(client, method.lower())
    body = body_for(world, method, route.name)
    return send(route.url(values)) if method == "GET" else send(route.url(values), body)


def said(answer: Any) -> int | str:
    """The status, or "login" for the way to the sign-in page."""
    if answer.status_code == 302 and answer.headers["Location"].startswith("/account/login/"):
        return "login"
    return int(answer.status_code)


def refused(status: int | str) -> bool:
    return status == "login" or (isinstance(status, int) and status >= FOREIGN_WORKS)


@pytest.mark.parametrize("key", sorted(SHAPE))
def test_who_may(world: World, key: str) -> None:
    route, method = pairs()[key]
    expected = {name: row_of(key)[name] for name in IDENTITIES}
    found: dict[str, Any] = {}
    values = values_for(world, route.name)
    for identity in IDENTITIES:
        with unharmed():
            client = world.client(identity, by="session" if route.is_page else "")
            before, waiting = row_counts(), len(connection.run_on_commit)
            found[identity] = said(ask(world, client, route, method, values))
            if refused(found[identity]):
                changed = {name: (before[name], now) for name, now in row_counts().items() if now != before[name]}
                assert changed == {}, f"{identity} was refused, yet rows changed"
                assert len(connection.run_on_commit) == waiting, f"{identity} was refused, yet work was enqueued"
    assert found == expected, f"[{key!r}] answers:\n" + "\n".join(f"{name} = {status!r}" for name, status in found.items())


def bare(content: bytes) -> bytes:
    """A body without what differs between any two requests: request id, CSRF token, and the address that was asked for."""
    content = re.sub(rb'(name="next" value=")[^"]*', rb"\1", content)
    content = re.sub(rb'(csrf-token" content="|csrfmiddlewaretoken" value=")[^"]*', rb"\1", content)
    return re.sub(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", b"", content)


@pytest.mark.parametrize("key", sorted(key for key in SHAPE if pairs().get(key) and pairs()[key][0].kwargs))
def test_a_foreign_id_answers_like_one_that_does_not_exist(world: World, key: str) -> None:
    """By every identity that may use the route, for every id in its path, one at a time."""
    route, method = pairs()[key]
    row, home = row_of(key), values_for(world, route.name)
    foreign, unknown = values_for(world, route.name, "foreign"), values_for(world, route.name, "unknown")
    for parameter in route.kwargs:
        if parameter in row.get("open_ids", []) or foreign[parameter] == unknown.get(parameter, foreign[parameter]):
            continue
        for identity in IDENTITIES:
            if refused(row[identity]) or identity == "key_foreign":
                continue
            answers = []
            for stranger in (foreign, unknown):
                with unharmed():
                    client = world.client(identity, by="session" if route.is_page else "")
                    before = row_counts()
                    answers.append(ask(world, client, route, method, {**home, parameter: stranger[parameter]}))
                    changed = {name for name, now in row_counts().items() if now != before[name]}
                    assert changed == set(), f"{identity} changed something by a foreign {parameter}"
            assert said(answers[0]) == said(answers[1])
            assert refused(said(answers[0])), f"{identity} was let through with a foreign {parameter}"
            assert bare(answers[0].content) == bare(answers[1].content), f"{parameter} tells {identity} what exists elsewhere"
