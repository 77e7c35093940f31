"""How many queries a list costs: the same for 2 rows and for 12, and no more than tests/budgets.json allows.

A list route is declared in LISTS with what makes more of its rows. `UPDATE_BUDGETS=1 pytest tests/inventory/test_query_budgets.py`
writes what was measured.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.chat.models import ChatSession
from apps.common.scope import space_scope
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import BaseVisit, Chunk, Document, DocumentTag, KnowledgeBase, Tag
from apps.llm.models import Model
from apps.sources.models import DataSource, SourceItem, SyncRun
from apps.spaces.services.invitations import invitation_create, invite_link_create
from apps.spaces.services.keys import key_create
from apps.spaces.services.members import member_add
from tests.support.furniture import answer_in, converse
from tests.support.route_samples import values_for
from tests.support.routes import routes
from tests.support.world import BASE_URL, World, make_user, unharmed

BUDGETS = Path(__file__).resolve().parent.parent / "budgets.json"
Make = Callable[[World, int], None]


def more_members(world: World, number: int) -> None:
    user = make_user(f"m{number}@example.com")
    member_add(actor=world.actor("admin"), space=world.home, email=user.email, role="member")


def more_keys(world: World, number: int) -> None:
    bases = [world.ids["home"]["kb_id"]]
    key_create(actor=world.actor("admin"), space=world.home, name=f"k{number}", full_access=False, capabilities=["retrieve"], kb_uids=bases)


def more_invitations(world: World, number: int) -> None:
    actor = world.actor("admin")
    invitation_create(actor=actor, space=world.home, email=f"i{number}@example.com", role="member", base_url=BASE_URL)
    invite_link_create(actor=actor, space=world.home, role="member", base_url=BASE_URL)


def more_models(world: World, number: int) -> None:
    Model.objects.create(space=world.home, name=f"m{number}", base_url="http://127.0.0.1:9/v1")


def more_bases(world: World, number: int) -> None:
    base = KnowledgeBase.objects.create(space=world.home, name=f"Base {number}")
    BaseVisit.objects.create(space=world.home, user=world.users["admin"], kb=base, visited_at=timezone.now())


def more_passages(world: World, number: int) -> None:
    document = Document.objects.get(uid=world.ids["home"]["document_id"])
    place = {"chunk_index": number + 1, "start_at": number, "end_at": number + 1, "positions": [{"page": number + 1}]}
    Chunk.objects.create(
        space=world.home, kb=document.kb, document=document, content=f"passage {number}", content_hash=str(number), **place
    )


def more_documents(world: World, number: int) -> None:
    base = KnowledgeBase.objects.get(uid=world.ids["home"]["kb_id"])
    tag = Tag.objects.create(space=world.home, kb=base, name=f"t{number}")
    document = Document.objects.create(
        space=world.home, kb=base, title=f"d{number}", file_hash=str(number), parse_status="processing", folder_path=f"f/{number}"
    )
    DocumentTag.objects.create(space=world.home, document=document, tag=tag)
    IngestionRun.objects.create(space=world.home, document=document, document_attempt=1, kind="parse")


def more_messages(world: World, number: int) -> None:
    """One more question with its answer, which cites a passage."""
    session = ChatSession.objects.get(uid=world.ids["home"]["session_id"])
    chunk = Chunk.objects.select_related("document", "kb").get(uid=world.ids["home"]["chunk_id"])
    converse(world.actor("admin"), chunk)  # and one more conversation
    answer_in(session, chunk)


def more_sources(world: World, number: int) -> None:
    base = KnowledgeBase.objects.get(uid=world.ids["home"]["kb_id"])
    source = DataSource.objects.create(space=world.home, kb=base, type="rss", name=f"s{number}", error_code="auth", status="error")
    SyncRun.objects.create(space=world.home, kind="sync", source=source, state="done")
    SyncRun.objects.create(space=world.home, kind="sync", source=source)
    SourceItem.objects.create(space=world.home, source=source, key=str(number), external_id="1", state="held")


#: "GET route" -> what makes one more row of it
LISTS: dict[str, Make] = {
    "GET document-reader": more_passages,
    "GET quick-search": more_bases,
    "GET ask": more_messages,
    "GET ask-session": more_messages,
    "GET api:chat-load": more_messages,
    "GET api:chat-sessions": more_messages,
    "GET api:members": more_members,
    "GET api:invitations": more_invitations,
    "GET api:api-keys": more_keys,
    "GET home": more_bases,
    "GET base-documents": more_documents,
    "GET members-page": more_members,
    "GET invitations-page": more_invitations,
    "GET keys-page": more_keys,
    "GET models-page": more_models,
    "GET base-sources": more_sources,
}


def queries(world: World, key: str) -> int:
    route = routes()[key.removeprefix("GET ")]
    client = world.client("admin", by="session" if route.is_page else "")
    url = route.url(values_for(world, route.name))
    client.get(url)  # whatever is worked out once per process
    with CaptureQueriesContext(connection) as caught:
        assert client.get(url).status_code == 200
    return len([entry for entry in caught.captured_queries if "SAVEPOINT" not in entry["sql"]])


@pytest.mark.parametrize("key", sorted(LISTS))
def test_a_list_costs_the_same_however_long(world: World, key: str) -> None:
    counts = []
    for rows in (2, 12):
        with unharmed():
            with space_scope(world.home.pk):
                for number in range(rows):
                    LISTS[key](world, number)
            counts.append(queries(world, key))
    assert counts[0] == counts[1], f"{key}: {counts[0]} queries for 2 rows, {counts[1]} for 12"
    budgets = json.loads(BUDGETS.read_text("utf-8")) if BUDGETS.exists() else {}
    if os.environ.get("UPDATE_BUDGETS"):
        budgets[key] = counts[0]
        BUDGETS.write_text(json.dumps(dict(sorted(budgets.items())), indent=2) + "\n", "utf-8")
    assert counts[0] <= budgets.get(key, -1), f"{key}: {counts[0]} queries, the budget is {budgets.get(key)}"


def test_no_budget_is_stale() -> None:
    assert sorted(json.loads(BUDGETS.read_text("utf-8"))) == sorted(LISTS)
