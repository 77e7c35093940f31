"""The activity of a base: admins only, filtered, older by cursor, before and after with secrets hidden, kept as long as wanted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.common.activity import trim
from apps.common.models import Activity
from apps.common.scope import unscoped
from tests.portal.test_documents import text_of
from tests.support.shelf import HTMX, Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def act(shelf: Shelf, action: str = "kb.updated", *, days_ago: int = 0, **values: Any) -> Activity:
    given = {"space": shelf.space, "actor": "system", "scope_id": shelf.base.uid, "action": action, **values}
    with unscoped("test data"):
        row = Activity.objects.create(**given)
        Activity.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days_ago))
    return row


def actions(page: Any) -> list[str]:
    return [each["row"].action for each in page.context["rows"]]


def test_members_see_neither_tab_nor_page(shelf: Shelf) -> None:
    assert shelf.url("activity") not in shelf.member.get(shelf.url("")).content.decode()
    assert shelf.url("activity") in shelf.admin.get(shelf.url("")).content.decode()
    row = act(shelf)
    for address in ("activity", f"activity/{row.pk}"):
        assert shelf.member.get(shelf.url(address)).status_code == 403
        assert shelf.outsider.get(shelf.url(address)).status_code == 404
    answer = shelf.member.get(f"/v1/tenants/{shelf.space.pk}/knowledge/bases/{shelf.base.uid}/activity")
    assert (answer.status_code, answer.json()["code"]) == (403, "KNOWLEDGE_MANAGE_REQUIRED")


def test_what_people_do_is_listed_with_their_names(shelf: Shelf) -> None:
    shelf.member.post(shelf.url("tags"), {"name": "urgent", "color": "pink"}, headers=HTMX)
    page = shelf.admin.get(shelf.url("activity"))
    assert "Tag created urgent" in text_of(page) and "mia" in text_of(page)
    assert "Kept for ever. Nothing in it can be changed." in text_of(page)


def test_filters_combine_and_live_in_the_address(shelf: Shelf) -> None:
    act(shelf, "knowledge.deleted", outcome="failed", days_ago=3, actor="key:1")
    act(shelf, "knowledge.deleted", days_ago=2)
    act(shelf, "tag.created", outcome="failed")
    found = {
        "action=knowledge.deleted": 2,
        "action=knowledge.deleted&outcome=failed": 1,
        "actor=key:1": 1,
        f"from={timezone.localdate() - timedelta(days=1)}": 1,
        f"to={timezone.localdate() - timedelta(days=2)}": 2,
        "from=2026-99-99&to=nonsense&after=x": 3,
        "action=kb.deleted": 0,
    }
    assert {query: len(actions(shelf.admin.get(shelf.url(f"activity?{query}")))) for query in found} == found
    assert "Nothing matches" in text_of(shelf.admin.get(shelf.url("activity?action=kb.deleted")))


def test_older_rows_come_by_cursor_to_the_end(shelf: Shelf) -> None:
    for number in range(120):
        act(shelf, "tag.created", details={"title": f"t{number}"})
    seen, address, pages = [], shelf.url("activity?action=tag.created"), 0
    while address:
        page = shelf.admin.get(address)
        seen += [each["subject"] for each in page.context["rows"]]
        address, pages = page.context["older_href"], pages + 1
    assert (pages, seen) == (3, [f"t{number}" for number in reversed(range(120))])


def test_the_drawer_shows_before_and_after_and_hides_secrets(shelf: Shelf) -> None:
    changes = {
        "name": {"before": "Old", "after": "New"},
        "options": {"before": {"vlm_config": {"api_key": "sk-1"}}, "after": {"vlm_config": {"api_key": "sk-2", "model_id": "m"}}},
        "api_key": {"before": "", "after": "sk-3"},
    }
    row = act(shelf, details={"title": "Base", "changes": changes, "client_secret": "sk-4", "count": 2})
    html = shelf.admin.get(shelf.url(f"activity/{row.pk}"), headers=HTMX).content.decode()
    shown = text_of(html)
    assert "Name Before Old After New" in shown and "How many 2" in shown
    assert "sk-" not in html and "•••" in html and "A secret in it is not shown." in shown
    rest = shelf.admin.get(
        f"/api/v1/knowledge-bases/{shelf.base.uid}/activity?action=kb.updated", headers={"X-Tenant-ID": str(shelf.space.pk)}
    ).json()["data"][0]
    assert rest["changes"]["name"] == {"before": "Old", "after": "New", "redacted": False}
    assert (rest["changes"]["api_key"], rest["sourceType"], rest["actorMember"]) == (
        {"before": "", "after": "•••", "redacted": True},
        "system",
        None,
    )
    assert "sk-" not in str(rest)
    assert shelf.admin.get(shelf.url("activity/999999")).status_code == 404


def test_old_rows_go_only_when_the_operator_says_so(shelf: Shelf) -> None:
    old, fresh = act(shelf, days_ago=31), act(shelf, days_ago=29)
    assert trim(0) == 0
    assert trim(30) == 1
    with unscoped("test look"):
        assert list(Activity.objects.filter(pk__in=[old.pk, fresh.pk]).values_list("pk", flat=True)) == [fresh.pk]


def test_the_page_asks_the_same_number_of_questions_for_few_and_many(shelf: Shelf) -> None:
    counts = []
    shelf.admin.get(shelf.url("activity"))  # the first request of a session stores where the person is
    for more in (2, 30):
        for _number in range(more):
            act(shelf)
        with CaptureQueriesContext(connection) as queries:
            shelf.admin.get(shelf.url("activity"))
        counts.append(len(queries))
    assert counts[0] == counts[1]
