"""The sources tab: four steps to a source, what the list says of it, decisions, and what members see."""

from __future__ import annotations

import re
from typing import Any

from apps.common.scope import space_scope, unscoped
from apps.sources.models import DataSource
from apps.sources.plugins.protocol import SourceError
from tests.sources.conftest import Desk
from tests.support import scripted


def _tab(desk: Desk) -> str:
    return f"/s/{desk.world.space.pk}/bases/{desk.world.base.uid}/sources"


def _page(desk: Desk, source: DataSource, step: str) -> str:
    return f"/s/{desk.world.space.pk}/sources/{source.uid}/{step}"


def _post(person: Any, path: str, data: dict[str, Any]) -> Any:
    return person.client.post(path, data, headers={"Accept-Language": "en"})


def _text(person: Any, path: str) -> str:
    answer = person.client.get(path, headers={"Accept-Language": "en"})
    assert answer.status_code == 200, (path, answer.status_code)
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_four_steps_to_a_source(desk: Desk) -> None:
    admin, tab = desk.world.admin, _tab(desk)
    desk.shelf.put("a1", "A one", "Text.", folder="A")
    desk.shelf.put("b1", "B one", "More text.", folder="B")
    assert "Scripted" in _text(admin, f"{tab}/new")
    connect = f"{tab}/new/{scripted.TYPE}"
    refused = _post(admin, connect, {"name": "My notes", "api_key": "no", "shelf": desk.name})
    page = refused.content.decode()
    assert refused.status_code == 422 and "The source does not accept the credentials" in page
    assert 'value="My notes"' in page and f'value="{desk.name}"' in page and 'value="no"' not in page
    lacking = _post(admin, connect, {"shelf": desk.name})
    assert re.search(r'id="f-api_key"[^>]*aria-invalid="true"', lacking.content.decode())
    with unscoped("test look"):
        assert DataSource.objects.count() == 0

    made = _post(admin, connect, {"name": "My notes", "api_key": desk.shelf.key, "shelf": desk.name})
    with unscoped("test look"):
        source = DataSource.objects.get()
    assert (made.status_code, made.headers["Location"]) == (302, _page(desk, source, "scope"))
    assert (source.status, source.is_draft, source.next_run_at) == ("paused", True, None)
    assert "Not set up yet" in _text(admin, tab)

    scope = _text(admin, _page(desk, source, "scope"))
    assert "A folder" in scope and "A one" not in scope
    level = _text(admin, _page(desk, source, "scope/parts") + "?parent=A")
    assert "A one" in level
    chosen = _post(admin, _page(desk, source, "scope"), {"which": "chosen", "resource_ids": ["a1"]})
    assert chosen.headers["Location"] == _page(desk, source, "schedule")
    assert "A one" in _text(admin, _page(desk, source, "scope")), "what is chosen is shown where it lies"

    wrong = _post(admin, _page(desk, source, "schedule"), _schedule(every="cron", cron="now and then"))
    assert wrong.status_code == 422 and re.search(r'id="f-cron"[^>]*aria-invalid="true"', wrong.content.decode())
    done = _post(admin, _page(desk, source, "schedule"), _schedule(every="weekly", at="06:45", day="5", then="sync"))
    assert done.headers["Location"] == tab
    with unscoped("test look"):
        source = DataSource.objects.get()
    assert (source.status, source.is_draft, source.schedule, source.time_zone) == ("active", False, "0 45 6 * * 5", "Asia/Shanghai")
    assert (source.resource_ids, source.deletion_policy, source.conflict_strategy) == (["a1"], "hold", "skip")
    listed = _text(admin, tab)
    assert "Waiting" in listed and "Every Friday at 06:45" in listed and "Stop" in listed


def _schedule(**values: Any) -> dict[str, Any]:
    return {
        "every": "six", "at": "02:00", "day": "1", "cron": "", "time_zone": "Asia/Shanghai", "sync_mode": "incremental",
        "conflict_strategy": "skip", "deletion_policy": "hold", "log_retention_days": "14", **values,
    }  # fmt: skip


def test_trying_says_whether_it_answers_and_stores_nothing(desk: Desk) -> None:
    path = f"{_tab(desk)}/new/{scripted.TYPE}/try"
    right = _post(desk.world.admin, path, {"api_key": desk.shelf.key, "shelf": desk.name})
    wrong = _post(desk.world.admin, path, {"api_key": "no", "shelf": desk.name})
    assert "The source answers." in right.content.decode()
    assert "does not accept the credentials" in wrong.content.decode()
    with unscoped("test look"):
        assert DataSource.objects.count() == 0


def test_secrets_stay_where_they_are_until_others_are_entered(desk: Desk) -> None:
    source = desk.make()
    page = desk.world.admin.client.get(_page(desk, source, "connection"), headers={"Accept-Language": "en"}).content.decode()
    assert desk.shelf.key not in page and "Stored and never shown" in page
    kept = _post(desk.world.admin, _page(desk, source, "connection"), {"name": "Renamed", "shelf": desk.name})
    assert (kept.status_code, desk.source.name, desk.source.sealed) == (302, "Renamed", source.sealed)
    desk.shelf.key = "fresh"
    changed = _post(desk.world.admin, _page(desk, source, "connection"), {"name": "Renamed", "shelf": desk.name, "api_key": "fresh"})
    assert changed.status_code == 302 and desk.source.sealed != source.sealed
    desk.shelf.fill(1)
    assert desk.sync().outcome == "success"


def test_the_list_tells_how_each_one_stands(desk: Desk) -> None:
    source = desk.make(schedule="0 0 * * * *")
    desk.shelf.fill(3)
    desk.shelf.fetch_errors["id-3"] = SourceError("unavailable", "502 Bad Gateway", passing=True)
    desk.sync()
    admin, tab = desk.world.admin, _tab(desk)
    listed = _text(admin, tab)
    assert "Active" in listed and "2 new · 1 failed" in listed and "Every hour" in listed
    history = _text(admin, _page(desk, source, "history"))
    assert "In part" in history and "Note 3" in history and "The source cannot be reached. The next sync tries again." in history
    assert "502 Bad Gateway" in history
    desk.shelf.key = "another"
    desk.sync()
    assert "Error the source does not accept the credentials" in _text(admin, tab).replace("The source", "the source")
    assert _post(admin, _page(desk, source, "pause"), {}).status_code == 302 and "Paused" in _text(admin, tab)
    assert _post(admin, _page(desk, source, "resume"), {}).status_code == 302 and "Active" in _text(admin, tab)


def test_held_documents_are_decided_about_one_by_one_and_all_together(desk: Desk) -> None:
    source = desk.make(deletion_policy="hold")
    desk.shelf.fill(5)
    desk.sync()
    desk.shelf.drop("id-1", "id-2", "id-3", "id-4")
    desk.sync()
    admin, path = desk.world.admin, _page(desk, source, "held")
    assert "4 to decide about" in _text(admin, _tab(desk)) and "Note 4" in _text(admin, path)
    ids = {title: row.pk for title, row in ((row.title, row) for row in desk.items().values())}
    _post(admin, path, {"decision": "delete", "ids": [ids["Note 1"]]})
    _post(admin, path, {"decision": "keep", "ids": [ids["Note 2"]]})
    assert sorted(desk.documents()) == ["Note 2", "Note 3", "Note 4", "Note 5"]
    assert _post(admin, path, {"decision": "delete"}).status_code == 302 and len(desk.documents()) == 4, "nothing chosen, nothing done"
    _post(admin, path, {"decision": "delete", "all": "1"})
    assert sorted(desk.documents()) == ["Note 2", "Note 5"] and "Nothing to decide" in _text(admin, path)


def test_removing_asks_with_the_number_of_documents_that_stay(desk: Desk) -> None:
    source = desk.make()
    desk.shelf.fill(3)
    desk.sync()
    asked = _text(desk.world.admin, _page(desk, source, "delete"))
    assert "3 documents stay in this base." in asked
    _post(desk.world.admin, _page(desk, source, "delete"), {})
    assert "No sources yet" in _text(desk.world.admin, _tab(desk)) and len(desk.documents()) == 3


def test_members_see_and_are_told_why_they_do_not_change(desk: Desk) -> None:
    source = desk.make()
    desk.shelf.fill(1)
    desk.sync()
    listed = _text(desk.world.member, _tab(desk))
    assert "Only admins of the space add, change and sync data sources." in listed and "1 new" in listed
    assert "Sync now" not in listed and "Remove…" not in listed and "Add a source" not in listed
    assert "Succeeded" in _text(desk.world.member, _page(desk, source, "history"))
    assert _post(desk.world.member, _page(desk, source, "sync"), {}).status_code == 403
    assert desk.world.outsider.client.get(_tab(desk)).status_code == 404


def test_a_document_names_its_source_and_leads_to_the_original(desk: Desk) -> None:
    desk.make(deletion_policy="hold")
    desk.shelf.fill(3)
    desk.sync()
    document = desk.documents()["Note 1"]
    path = f"/s/{desk.world.space.pk}/documents/{document.uid}/details"
    page = desk.world.member.client.get(path, headers={"Accept-Language": "en"}).content.decode()
    assert 'href="https://source.example/id-1"' in page and "Last seen at the source" in page and "Notes" in page
    desk.shelf.drop("id-1")
    desk.sync()
    assert "Gone at the source; last seen" in _text(desk.world.member, path)


def test_a_list_takes_as_many_questions_for_many_sources_as_for_few(desk: Desk, django_assert_max_num_queries: Any) -> None:
    from apps.sources.selectors import source_list

    for number in range(3):
        desk.make(name=f"Source {number}")
        desk.start()
    with space_scope(desk.world.space.pk, "test"), django_assert_max_num_queries(5):
        assert len(source_list(actor=desk.actor, base=desk.world.base)) == 3


def test_moderators_see_how_sources_stand_and_may_act(desk: Desk) -> None:
    source = desk.make(schedule="0 0 * * * *")
    desk.shelf.fill(2)
    desk.sync()
    user = desk.world.outsider.user
    user.is_staff = True
    user.save()
    listed = _text(desk.world.outsider, "/admin/sources/datasource/")
    assert "Notes" in listed and "Handbook" in listed
    shown = desk.world.outsider.client.get(f"/admin/sources/datasource/{source.pk}/change/", headers={"Accept-Language": "en"})
    assert shown.status_code == 200 and "stored, encrypted" in shown.content.decode() and desk.shelf.key not in shown.content.decode()
    act = f"/admin/do/source/{source.pk}/pause/"
    assert desk.world.outsider.client.post(act).status_code == 302 and desk.source.status == "paused"
    runs = _text(desk.world.outsider, "/admin/runs/?kind=sync")
    assert "Sync a data source" in runs and "Notes" in runs


def test_rows_and_the_reader_mark_what_a_source_brought(desk: Desk, django_assert_max_num_queries: Any) -> None:
    desk.make(deletion_policy="hold")
    desk.shelf.fill(2)
    desk.sync()
    own = desk.world.member.upload(desk.world.base, b"own text", name="own.txt").json()["data"]["id"]
    mark = f'<a class="doc__origin" href="{_tab(desk)}" data-tooltip="From the data source “Notes”"'

    def page(path: str) -> str:
        return str(desk.world.member.client.get(path, headers={"Accept-Language": "en"}).content.decode())

    base, space = desk.world.base.uid, desk.world.space.pk
    assert (page(f"/s/{space}/bases/{base}/").count(mark), page(f"/s/{space}/bases/{base}/?view=cards").count(mark)) == (2, 2)
    assert mark in page(f"/s/{space}/documents/{desk.documents()['Note 1'].uid}/")
    assert "doc__origin" not in page(f"/s/{space}/documents/{own}/")
    desk.shelf.drop("id-1")
    desk.sync()
    assert "Gone at the data source “Notes”" in page(f"/s/{space}/documents/{desk.documents()['Note 1'].uid}/")
    desk.world.admin.delete(f"datasource/{desk.source.uid}")
    assert "doc__origin" not in page(f"/s/{space}/bases/{base}/"), "of a source that is gone there is nothing to open"


def test_every_kind_has_an_icon_of_the_set() -> None:
    import json

    from apps.portal.sources import ICONS, icon_of
    from apps.sources.plugins.protocol import connectors
    from tests.support.stack import ROOT

    assert set(json.loads((ROOT / "static/src/icons.json").read_text("utf-8"))) >= ICONS
    metas = [connectors.get(name).meta for name in connectors.names() if name != scripted.TYPE]
    assert [meta.type for meta in metas if icon_of(meta) != meta.icon] == []
    assert [meta.type for meta in metas if meta.icon == "source"] == ["rss"]
