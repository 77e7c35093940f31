"""Every route and method against every identity, by a table written by hand: permission_matrix.toml, whose head explains its rows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.support.route_samples import BODIES, CONTENTS, KWARGS, body_for, values_for
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
    "metrics": "figures for Prometheus, behind a bearer token of the operator, tested in tests/operations",
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
    short = {
        f"{method} {'page ' if route.is_page else ''}{name.rpartition(':')[2]}"
        for name, route in routes().items()
        for method in route.methods
    }
    assert sorted(set(CONTENTS) - short) == [], "bodies of contents without a route"
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
    return send(route.url(values), body)


def said(answer: Any) -> int | str:
    """The status, or "login" for the way to the sign-in page."""
    if answer.status_code == 302 and answer.headers["Location"].startswith("/account/login/"):
        return "login"
    return int(answer.status_code)


def refused(status: int | str) -> bool:
    return status == "login" or (isinstance(status, int) and status >= FOREIGN_WORKS)


def family(key: str) -> str:
    """ "api", "personal", "organization" or "pages": the tests run once per family, over one world each."""
    return key.split(" ", 1)[1].rpartition(":")[0] or "pages"


def keys_of(name: str) -> list[str]:
    return sorted(key for key in SHAPE if family(key) == name and key in pairs())


def complain(problems: dict[str, str]) -> None:
    assert not problems, f"{len(problems)} rows\n" + "\n".join(f"[{key!r}]\n{text}" for key, text in problems.items())


def try_row(world: World, key: str) -> str:
    """What is wrong with one row, empty when nothing is."""
    route, method = pairs()[key]
    expected = {name: row_of(key)[name] for name in IDENTITIES}
    found: dict[str, Any] = {}
    faults: list[str] = []
    values = values_for(world, route.name)
    for identity in IDENTITIES:
        with unharmed():
            client = world.client(identity, by="session" if route.is_page else "")
            before, waiting = row_counts(), len(connection.run_on_commit)
            found[identity] = said(ask(world, client, route, method, values))
            if refused(found[identity]):
                now = row_counts()
                if changed := {name: (before[name], now[name]) for name in now if now[name] != before[name]}:
                    faults.append(f"{identity} was refused, yet rows changed: {changed}")
                if len(connection.run_on_commit) != waiting:
                    faults.append(f"{identity} was refused, yet work was enqueued")
    if found != expected:
        faults.append("it answers:\n" + "\n".join(f"{name} = {status!r}" for name, status in found.items()))
    return "\n".join(faults)


def try_strangers(world: World, key: str) -> str:
    """What foreign ids in the path betray, empty when nothing: every identity that may use the route, one id at a time."""
    route, method = pairs()[key]
    row, home = row_of(key), values_for(world, route.name)
    foreign, unknown = values_for(world, route.name, "foreign"), values_for(world, route.name, "unknown")
    faults = []
    for parameter in route.kwargs:
        if parameter in row.get("open_ids", []) or foreign[parameter] == unknown.get(parameter, foreign[parameter]):
            continue
        for identity in IDENTITIES:
            if refused(row[identity]) or identity == "key_foreign" or home[parameter] == foreign[parameter]:
                continue
            answers = []
            for stranger in (foreign, unknown):
                with unharmed():
                    client = world.client(identity, by="session" if route.is_page else "")
                    before, asked = row_counts(), {**home, parameter: stranger[parameter]}
                    answer = ask(world, client, route, method, asked)
                    answers.append((said(answer), bare(answer.content, route.url(asked))))
                    if before != row_counts():
                        faults.append(f"{identity} changed something by {parameter}={stranger[parameter]}")
            if not refused(answers[0][0]):
                faults.append(f"{identity} was let through with a foreign {parameter}")
            if answers[0] != answers[1]:
                faults.append(f"{parameter} tells {identity} what exists elsewhere: {answers[0][0]} and {answers[1][0]}")
    return "\n".join(faults)


def bare(content: bytes, path: str) -> bytes:
    """A body without what differs between any two requests: its own address, request id, CSRF token and number of its form."""
    content = re.sub(rb'(csrf-token" content="|csrfmiddlewaretoken" value="|form_once" value=")[^"]*', rb"\1", content).replace(
        path.encode(), b""
    )
    return re.sub(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", b"", content)


FAMILIES = ["api", "personal", "organization", "pages"]


@pytest.mark.parametrize("name", FAMILIES)
def test_who_may(world: World, name: str) -> None:
    complain({key: text for key in keys_of(name) if (text := try_row(world, key))})


@pytest.mark.parametrize("name", FAMILIES)
def test_a_foreign_id_answers_like_one_that_does_not_exist(world: World, name: str) -> None:
    complain({key: text for key in keys_of(name) if (text := try_strangers(world, key))})


def test_every_row_is_in_a_family() -> None:
    assert {family(key) for key in SHAPE} == set(FAMILIES)
