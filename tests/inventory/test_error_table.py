"""Every expected error has a status, a code and a body, and no entry of the table is there for nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module

import pytest

from apps.common import errors
from apps.common.api.errors import BARE, OWN, PROXY_CODES, TABLE, body_of, status_of
from tests.inventory.source import assert_only, modules, tree

#: contract platform 4.2: integer code -> statuses it goes with. 413 and 415 are the finer forms of 400 that HTTP has; 500 of 1007 is the
#: general one. Codes that only upstream's agents and vector stores use are left out.
CONTRACT = {
    1000: {400, 415},
    1001: {401},
    1002: {403},
    1003: {404, 410},
    1004: {405},
    1005: {409},
    1006: {429},
    1007: {500},
    1008: {503},
    1010: {400, 413},
    2003: {400},
}
# module -> why it names an HTTP status although the table does that
NAMES_A_STATUS = {
    "apps/common/api/errors.py": "the table itself, and what frameworks raise",
    "apps/knowledge/downloads.py": "the one failure that is the portal's own: a stored original that cannot be read",
}


def _subclasses(kind: type[errors.DomainError]) -> Iterator[type[errors.DomainError]]:
    for found in kind.__subclasses__():
        yield found
        yield from _subclasses(found)


def _keywords(path: str) -> Iterator[tuple[str, object, dict[str, object]]]:
    """(keyword, value, the call's constant keywords) of every call with constant keywords in a module."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            given: dict[str, object] = {
                word.arg: word.value.value for word in node.keywords if word.arg and isinstance(word.value, ast.Constant)
            }
            yield from ((name, value, given) for name, value in given.items())


def _raised() -> set[object]:
    codes = {value for path in modules("apps") for name, value, _given in _keywords(path) if name == "code"}
    return codes | {kind.code for kind in _subclasses(errors.DomainError)}


def test_every_kind_of_error_is_in_the_table() -> None:
    for path in modules("apps"):
        import_module(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    assert {kind for kind in _subclasses(errors.DomainError) if kind.__module__.startswith("apps.")} == set(TABLE)


def test_every_kind_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in TABLE]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.__name__)
def test_status_and_code_go_together_as_the_contract_says(kind: type[errors.DomainError]) -> None:
    status, code = status_of(kind("why", field="name"))
    assert status in CONTRACT[code]
    assert body_of(kind("why", field="name")) == {
        "success": False,
        "error": {"code": code, "message": "why", "details": {"field": "name", "reason": kind.code}},
    }


def test_every_code_given_on_the_way_is_one_of_the_contract() -> None:
    strange = []
    for path in modules("apps"):
        for name, value, given in _keywords(path):
            if name == "api_code" and (value not in CONTRACT or given.get("http_status", 400) not in CONTRACT.get(value, set())):  # type: ignore[call-overload]
                strange.append(f"{path}: {value} {given.get('http_status', 400)}")
    assert strange == []


def test_only_the_table_names_a_status() -> None:
    found = {path for path in modules("apps") for name, _value, _given in _keywords(path) if name == "http_status"}
    assert_only(found, NAMES_A_STATUS, "the domain names codes; statuses are the table's")


def test_every_special_code_is_raised_somewhere() -> None:
    """A code whose refusal is answered in a form of its own, yet raised nowhere, is a dead entry."""
    assert sorted({*BARE, *OWN, *PROXY_CODES} - _raised()) == []


@pytest.mark.parametrize("code", BARE)
def test_a_refusal_of_the_door_is_answered_bare(code: str) -> None:
    status, text = BARE[code]
    assert status in (400, 401, 403, 409)
    assert status_of(errors.Forbidden(code=code))[0] == status
    assert body_of(errors.Forbidden(code=code))["error"] == text
    assert body_of(errors.Forbidden(code=code), proxied=True).get("code", "") == PROXY_CODES.get(
        code, "TENANT_REQUIRED" if code == "space_required" else ""
    )


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.__name__)
def test_the_proxied_families_add_a_word_for_the_code(kind: type[errors.DomainError]) -> None:
    assert body_of(kind("why"), proxied=True)["code"] == PROXY_CODES.get(kind.code, kind.code.upper())


def test_an_error_outside_the_table_is_a_mistake_of_the_programmer() -> None:
    with pytest.raises(LookupError):
        status_of(errors.DomainError("nobody said what this is"))
