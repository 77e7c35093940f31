"""The OpenAPI document: kept in step with the code, complete, and each operation under a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema

from tests.inventory.source import ROOT
from tests.support.routes import routes

FAMILIES = ("/api/v1/", "/v1/knowledge/", "/v1/tenants/{tenant_id}/knowledge/")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-any-return, no-untyped-call]


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def test_the_document_in_the_repository_is_what_the_code_says(document: dict[str, Any]) -> None:
    written = (ROOT / "docs" / "openapi.yaml").read_text("utf-8")
    now = OpenApiYamlRenderer().render(document, renderer_context={}).decode()
    assert written == now, "docs/openapi.yaml is behind the code; run: make openapi"


def test_it_is_valid_openapi(document: dict[str, Any]) -> None:
    validate_schema(document)


def test_every_operation_has_a_name_of_its_own(document: dict[str, Any]) -> None:
    counted = Counter(operation["operationId"] for _path, _method, operation in operations(document))
    assert [name for name, times in counted.items() if times > 1] == []


def test_every_rest_route_is_in_it(document: dict[str, Any]) -> None:
    """As many operations as the three families have (route, method) pairs, so none is hidden and none is invented."""
    told = Counter(next(family for family in FAMILIES if path.startswith(family)) for path, _method, _operation in operations(document))
    assert set(told) == set(FAMILIES)
    rest = [(name, method) for name, route in routes().items() for method in route.methods if not route.is_page]
    assert sum(told.values()) == len(rest), (told, len(rest))


def test_every_operation_says_what_it_does_and_what_may_go_wrong(document: dict[str, Any]) -> None:
    lacking = [
        f"{method} {path}"
        for path, method, operation in operations(document)
        if not operation.get("summary")
        or not operation.get("tags")
        or (operation.get("security") and not any(status >= "400" for status in operation["responses"]))
    ]
    assert lacking == []


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert {reference for reference in references(document) if reference.startswith("#/components/schemas/")} - known == set()
