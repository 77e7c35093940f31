"""Every page of the admin over real rows: it says what is so, costs a fixed number of queries, and is closed to everybody else."""

from __future__ import annotations

import pytest

from tests.moderation.conftest import House

LISTS = (
    "accounts_user_changelist",
    "spaces_space_changelist",
    "knowledge_knowledgebase_changelist",
    "knowledge_document_changelist",
    "retrieval_retrievallog_changelist",
    "admin_logentry_changelist",
    "runs",
    "storage",
    "index",
)


@pytest.mark.parametrize("name", LISTS)
def test_smoke(house: House, name: str) -> None:
    house.library.add("pump.txt", "The pump is replaced every five years.", vectors=True)
    text = house.page(name)
    assert "kbportal" in text
