"""Files in a bucket: the whole way of a document, and what happens while the store is away. Nothing is lost, and everybody is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from apps.common import storage
from apps.common.errors import StoreUnavailable
from apps.common.jobs.models import RunState
from apps.common.probes import Probes
from apps.common.scope import space_scope, unscoped
from apps.common.supervisor import StartupError
from apps.ingestion import services, startup
from apps.ingestion.models import IngestionRun
from apps.ingestion.reconcile import reconcile
from apps.knowledge.downloads import document_original
from apps.knowledge.models import CleanupRun, Document
from apps.knowledge.reasons import reason_of
from apps.knowledge.services import documents_delete
from apps.portal.views import health
from apps.retrieval.engine import forget_engine
from kbportal import storages
from tests.support.filestore import KEYS, ObjectServer, fresh_prefix
from tests.support.kit import Kit, make_kit, work_all
from tests.support.redis import free_port

pytestmark = pytest.mark.django_db(transaction=True)

ACCESS = {"access_key": KEYS["KB_S3_ACCESS_KEY"], "secret_key": KEYS["KB_S3_SECRET_KEY"]}
TEXT = "# 手册\n\n传感器应每季度校准一次。故障代码 ERR-4021 表示过热。\n"


class Store:
    """Puts the portal's store in a bucket, takes it away, brings it back."""

    def __init__(self, settings: Any, server: ObjectServer) -> None:
        self._settings, self.server, self.prefix = settings, server, fresh_prefix()
        self.back()

    def _use(self, server: ObjectServer, **options: str) -> None:
        made = storages.objects(server.url(self.prefix, **options), **ACCESS)
        self._settings.STORAGES = {**self._settings.STORAGES, "default": made}

    def back(self) -> None:
        self._use(self.server)

    def away(self) -> None:
        self._use(ObjectServer(f"http://127.0.0.1:{free_port()}"), timeout_s="1")

    def without_bucket(self) -> None:
        self._use(self.server, bucket="no-such-bucket")

    def keys(self) -> list[str]:
        return self.server.keys(self.prefix)


@pytest.fixture
def store(settings: Any, tmp_path: Path, object_server: ObjectServer) -> Iterator[Store]:
    for name in ("index", "run", "tmp"):
        (tmp_path / name).mkdir()
    settings.DATA_DIR, settings.TEMP_DIR = tmp_path, tmp_path / "tmp"
    forget_engine()
    yield Store(settings, object_server)
    assert list(storage.temp_folder().iterdir()) == [], "temporary copies are gone"
    forget_engine()


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    with translation.override("en"):
        yield


@pytest.fixture
def kit(store: Store) -> Kit:
    return make_kit()


def due_at_once(model: Any) -> None:
    with unscoped("test: no waiting"):
        model.objects.filter(state=RunState.QUEUED).update(not_before=None)


def the_run(model: Any) -> Any:
    with unscoped("test look"):
        return model.objects.order_by("-pk").first()


def delete(kit: Kit, document: Document) -> None:
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[document])


def test_a_document_from_upload_to_the_last_byte_deleted(kit: Kit, store: Store, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    document = kit.upload("一份 ../手册.md", TEXT)
    assert store.keys() == [document.storage_path], "no name of a person's file is part of a key"
    assert document.storage_path == f"{kit.space.pk}/{kit.base.uid}/{document.uid}/{document.storage_path.split('/')[3]}/original"
    work_all()
    document = kit.reload(document)
    assert document.parse_status == "completed"
    assert store.keys() == sorted([document.storage_path, document.parsed_path])
    with space_scope(kit.space.pk):
        original = document_original(actor=kit.actor, document=document, action="document.download")
        assert (original.size_bytes, original.source.read()) == (len(TEXT.encode()), TEXT.encode())
    assert kit.upload("the same.md", TEXT).pk == document.pk
    assert len(store.keys()) == 2
    delete(kit, document)
    work_all()
    assert store.keys() == []
    assert reconcile(repair=False, young_s=0).total == 0


def test_reconcile_removes_old_strangers_and_names_what_is_missing(kit: Kit, store: Store) -> None:
    document = kit.upload("a.md", TEXT)
    work_all()
    document = kit.reload(document)
    client = store.server.client()
    client.put_object(Bucket="kbportal", Key=f"{store.prefix}/9/stray/original", Body=b"?")
    client.delete_object(Bucket="kbportal", Key=f"{store.prefix}/{document.storage_path}")
    young = reconcile(young_s=3600)
    assert (young.orphan_files, young.missing_files) == ([], [document.storage_path])
    assert reconcile(young_s=0).orphan_files == ["9/stray/original"]
    assert store.keys() == [document.parsed_path]


def test_an_upload_is_refused_with_a_sentence_and_leaves_no_row(kit: Kit, store: Store) -> None:
    store.away()
    with pytest.raises(StoreUnavailable) as caught:
        kit.upload("a.md", TEXT)
    assert caught.value.why == "unreachable" and caught.value.details["retry_after_s"] == 30
    with unscoped("test look"):
        assert Document.objects.count() == 0 and IngestionRun.objects.count() == 0
    store.back()
    assert store.keys() == []
    assert kit.upload("a.md", TEXT).parse_status == "pending"


def test_a_pass_waits_for_the_store_and_goes_on(kit: Kit, store: Store) -> None:
    document = kit.upload("a.md", TEXT)
    store.away()
    assert work_all(services.PARSE) == 1
    run = the_run(IngestionRun)
    assert (run.state, run.attempt, run.reason) == (RunState.QUEUED, 1, "storage_unavailable")
    assert "it cannot be reached" in run.error
    assert kit.reload(document).parse_status == "processing"
    store.back()
    due_at_once(IngestionRun)
    work_all()
    assert kit.reload(document).parse_status == "completed"


def test_a_store_that_stays_away_ends_with_its_reason(kit: Kit, store: Store) -> None:
    document = kit.upload("a.md", TEXT)
    store.without_bucket()
    for _attempt in range(StoreUnavailable.attempts):
        due_at_once(IngestionRun)
        assert work_all(services.PARSE) == 1
    document = kit.reload(document)
    assert (document.parse_status, document.reason) == ("failed", "storage_unavailable")
    assert reason_of("storage_unavailable").step == "reparse"
    store.back()
    assert store.keys() == [document.storage_path], "the original is kept"


def test_a_missing_original_is_not_tried_again(kit: Kit, store: Store) -> None:
    document = kit.upload("a.md", TEXT)
    storage.remove(document.storage_path)
    work_all()
    document = kit.reload(document)
    assert (document.parse_status, document.reason) == ("failed", "original_missing")


def test_a_deletion_is_finished_when_the_store_is_back(kit: Kit, store: Store, settings: Any) -> None:
    settings.TRASH_DAYS = 0
    document = kit.upload("a.md", TEXT)
    work_all()
    delete(kit, document)
    store.away()
    assert work_all("cleanup") == 1
    assert the_run(CleanupRun).state == RunState.QUEUED
    with unscoped("the run ended long ago"):
        CleanupRun.objects.update(state=RunState.FAILED, reason="storage_unavailable")
    store.back()
    assert len(store.keys()) == 2
    assert reconcile(repair=False).unfinished_deletions == [document.pk]
    assert reconcile().unfinished_deletions == [document.pk]
    assert reconcile(repair=False).unfinished_deletions == []
    work_all()
    assert store.keys() == []


def test_reconcile_calls_nothing_missing_while_the_store_is_away(kit: Kit, store: Store) -> None:
    kit.upload("a.md", TEXT)
    store.away()
    with pytest.raises(CommandError, match="Nothing was removed or called missing"):
        call_command("reconcile", "--check", stdout=StringIO())


@pytest.mark.parametrize(("state", "said"), [("back", "ok"), ("away", "failed: unreachable"), ("without_bucket", "failed: bucket_missing")])
def test_readiness_touches_the_bucket(store: Store, state: str, said: str) -> None:
    getattr(store, state)()
    assert Probes(deadline_s=60, keep_s=0).states({"files": health.CHECKS["files"]}) == {"files": said}


def test_a_wrong_setting_stops_the_start_and_an_outage_does_not(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    run: Callable[[], None] = lambda: startup.prepare(["web", "worker", "schedule"])  # noqa: E731
    store.without_bucket()
    with pytest.raises(StartupError, match="create the bucket or correct KB_STORAGE_URL"):
        run()
    store.away()
    caplog.set_level("WARNING")
    run()
    assert "uploads are refused until it answers" in caplog.text
