"""One suite over every connector: what it lists, how it remembers, what it says when something is wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from apps.sources import words
from apps.sources.plugins.protocol import SourceError, connectors
from tests.support.hosted import benches, folders
from tests.support.hosted.benches import TEXTS, Bench

BENCHES: tuple[type[Bench], ...] = (
    benches.NotionBench,
    benches.YuqueBench,
    benches.CloudBench,
    benches.ServerBench,
    benches.FeishuBench,
    benches.LarkBench,
    benches.FeishuDriveBench,
    benches.LarkDriveBench,
    benches.GitLabBench,
    folders.FeedBench,
    folders.SiteBench,
    folders.FolderBench,
    folders.DavBench,
    folders.BucketBench,
    folders.GitBench,
    folders.GitSocketBench,
)
LIMITED = ("rate_limited", "feishu_rate_limited")
REFUSED = ("auth", "feishu_auth_or_permission")


@pytest.fixture(params=BENCHES, ids=lambda made: made.named or made.type)
def bench(request: pytest.FixtureRequest, settings: Any) -> Iterator[Bench]:
    settings.FETCH_ALLOW = ["127.0.0.1/32"]
    made = request.param()
    if isinstance(made, folders.FolderBench):
        settings.SOURCE_FOLDERS = [str(made.root)]
    yield made
    made.close()


def test_every_connector_is_held_to_the_contract() -> None:
    assert {made.type for made in BENCHES} == set(connectors.names())


def test_what_connectors_are_called_and_need() -> None:
    found = {
        name: (connector.meta.priority, connector.meta.auth_type, {i.name for i in connector.meta.inputs if i.where == "credentials"})
        for name, connector in connectors
    }
    feishu = (0, "oauth2", {"app_id", "app_secret", "base_url"})
    assert found == {
        "feishu": feishu, "lark": feishu, "feishu_drive": feishu, "lark_drive": feishu,
        "notion": (1, "api_key", {"api_key"}),
        "confluence": (2, "api_key", {"base_url", "username", "api_token"}),
        "yuque": (3, "api_key", {"api_token", "base_url"}),
        "gitlab": (8, "token", {"base_url", "access_token"}),
        "git": (8, "token", {"username", "access_token"}),
        "web_crawler": (9, "none", set()),
        "rss": (12, "custom", {"auth_headers"}),
        "s3": (13, "api_key", {"access_key_id", "secret_access_key", "session_token"}),
        "webdav": (14, "password", {"username", "password"}),
        "local_folder": (16, "none", set()),
    }  # fmt: skip
    for name, connector in connectors:
        assert connector.meta.type == name
        assert all(
            given.kind == "secret" for given in connector.meta.inputs if given.name in ("api_key", "app_secret", "access_token", "password")
        )


def test_a_first_listing_names_everything_and_fetches_it(bench: Bench) -> None:
    bench.connector.check(bench.link())

    found = bench.run()

    assert [sum(text in own for own in found.texts.values()) for text in TEXTS.values()] == [1, 1, 1]
    start = 1 if bench.type == "web_crawler" else 0  # the start page is one too
    assert len(found.items) == 3 + start
    assert found.faults == []
    assert found.whole is not (bench.keeps or bench.type == "notion")
    assert all(item.title and item.external_id for item in found.items.values())
    assert all("." in name and "/" not in name for name in found.names.values())


def test_an_unchanged_source_is_listed_with_equal_fingerprints(bench: Bench) -> None:
    first = bench.run()
    second = bench.run()
    later = bench.run(first.cursor)

    assert second.fingerprints == first.fingerprints
    assert {key: first.fingerprints[key] for key in later.items} == later.fingerprints
    assert (later.deleted, later.faults) == (set(), [])


def test_a_change_shows_in_the_fingerprint_of_one_item(bench: Bench) -> None:
    first = bench.run()
    changed = first.id_of(TEXTS["beta"])
    bench.write("beta", "传感器每季度校准一次。")

    later = bench.run(first.cursor)

    assert {key for key, mark in later.fingerprints.items() if mark != first.fingerprints.get(key)} == {changed}
    assert "传感器每季度校准一次。" in later.texts[changed]
    assert later.deleted == set()


def test_a_rename_keeps_the_id(bench: Bench) -> None:
    first = bench.run()
    renamed = first.id_of(TEXTS["alpha"])
    title = bench.retitle("alpha")

    later = bench.run(first.cursor)

    assert later.items[renamed].title == title
    assert TEXTS["alpha"] in later.texts[renamed]
    assert set(later.items) == set(first.items)
    assert later.deleted == set()
    again = bench.run(later.cursor)
    assert {key: later.fingerprints[key] for key in again.items} == again.fingerprints


def test_what_is_deleted_is_missed_or_said(bench: Bench) -> None:
    first = bench.run()
    gone = first.id_of(TEXTS["gamma"])
    bench.remove("gamma")

    later = bench.run(first.cursor)

    assert gone not in later.items
    if bench.keeps:
        assert (later.whole, later.deleted) == (False, set())
    elif bench.says_deleted:
        assert later.deleted == {gone}
    else:
        assert (later.whole, later.deleted) == (True, set())


def test_what_comes_back_has_its_old_id(bench: Bench) -> None:
    first = bench.run()
    old = first.id_of(TEXTS["gamma"])
    bench.remove("gamma")
    second = bench.run(first.cursor)
    bench.write("gamma", TEXTS["gamma"])

    third = bench.run(second.cursor)

    assert third.id_of(TEXTS["gamma"]) == old


def test_a_part_that_fails_is_a_fault_and_nothing_has_vanished(bench: Bench) -> None:
    if not bench.has_parts:
        pytest.skip(f"{bench.type} is one part")
    first = bench.run()
    bench.break_part()

    later = bench.run()

    assert len(later.faults) == 1
    assert later.faults[0].code in words.WORDS
    assert (later.whole, later.deleted) == (False, set())
    assert set(later.items) >= {first.id_of(TEXTS["alpha"]), first.id_of(TEXTS["beta"])}


def test_a_source_that_fails_altogether_raises(bench: Bench) -> None:
    if not bench.speaks_http:
        pytest.skip("no HTTP")
    first = bench.run()
    bench.server.gate.answer(503)

    with pytest.raises(SourceError) as caught:
        bench.run(first.cursor)

    assert caught.value.code in ("unavailable", "feishu_server_unavailable")
    assert caught.value.passing
    assert bench.waited, "what passes by itself is tried again after a pause"


def test_a_listing_that_was_cut_goes_on_from_its_cursor(bench: Bench) -> None:
    everything = bench.run()
    link = bench.link()
    with link.web:
        pages = bench.connector.listing(link, None)
        first = next(pages)
        pages.close()  # type: ignore[attr-defined]

    rest = bench.run(first.cursor)

    assert {item.external_id for item in first.items} | set(rest.items) == set(everything.items)


def test_wrong_credentials_are_said_as_such_and_never_shown(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    if not bench.has_credentials:
        pytest.skip("no credentials")
    caplog.set_level(logging.DEBUG)
    wrong = bench.wrong()

    with pytest.raises(SourceError) as caught:
        bench.connector.check(bench.link(wrong))

    assert caught.value.code in REFUSED
    secret = next(value for name, value in wrong.items() if "77" in value).rpartition(" ")[2]
    said = f"{caught.value} {caught.value.detail} {caught.value.params} {caplog.text}"
    assert secret not in said
    assert not caught.value.passing


def test_missing_credentials_are_named(bench: Bench) -> None:
    if not bench.has_credentials or bench.type in ("rss", "git", "webdav", "s3"):
        pytest.skip("works without credentials where the source does")
    for needed in (given.name for given in bench.connector.meta.inputs if given.where == "credentials" and given.required):
        with pytest.raises(SourceError) as caught:
            bench.connector.check(bench.link({name: value for name, value in bench.credentials().items() if name != needed}))
        assert (caught.value.code, caught.value.field) in (("auth", needed), ("bad_settings", needed))


def test_no_secret_shows_in_what_a_failing_source_echoes(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    if not bench.has_credentials:
        pytest.skip("no credentials")
    caplog.set_level(logging.DEBUG)
    secrets = [
        value.rpartition(" ")[2]
        for name, value in bench.credentials().items()
        if name not in ("base_url", "username", "app_id", "access_key_id")
    ]
    bench.server.gate.answer(400, body={"code": 1, "msg": " ".join(secrets), "message": " ".join(secrets), "error": " ".join(secrets)})

    with pytest.raises(SourceError) as caught:
        bench.connector.check(bench.link())

    said = f"{caught.value} {caught.value.detail} {caught.value.params} {caplog.text}"
    assert [secret for secret in secrets if secret in said] == []


def test_a_long_limit_ends_the_run_with_what_was_asked_for(bench: Bench) -> None:
    if not bench.speaks_http:
        pytest.skip("no HTTP")
    bench.server.gate.answer(429, Retry_After="120")

    with pytest.raises(SourceError) as caught:
        bench.run()

    assert caught.value.code in LIMITED
    assert (caught.value.retry_after_s, caught.value.passing, bench.waited) == (120.0, True, [])


def test_a_short_limit_is_waited_for(bench: Bench) -> None:
    if not bench.speaks_http:
        pytest.skip("no HTTP")
    bench.server.gate.answer(429, times=2, Retry_After="3")

    found = bench.run()

    assert [sum(text in own for own in found.texts.values()) for text in TEXTS.values()] == [1, 1, 1]
    assert sum(bench.waited) >= 6.0
    assert found.faults == []


def test_a_cancelled_run_stops(bench: Bench) -> None:
    class Cancelled(Exception):
        pass

    link = bench.link()
    calls = [0]

    def stop() -> None:
        calls[0] += 1
        if calls[0] > 2:
            raise Cancelled

    link.web._check = stop
    with pytest.raises(Cancelled):
        for page in bench.connector.listing(link, None):
            for item in page.items:
                bench.connector.fetch(link, item)
    link.web.close()


def test_settings_that_are_wrong_name_their_field(bench: Bench) -> None:
    for given in bench.connector.meta.inputs:
        if given.where != "settings":
            continue
        bad = {"number": "many", "choice": "neither", "url": "ftp://x", "lines": "a\n" * 1000, "text": "x" * 30_000}.get(given.kind)
        if bad is None:
            continue
        with pytest.raises(SourceError) as caught:
            bench.connector.clean({**bench.settings(), given.name: bad})
        assert (caught.value.code, caught.value.field) == ("bad_settings", given.name)


def test_settings_that_were_cleaned_stay_as_they_are(bench: Bench) -> None:
    once = bench.connector.clean({**bench.settings(), "unknown": "dropped"})

    assert bench.connector.clean(once) == once
    assert "unknown" not in once
