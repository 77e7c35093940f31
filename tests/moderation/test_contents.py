"""Contents of a space a moderator is not in: a reason first, for an hour, and the space's activity says who, why and what."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from django.utils import timezone

from apps.common.models import Activity
from apps.common.scope import unscoped
from apps.moderation.models import ContentGrant
from apps.retrieval.models import RetrievalLog
from apps.spaces.models import Membership
from tests.moderation.conftest import TEXT, House
from tests.moderation.test_admin_pages import log_row

REASON = "The customer asked support to look at this manual"


def activity(house: House) -> list[tuple[str, str, Any]]:
    with unscoped("test"):
        rows = Activity.objects.filter(space=house.library.space, action__startswith="moderator.").order_by("pk")
        return [(row.action, row.target_type, row.details.get("reason")) for row in rows]


def open_up(house: House, **form: str) -> Any:
    return house.client.post(f"/admin/open/{house.library.space.pk}/", {"reason": REASON, **form})


def test_passages_open_only_after_a_reason_and_every_look_is_written_down(house: House) -> None:
    document = house.document()
    address = f"/admin/contents/{document.pk}/"
    sent = house.client.get(address)
    assert sent.headers["Location"] == f"/admin/open/{house.library.space.pk}/?next={address}&base={house.library.base.uid}"
    assert "Why do you need to read it?" in house.client.get(sent.headers["Location"]).content.decode()
    assert activity(house) == []
    opened = open_up(house, next=address, base=str(house.library.base.uid))
    assert opened.headers["Location"] == address
    text = house.client.get(address).content.decode()
    assert TEXT in text and REASON in text
    assert activity(house) == [("moderator.access_granted", "space", REASON), ("moderator.opened", "knowledge", REASON)]
    with unscoped("test"):
        row = Activity.objects.get(action="moderator.opened")
    assert (row.actor, row.actor_user_id, row.target_id, row.scope_id) == (
        "moderator",
        house.moderator.pk,
        str(document.uid),
        house.library.base.uid,
    )
    seen = house.library.client.get(
        f"/api/v1/knowledge-bases/{house.library.base.uid}/activity", headers={"X-Tenant-ID": str(house.library.space.pk)}
    )
    assert REASON in seen.content.decode(), "the admins of the space read it"


def test_a_reason_has_to_say_something(house: House) -> None:
    for reason, said in (("", "at least 10 characters"), ("because", "at least 10 characters"), ("x" * 501, "at most 500 characters")):
        answer = open_up(house, reason=reason)
        assert (answer.status_code, said in answer.content.decode()) == (400, True)
    assert "because" in open_up(house, reason="because").content.decode(), "what was typed is kept"
    with unscoped("test"):
        assert ContentGrant.objects.count() == 0
    assert activity(house) == []


def test_a_grant_ends_after_an_hour_and_counts_for_one_space_and_one_moderator(house: House) -> None:
    document = house.document()
    open_up(house)
    assert house.client.get(f"/admin/contents/{document.pk}/").status_code == 200
    with unscoped("test"):
        grant = ContentGrant.objects.get()
        assert timedelta(minutes=59) < grant.expires_at - timezone.now() <= timedelta(hours=1)
        ContentGrant.objects.update(expires_at=timezone.now())
    assert house.client.get(f"/admin/contents/{document.pk}/").status_code == 302
    with unscoped("test"):
        ContentGrant.objects.update(expires_at=timezone.now() + timedelta(hours=1), moderator_id=house.library.actor.user_id)
    assert house.client.get(f"/admin/contents/{document.pk}/").status_code == 302


def test_the_way_back_never_leaves_the_admin(house: House) -> None:
    for onward in ("https://evil.example/", "//evil.example/", "/s/1/", "javascript:alert(1)", "/admin/\\evil"):
        answer = open_up(house, next=onward)
        assert answer.headers["Location"].startswith("/admin/") and "evil.example" not in answer.headers["Location"]


def test_a_member_reads_without_a_grant_and_nothing_is_written(house: House) -> None:
    document = house.document()
    Membership.objects.create(space=house.library.space, user=house.moderator, role="member")
    assert TEXT in house.client.get(f"/admin/contents/{document.pk}/").content.decode()
    assert activity(house) == []


def test_a_deleted_document_has_no_contents_to_open(house: House) -> None:
    document = house.document(deleted_at=timezone.now())
    assert house.client.get(f"/admin/contents/{document.pk}/").status_code == 404


def test_questions_stay_hidden_until_a_reason_is_given(house: House) -> None:
    with unscoped("test"):
        row = log_row(house.library.space, query_text="secret merger plan", query_chars=18, kb_uids=[str(house.library.base.uid)])
    listed, page = "/admin/retrieval/retrievallog/", f"/admin/retrieval/retrievallog/{row.pk}/change/"
    for address in (listed, page):
        text = house.client.get(address).content.decode()
        assert "secret merger plan" not in text and "18 characters, hidden" in text
    open_up(house)
    for address in (listed, page):
        assert "secret merger plan" in house.client.get(address).content.decode()
    assert activity(house)[1:] == [("moderator.opened", "retrieval_log", REASON)]


def test_a_deleted_documents_hit_is_shown_as_deleted(house: House) -> None:
    document, kept = house.document("gone.txt"), house.document("kept.txt")
    hits = [
        {"document": str(each.uid), "chunk": str(each.uid), "reason": "exact", "score": 1.0, "text_rank": 1, "vector_rank": None}
        for each in (document, kept)
    ]
    with unscoped("test"):
        row = log_row(house.library.space, hits=hits, hits_count=2)
        type(document).objects.filter(pk=document.pk).update(deleted_at=timezone.now())
    text = house.page("retrieval_retrievallog_change", row.pk)
    assert "gone.txt" not in text and "a deleted document" in text
    assert "kept.txt" in text and "made anew since" in text


def exported(house: House, query: str = "") -> list[dict[str, Any]]:
    answer = house.client.get(f"/admin/retrieval/retrievallog/export.jsonl{query}")
    assert (answer.status_code, answer.streaming) == (200, True)
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]


def test_the_export_honours_filters_and_hides_questions(house: House) -> None:
    with unscoped("test"):
        first = log_row(house.library.space, outcome="miss", query_text="where is the 阀门", query_chars=13)
        log_row(house.library.space, outcome="hit")
        own = house.moderator.memberships.get().space
        mine = log_row(own, outcome="miss", query_text="mine")
        RetrievalLog.objects.bulk_create([log_row_unsaved(house) for _again in range(1100)])
    assert len(exported(house)) == 1103, "in pieces, and none twice"
    rows = exported(house, "?outcome=miss")
    assert [row["id"] for row in rows] == [mine.pk, first.pk]
    assert [(row["query"], row["query_chars"]) for row in rows] == [("mine", 4), (None, 13)]
    assert activity(house) == []
    open_up(house)
    assert [row["query"] for row in exported(house, "?outcome=miss")] == ["mine", "where is the 阀门"]
    assert activity(house)[1:] == [("moderator.opened", "retrieval_log", REASON)]


def log_row_unsaved(house: House) -> RetrievalLog:
    return RetrievalLog(space=house.library.space, created_at=timezone.now(), door="page", actor="user:x", mode="text", outcome="hit")
