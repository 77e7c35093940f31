"""What runs may do to pages: theirs they change, those of people they only propose to; their versions are thinned."""

from __future__ import annotations

import pytest

from apps.common.errors import Conflict
from apps.common.models import Activity
from apps.common.scope import space_scope
from apps.knowledge.models import Chunk
from apps.wiki import store
from apps.wiki.models import PageClaim, PageRevision, WikiPage, WikiProposal
from apps.wiki.services import (
    ClaimDraft,
    PageChange,
    PageDraft,
    page_change,
    page_create,
    page_delete,
    page_propose,
    page_write,
    proposal_accept,
)
from tests.wiki.conftest import WikiWorld

MACHINE = WikiPage.Source.SYSTEM


def by_run(wiki: WikiWorld, **values: str) -> WikiPage:
    draft = PageDraft(title="Pump", content="one", **values)
    return page_create(actor=wiki.system, base=wiki.wiki, draft=draft, source=MACHINE, made_by="rules", free_slug=True)


def test_a_run_changes_its_own_pages_until_a_person_has_written_on_them(wiki: WikiWorld) -> None:
    with space_scope(wiki.space.pk):
        page = by_run(wiki)
        written = page_write(actor=wiki.system, page=page, change=PageChange(content="two"), note="again")
        assert isinstance(written, WikiPage) and (written.content, written.version, written.is_kept) == ("two", 2, False)
        page_change(actor=wiki.member.actor, page=page, change=PageChange(content="mine"))
        proposed = page_write(actor=wiki.system, page=page, change=PageChange(content="three"))
        assert isinstance(proposed, WikiProposal) and proposed.draft == {"content": "three"} and proposed.base_version == 3
        for act in (
            lambda: page_change(actor=wiki.system, page=page, change=PageChange(content="x"), source=MACHINE),
            lambda: page_delete(actor=wiki.system, page=page, source=MACHINE),
        ):
            with pytest.raises(Conflict) as refused:
                act()
            assert refused.value.code == "page_kept"
    assert wiki.page("pump")["content"] == "mine"


def test_the_same_proposal_is_not_made_twice_and_a_newer_one_replaces_it(wiki: WikiWorld) -> None:
    with space_scope(wiki.space.pk):
        page = by_run(wiki)
        page_change(actor=wiki.member.actor, page=page, change=PageChange(content="mine"))
        first = page_propose(actor=wiki.system, page=page, change=PageChange(content="a"))
        assert page_propose(actor=wiki.system, page=page, change=PageChange(content="a")) == first
        second = page_propose(actor=wiki.system, page=page, change=PageChange(content="b"))
        first.refresh_from_db()
        assert (first.status, second.status) == ("replaced", "open")
        assert isinstance(page_propose(actor=wiki.system, page=page, change=PageChange(content="mine")), WikiPage), "nothing would change"
        page_change(actor=wiki.member.actor, page=page, change=PageChange(content="newer"))
        with pytest.raises(Conflict) as late:
            proposal_accept(actor=wiki.member.actor, proposal=second)
        assert (late.value.code, late.value.details["current_version"], late.value.details["content"]) == ("version_conflict", 3, "newer")
        accepted = proposal_accept(actor=wiki.member.actor, proposal=second, expected_version=3)
        assert accepted is not None and (accepted.content, accepted.version, accepted.source) == ("b", 4, "person")


def test_versions_of_machines_are_thinned_and_those_of_people_stay(wiki: WikiWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MACHINE_VERSIONS", 3)
    with space_scope(wiki.space.pk):
        page = by_run(wiki)
        for number in range(6):
            page_change(actor=wiki.system, page=page, change=PageChange(content=f"run {number}"), source=MACHINE)
        kept = list(PageRevision.objects.filter(page=page).order_by("version").values_list("version", flat=True))
        assert kept == [4, 5, 6]
        for number in range(5):
            page_change(actor=wiki.member.actor, page=page, change=PageChange(content=f"mine {number}"))
        sources = list(PageRevision.objects.filter(page=page).order_by("version").values_list("version", "source"))
        assert sources == [(5, "system"), (6, "system"), (7, "system"), (8, "person"), (9, "person"), (10, "person"), (11, "person")]


def test_a_taken_address_gets_a_number(wiki: WikiWorld) -> None:
    with space_scope(wiki.space.pk):
        assert [by_run(wiki).slug for _turn in range(3)] == ["pump", "pump-2", "pump-3"]


def test_claims_stay_with_their_marks_and_go_with_them(wiki: WikiWorld) -> None:
    document = wiki.make_document(wiki.wiki, "manual.txt", chunks=2)
    with space_scope(wiki.space.pk):
        chunk = Chunk.objects.filter(document=document).order_by("pk").first()
        page = by_run(wiki)
        claims = [ClaimDraft(mark, mark, document, (chunk.pk,), (str(chunk.uid),), "passage 0") for mark in ("c1", "c2", "c3")]
        page_write(actor=wiki.system, page=page, change=PageChange(content="One.[^c1] Two.[^c2]"), claims=claims)
        assert list(PageClaim.objects.filter(page=page).values_list("anchor", flat=True)) == ["c1", "c2"], "one has no mark in the text"
        page_change(actor=wiki.member.actor, page=page, change=PageChange(content="Two, said otherwise.[^c2]"))
        assert list(PageClaim.objects.filter(page=page).values_list("anchor", "state")) == [("c2", "current")]
    assert wiki.page("pump")["source_refs"] == [str(document.uid)] and wiki.page("pump")["chunk_refs"] == [str(chunk.uid)]
    shown = wiki.member.client.get(f"/s/{wiki.space.pk}/bases/{wiki.wiki.uid}/wiki/pages/{page.uid}").content.decode()
    assert f"?chunk={chunk.uid}#here" in shown and 'href="#claim-1"' in shown


def test_every_act_is_in_the_activity_of_the_base(wiki: WikiWorld) -> None:
    with space_scope(wiki.space.pk):
        page = by_run(wiki)
        page_change(actor=wiki.member.actor, page=page, change=PageChange(content="two"), note="why")
        page_delete(actor=wiki.member.actor, page=page)
        rows = list(Activity.objects.filter(scope_id=wiki.wiki.uid, action="wiki.content_changed").order_by("pk"))
    assert [row.details["action"] for row in rows] == ["ingest", "manual_edit", "manual_delete"]
    assert (rows[1].target_type, rows[1].details["target_slug"], rows[1].details["note"]) == ("wiki_page", "pump", "why")
    assert rows[1].details["changes"] == {"content": {"before": "one", "after": "two"}}
