"""What `/metrics` says, to whom, and that it says nothing of anybody's contents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from apps.common.jobs.models import RunState
from apps.common.models import WorkerBeat
from apps.common.scope import unscoped
from apps.ingestion.models import IngestionRun
from apps.operations import metrics
from tests.inventory.source import ROOT
from tests.support.kit import Kit, make_kit, work_all

TOKEN = "a-token-of-the-test-run"
#: made by the process collector, which exists on Linux only
OF_THE_PROCESS = "process_"


@pytest.fixture(autouse=True)
def opened(settings: Any) -> Iterator[None]:
    settings.METRICS_TOKEN = TOKEN
    _forget()
    yield
    _forget()


def _forget() -> None:
    for part in metrics.collector.parts:
        part.forget()


def ask(token: str = TOKEN, **headers: str) -> Any:
    return Client().get("/metrics", headers={"Authorization": f"Bearer {token}", **headers})


def samples() -> dict[tuple[str, ...], float]:
    """{(name, label values...): value} of one scrape, nothing taken from before."""
    _forget()
    answer = ask()
    assert answer.status_code == 200, answer.content
    families = text_string_to_metric_families(answer.content.decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


@pytest.fixture
def kit(db: None) -> Kit:
    return make_kit("Secret Org")


def test_without_a_token_in_the_settings_there_is_no_such_page(settings: Any, db: None) -> None:
    settings.METRICS_TOKEN = ""
    assert ask("").status_code == 404
    assert ask().status_code == 404


@pytest.mark.parametrize("authorization", ["", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer тест"])
def test_only_the_token_opens_it(db: None, authorization: str) -> None:
    answer = Client().get("/metrics", headers={"Authorization": authorization} if authorization else {})
    assert (answer.status_code, answer.content, answer["WWW-Authenticate"]) == (401, b"", 'Bearer realm="metrics"')


def test_it_is_only_read(db: None) -> None:
    assert Client().post("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 405
    answer = ask()
    assert answer["Content-Type"].startswith("text/plain; version=")
    assert answer["Cache-Control"] == "no-store"


def test_the_rows_are_counted(kit: Kit) -> None:
    first = kit.upload("a.md", "# One\n\nFirst text.\n")
    second = kit.upload("b.md", "# Two\n\nSecond text.\n")
    with unscoped("a test sets times"):
        IngestionRun.objects.filter(document=first).update(created_at=timezone.now() - timedelta(seconds=90))
    found = samples()
    assert found["kb_jobs", "parse", "queued"] == 2
    assert 90 <= found["kb_jobs_oldest_waiting_seconds", "parse"] < 120
    assert found["kb_jobs_oldest_waiting_seconds", "cleanup"] == 0
    assert found["kb_documents", "pending"] == 2
    assert found["kb_storage_bytes",] == first.file_size + second.file_size
    work_all("parse")
    found = samples()
    assert found["kb_jobs", "parse", "queued"] == 0
    assert found["kb_documents", "finalizing"] == 2
    assert found["kb_jobs", "embed", "queued"] == 2


def test_failures_of_the_last_hour_are_counted_by_a_known_reason(kit: Kit) -> None:
    document = kit.upload("a.md", "# One\n\nFirst text.\n")
    now = timezone.now()
    with unscoped("a test makes rows"):
        IngestionRun.objects.all().delete()
        for reason, ago in (("timeout", 5), ("timeout", 50), ("timeout", 70), ("made up by somebody", 5)):
            IngestionRun.objects.create(
                space=kit.space,
                document=document,
                document_attempt=1,
                kind="parse",
                state=RunState.FAILED,
                reason=reason,
                finished_at=now - timedelta(minutes=ago),
            )
    found = samples()
    assert {key: value for key, value in found.items() if key[0] == "kb_jobs_failed_last_hour"} == {
        ("kb_jobs_failed_last_hour", "parse", "timeout"): 2,
        ("kb_jobs_failed_last_hour", "parse", "other"): 1,
    }


def test_the_living_are_counted(db: None) -> None:
    now = timezone.now()
    for name, queues, seen in (
        ("a:1", ["parse", "embed"], now),
        ("b:2", ["parse"], now),
        ("c:3", ["parse", "ocr"], now - timedelta(minutes=1)),
        ("schedule@a:4", ["schedule"], now),
    ):
        WorkerBeat.objects.create(name=name, queues=queues, started_at=now, seen_at=seen)
    found = samples()
    assert [found["kb_workers", queue] for queue in ("parse", "embed", "ocr")] == [2, 1, 0]
    assert found["kb_schedule_alive",] == 1
    WorkerBeat.objects.filter(name="schedule@a:4").delete()
    assert samples()["kb_schedule_alive",] == 0


def test_documents_the_index_lacks_are_seen(kit: Kit) -> None:
    document = kit.upload("a.md", "# One\n\nFirst text.\n")
    work_all("parse")
    before = samples()
    with unscoped("a test falls behind"):
        type(document).objects.filter(pk=document.pk).update(index_rev=1000)
    after = samples()
    risen = [after["kb_index_lag_documents", how] - before["kb_index_lag_documents", how] for how in ("missing", "stale", "orphaned")]
    assert risen == [0, 1, 0]


def test_requests_are_counted_by_route_and_never_by_path(world: Any) -> None:
    base = world.ids["home"]["kb_id"]
    before = samples()
    assert world.client("member").get(f"/api/v1/knowledge-bases/{base}").status_code == 200
    assert Client().get("/no/such/page-4711").status_code == 404
    after = samples()

    def rise(*key: str) -> float:
        return after.get(("kb_http_request_seconds_count", *key), 0) - before.get(("kb_http_request_seconds_count", *key), 0)

    assert rise("GET", "api:base", "2xx") == 1
    assert rise("GET", "unmatched", "4xx") == 1
    assert rise("GET", "metrics", "2xx") == 1


def test_searches_are_timed_by_leg(kit: Kit, world: Any) -> None:
    before = samples()
    body = {"query_text": "anything", "match_count": 3}
    assert world.client("member").post(f"/api/v1/knowledge-bases/{world.ids['home']['kb_id']}/hybrid-search", body).status_code == 200
    after = samples()
    risen = {key[1] for key in after if key[0] == "kb_search_leg_seconds_count" and after[key] > before.get(key, 0)}
    assert "words" in risen
    assert sum(value for key, value in after.items() if key[0] == "kb_search_seconds_count") == 1 + sum(
        value for key, value in before.items() if key[0] == "kb_search_seconds_count"
    )


def test_nothing_of_anybody_is_told(kit: Kit, world: Any) -> None:
    kit.upload("vertraulich-4711.md", "# Geheimnis\n\nNobody may read this: XYZZY.\n")
    work_all("parse")
    text = ask().content.decode()
    for secret in (
        "Secret Org",
        "vertraulich",
        "Geheimnis",
        "XYZZY",
        "Home",
        "Foreign",
        "member@example.com",
        str(kit.base.uid),
        TOKEN,
    ):
        assert secret not in text


def test_the_cost_does_not_rise_with_the_rows(kit: Kit) -> None:
    def queries() -> int:
        _forget()
        with CaptureQueriesContext(connection) as caught:
            assert ask().status_code == 200
        return len(caught)

    kit.upload("first.md", "# First\n\ntext\n")
    few = queries()
    for number in range(10):
        kit.upload(f"n{number}.md", f"# N {number}\n\ntext {number}\n")
    make_kit("Another").upload("x.md", "# X\n\nother text\n")
    assert queries() == few
    with CaptureQueriesContext(connection) as caught:
        ask()
    assert len(caught) == 0, "what was read a moment ago is good enough"


def test_a_part_that_fails_is_named_and_the_rest_is_told(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> list[Any]:
        raise DatabaseError("no")

    monkeypatch.setattr(metrics.collector.parts[0], "_collect", broken)
    found = samples()
    assert (found["kb_scrape_ok", "rows"], found["kb_scrape_ok", "index"]) == (0, 1)
    assert found["kb_disk_free_bytes",] > 0
    assert not any(key[0] == "kb_documents" for key in found)


def families(db: None) -> set[str]:
    _forget()
    return {family.name for family in text_string_to_metric_families(ask().content.decode())}


def test_the_page_for_operators_lists_exactly_these_metrics(db: None) -> None:
    shown = re.search(r"<!-- metrics -->\n(.*?)\n<!-- end of metrics -->", (ROOT / "docs/operations.md").read_text(encoding="utf-8"), re.S)
    assert shown is not None
    documented = set(re.findall(r"^\| `([a-z_0-9]+)`", shown[1], re.M))
    assert documented == {name for name in families(db) if not name.startswith(OF_THE_PROCESS)}


def test_the_rules_for_alerts_name_metrics_and_labels_that_exist(db: None) -> None:
    rules = yaml.safe_load((ROOT / "docs/alerts.yml").read_text(encoding="utf-8"))
    expressions = [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    assert len(expressions) == len({rule["alert"] for group in rules["groups"] for rule in group["rules"]}) > 8
    known = families(db)
    named = {name for expression in expressions for name in re.findall(r"\bkb_[a-z_0-9]+", expression)}
    assert {re.sub(r"_(count|sum|bucket)$", "", name) for name in named} - known == set()
    assert len(named) >= 9
