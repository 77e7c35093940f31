"""Counting a base is done from indexes alone, so that full bases are counted in milliseconds."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.common.actor import Actor, Role
from apps.common.scope import space_scope
from apps.knowledge.selectors import base_row, document_list, folder_tree, tag_list
from apps.knowledge.selectors.figures import document_facets
from tests.support.rows import Filed, make_documents
from tests.support.shelf import Shelf

COUNTERS = {
    "figures of the base": lambda **at: base_row(**at),
    "facets": lambda **at: document_facets(**at),
    "folders": lambda **at: folder_tree(**at),
    "how many": lambda **at: document_list(**at).count(),
    "tags": lambda **at: list(tag_list(**at)),
}


@pytest.mark.parametrize("what", COUNTERS)
def test_a_count_reads_no_row_of_a_document(db: None, what: str) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("how PostgreSQL reads depends on what it last vacuumed")
    shelf = Shelf()
    tag = shelf.tag("t")
    make_documents(shelf.base, (Filed(f"d{n}.md", (), [tag], f"f{n % 7}") for n in range(300)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    actor = Actor(kind="user", user_id=None, space_id=shelf.space.pk, space_kind=shelf.space.kind, role=Role.ADMIN)
    with space_scope(shelf.space.pk), CaptureQueriesContext(connection) as queries:
        COUNTERS[what](actor=actor, base=shelf.base)
    asked = [query["sql"] for query in queries if "knowledge_document" in query["sql"]]
    assert asked
    with connection.cursor() as cursor:
        for sql in asked:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            steps = [row[3] for row in cursor.fetchall()]
            read = [step for step in steps if any(f" {name} " in f"{step} " for name in ("knowledge_document", "U0", "V0", "V1"))]
            assert read and all("COVERING INDEX" in step for step in read), steps
