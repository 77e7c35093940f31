"""Every page of the admin over real rows: it says what is so, costs a fixed number of queries, and is closed to everybody else."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import job_kinds
from apps.common.middleware import CONTENT_SECURITY_POLICY
from apps.common.scope import unscoped
from apps.ingestion.models import IngestionRun
from apps.knowledge.models import Document, KnowledgeBase
from apps.moderation.words import KINDS, STATES
from apps.retrieval.models import RetrievalLog
from apps.spaces.models import Membership, Space
from tests.moderation.conftest import House
from tests.support.world import SessionClient, make_user

LISTS = (
    "index",
    "runs",
    "storage",
    "accounts_user_changelist",
    "spaces_space_changelist",
    "knowledge_knowledgebase_changelist",
    "knowledge_document_changelist",
    "retrieval_retrievallog_changelist",
    "admin_logentry_changelist",
)


def log_row(space: Space, **values: Any) -> RetrievalLog:
    defaults: dict[str, Any] = {
        "created_at": timezone.now(),
        "door": "page",
        "actor": "user:x",
        "query_text": "pump",
        "query_chars": 4,
        "mode": "hybrid",
        "outcome": "hit",
        "took_ms": 20.0,
    }
    return RetrievalLog.objects.create(space=space, **{**defaults, **values})


def more(house: House, number: int) -> None:
    """One more row of every list, each with rows of its own beside it."""
    user = make_user(f"u{number}@example.com")
    space = Space.objects.create(name=f"Space {number}", kind="organization", owner=user)
    Membership.objects.create(space=space, user=user, role="admin")
    base = KnowledgeBase.objects.create(space=space, name=f"Base {number}")
    document = Document.objects.create(
        space=space, kb=base, title=f"Document {number}", file_hash=str(number), parse_status="failed", reason="locked"
    )
    IngestionRun.objects.create(space=space, document=document, kind="parse", document_attempt=1)
    hits = [
        {"document": str(document.uid), "chunk": str(uuid.uuid4()), "reason": "exact", "score": 1.0, "text_rank": 1, "vector_rank": None}
    ]
    log_row(space, actor_user_id=user.pk, hits=hits, hits_count=1)
    LogEntry.objects.log_actions(house.moderator.pk, [space], CHANGE, change_message="space: delete", single_object=True)


def queries_of(house: House, name: str) -> int:
    house.page(name)
    with CaptureQueriesContext(
        connection,
    ) as found:
        house.page(name)
    return len(found)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_costs_as_many_queries_for_fifty_rows_as_for_one(house: House, name: str) -> None:
    with unscoped("test"):
        more(house, 0)
    before = queries_of(house, name)
    with unscoped("test"):
        for number in range(1, 51):
            more(house, number)
    assert queries_of(house, name) == before
    assert before < 40


def test_lists_say_what_is_in_the_rows(house: House) -> None:
    document = house.document()
    with unscoped("test"):
        Document.objects.filter(pk=document.pk).update(parse_status="failed", reason="locked", processed_at=timezone.now())
    people = house.page("accounts_user_changelist")
    assert "ada@example.com" in people and "mia@example.com" in people
    spaces = house.page("spaces_space_changelist", query="?q=Team")
    assert "Team" in spaces and "ada&#x27;s Workspace" not in spaces
    documents = house.page("knowledge_document_changelist", query="?state=failed&reason=locked")
    assert "pump.txt" in documents and "Locked" in documents and "Base" in documents
    assert "pump.txt" not in house.page("knowledge_document_changelist", query="?state=completed")
    assert "pump.txt" not in house.page("knowledge_document_changelist", query="?space=999999")
    assert "The file is protected by a password" in house.page("knowledge_document_change", document.pk)
    front = house.page("index")
    assert "The file is protected by a password" in front and "enter its password on its page" in front


def test_pages_of_one_thing(house: House) -> None:
    document = house.document()
    space = house.library.space
    page = house.page("spaces_space_change", space.pk)
    assert "ada@example.com" in page and "mia@example.com" in page and "Delete organization" in page
    assert "Base" in house.page("knowledge_knowledgebase_change", document.kb_id)
    person = house.page("accounts_user_change", User.objects.get(username="ada").pk)
    assert "Admin, the only one" in person and "Team" in person
    text = house.page("knowledge_document_change", document.pk)
    assert "Read again" in text and "replaced every five years" not in text, "metadata only"
    with unscoped("test"):
        row = log_row(space)
    assert "4 characters, hidden" in house.page("retrieval_retrievallog_change", row.pk)
    assert house.client.post(reverse("admin:spaces_space_change", args=[space.pk]), {"name": "x"}).status_code == 404
    assert house.client.get(reverse("admin:spaces_space_change", args=[2**40])).status_code == 404


@pytest.mark.parametrize("language", ["zh-hans", "en"])
def test_every_page_speaks_both_languages(house: House, language: str) -> None:
    with unscoped("test"):
        more(house, 0)
    User.objects.filter(pk=house.moderator.pk).update(language=language)
    words = {name: house.page(name) for name in LISTS}
    assert all(f'lang="{language}"' in text for text in words.values())
    assert ("任务" if language == "zh-hans" else "Runs") in words["runs"]
    assert ("现在需要处理的" if language == "zh-hans" else "What needs you now") in words["index"]


def addresses(house: House) -> list[str]:
    """One address of every page of the admin."""
    document = house.document()
    with unscoped("test"):
        run = IngestionRun.objects.get(document=document, kind="parse")
        row = log_row(house.library.space)
    named: dict[str, list[Any]] = {
        **{name: [] for name in LISTS},
        "retrieval_log_export": [],
        "accounts_user_change": [house.moderator.pk],
        "spaces_space_change": [house.library.space.pk],
        "knowledge_knowledgebase_change": [document.kb_id],
        "knowledge_document_change": [document.pk],
        "retrieval_retrievallog_change": [row.pk],
        "run": ["parse", run.pk],
        "act": ["document", document.pk, "delete"],
        "grant": [house.library.space.pk],
        "contents": [document.pk],
        "search": [],
        "jsi18n": [],
        "app_list": ["knowledge"],
    }
    return [reverse(f"admin:{name}", args=args) for name, args in named.items()]


def test_everybody_else_is_kept_out_of_every_page_and_act(house: House) -> None:
    member, nobody = house.library.client, SessionClient()
    with unscoped("test"):
        before = Document.objects.filter(deleted_at__isnull=True).count()
    for address in addresses(house):
        if "jsi18n" in address:
            continue  # words of Django's own scripts
        for method in ("get", "post"):
            kept_out = getattr(nobody, method)(address)
            assert (kept_out.status_code, "/login/" in kept_out.headers.get("Location", "")) == (302, True), address
            told = getattr(member, method)(address, follow=True)
            assert told.status_code == 403, (address, told.status_code)
            assert b"pump.txt" not in told.content
    with unscoped("test"):
        assert Document.objects.filter(deleted_at__isnull=True).count() == before + 1
        assert LogEntry.objects.count() == 0


def test_who_is_no_moderator_any_more_is_out_at_the_next_click(house: House) -> None:
    house.page("index")
    User.objects.filter(pk=house.moderator.pk).update(is_staff=False)
    assert house.client.get("/admin/runs/").status_code == 302


def test_the_admin_runs_no_inline_script_and_the_portal_keeps_its_own_policy(house: House) -> None:
    policy = house.client.get("/admin/").headers["Content-Security-Policy"]
    scripts = next(part for part in policy.split(";") if part.strip().startswith("script-src"))
    assert scripts.split() == ["script-src", "'self'", "'unsafe-eval'"]
    page = house.library.client.get(f"/s/{house.library.space.pk}/")
    assert page.headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY


def test_nothing_but_our_pages_is_registered() -> None:
    from django.contrib import admin

    assert sorted(model._meta.label for model in admin.site._registry) == [
        "accounts.User",
        "admin.LogEntry",
        "faq.FaqEntry",
        "knowledge.Document",
        "knowledge.KnowledgeBase",
        "retrieval.RetrievalLog",
        "sources.DataSource",
        "spaces.Space",
        "wiki.WikiIssue",
        "wiki.WikiPage",
    ]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("?outcome=miss", ["miss-row"]),
        ("?outcome=hit", ["hit-row", "slow-row"]),
        ("?slow=300", ["slow-row"]),
        ("?door=palette", ["miss-row"]),
        ("?leg=failed", ["failed-row"]),
        ("?q=hit-row", ["hit-row"]),
        ("?created_at_from=2020-01-01&created_at_to=2020-12-31", ["old-row"]),
    ],
)
def test_the_log_is_filtered(house: House, query: str, shown: list[str]) -> None:
    with unscoped("test"):
        space = house.library.space
        log_row(space, request_id="hit-row")
        log_row(space, request_id="miss-row", outcome="miss", door="palette")
        log_row(space, request_id="slow-row", took_ms=450.0)
        log_row(space, request_id="failed-row", outcome="error", failed_leg="vector")
        log_row(space, request_id="old-row", outcome="near", created_at=timezone.now().replace(year=2020))
        by_id = dict(RetrievalLog.objects.values_list("pk", "request_id"))
    text = house.page("retrieval_retrievallog_changelist", query=query)
    listed = [name for pk, name in by_id.items() if f"/admin/retrieval/retrievallog/{pk}/change/" in text]
    assert sorted(listed) == sorted(shown)


def test_the_front_page_counts_from_rows(house: House) -> None:
    count: Callable[[str], int] = lambda text: house.page("index").count(text)  # noqa: E731
    assert count("No worker serves the queue ocr.") == 1, "nobody works in this test"
    with unscoped("test"):
        for _again in range(12):
            log_row(house.library.space, outcome="miss")
        for _again in range(8):
            log_row(house.library.space)
        for _again in range(5):
            log_row(house.library.space, outcome="miss", door="palette")
    text = house.page("index")
    assert "12 of 20 searches found nothing in 24 hours." in text
    assert "5 characters" not in text


def test_every_kind_of_work_and_every_state_has_words() -> None:
    assert set(KINDS) == set(job_kinds.names())
    assert {*RunState.values} <= set(STATES)
