"""Locked files: a one-off password opens them, is told apart when it is wrong, and is nowhere once it was used."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers
from django.db import connection
from django.utils import timezone

from apps.common.errors import InvalidInput
from apps.common.jobs.claims import claim_next
from apps.common.jobs.registry import job_kinds
from apps.common.scope import space_scope, unscoped
from apps.ingestion import passwords, services
from apps.ingestion.models import FilePassword, IngestionRun
from apps.ingestion.selectors import document_trace
from apps.ingestion.tasks import forget_passwords
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import document_cancel, document_reparse, documents_delete, documents_reparse
from apps.retrieval.search import Options, Scope, search
from tests.ingestion import builders as make
from tests.support.kit import Kit, work_all
from tests.support.locked import encrypted_office, locked_pdf

SECRET = "Zq-Geheim-密码-4711"
TEXT = "内部资料 K-0001"


def reparse(kit: Kit, document: Document, **more: Any) -> Document:
    with space_scope(kit.space.pk):
        return document_reparse(actor=kit.actor, document=kit.reload(document), **more)


def state(kit: Kit, document: Document) -> tuple[str, str]:
    row = kit.reload(document)
    return row.parse_status, row.reason


def found(kit: Kit, words: str) -> list[Any]:
    with space_scope(kit.space.pk):
        return search(actor=kit.actor, query=words, scope=Scope(kb_uids=(kit.base.uid,)), options=Options(mode="text")).hits


def kept() -> int:
    with unscoped("tests look at every space"):
        return FilePassword.objects.count()


def whole_database() -> str:
    """Every row of every table as text."""
    with unscoped("a dump"):
        rows = [row for model in apps.get_models() if model._meta.managed for row in model._base_manager.all()]
    return json.dumps(serializers.serialize("python", rows), default=str, ensure_ascii=False)


@pytest.fixture
def locked(kit: Kit) -> Document:
    document = kit.upload("secret.pdf", locked_pdf(TEXT, "第二页 K-0002", password=SECRET))
    work_all(services.PARSE)
    return kit.reload(document)


def test_a_locked_pdf_says_so_and_its_original_stays(kit: Kit, locked: Document, own_store: Path) -> None:
    assert (locked.parse_status, locked.reason, locked.chunk_count) == ("failed", "locked", 0)
    assert (own_store / "files" / locked.storage_path).is_file()


def test_the_password_opens_it_once_and_is_nowhere_afterwards(
    kit: Kit, locked: Document, own_store: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    reparse(kit, locked, password=SECRET)
    assert kept() == 1
    dump = whole_database()
    assert "secret.pdf" in dump and "Zq-Geheim" not in dump  # sealed while it waits
    work_all()
    assert state(kit, locked) == ("completed", "")
    assert [hit.document.pk for hit in found(kit, "K-0001")] == [locked.pk]
    assert kept() == 0
    out, err = capfd.readouterr()
    assert not [place for place in (whole_database(), caplog.text, out, err) if "Zq-Geheim" in place]
    connection.close()
    sign = b"Zq-Geheim"
    assert [path for path in own_store.rglob("*") if path.is_file() and sign in path.read_bytes()] == []


def test_a_wrong_password_says_so_and_the_right_one_still_works(kit: Kit, locked: Document) -> None:
    reparse(kit, locked, password="not this one")
    work_all()
    row = kit.reload(locked)
    assert (row.parse_status, row.reason, kept()) == ("failed", "wrong_password", 0)
    assert "not this one" not in whole_database()
    reparse(kit, locked, password=SECRET)
    work_all()
    assert state(kit, locked) == ("completed", "")


@pytest.mark.parametrize(("password", "revision"), [("pässwörd", 4), ("pass", 3), ("安全生产2026", 6), (" spaces kept ", 6)])
def test_passwords_of_every_revision_and_alphabet(kit: Kit, password: str, revision: int) -> None:
    document = kit.upload("a.pdf", locked_pdf(TEXT, password=password, revision=revision))
    work_all(services.PARSE)
    assert state(kit, document) == ("failed", "locked")
    reparse(kit, document, password=password)
    work_all(services.PARSE)
    assert found(kit, "K-0001")[0].document.pk == document.pk


@pytest.mark.parametrize("revision", [3, 4, 6])
def test_an_owner_s_password_and_restrictions_keep_nobody_from_reading(kit: Kit, revision: int) -> None:
    document = kit.upload("limited.pdf", locked_pdf(TEXT, password="", owner="boss", revision=revision))
    work_all()
    row = kit.reload(document)
    assert (row.parse_status, row.reason, row.warnings) == ("completed", "", [])
    assert found(kit, "K-0001")[0].document.pk == document.pk


def test_the_right_password_and_a_damaged_page(kit: Kit) -> None:
    document = kit.upload("a.pdf", locked_pdf("第一页 K-0001", "第二页 K-0002", "第三页 K-0003", password=SECRET, damaged=2))
    work_all(services.PARSE)
    reparse(kit, document, password=SECRET)
    work_all()
    row = kit.reload(document)
    assert (row.parse_status, row.reason) == ("completed", "")
    assert {w["code"]: w["position"].get("page") for w in row.warnings} == {"opened_with_password": None, "page_damaged": 2}
    with space_scope(kit.space.pk):
        pages = {p["page"] for c in Chunk.objects.filter(document=document, chunk_type="text") for p in c.positions}
        trace = document_trace(actor=kit.actor, document=row)
    assert pages == {1, 3}
    assert found(kit, "K-0001") and found(kit, "K-0003") and not [h for h in found(kit, "K-0002") if "K-0002" in h.chunk.content]
    reading = next(node for node in trace["trace"]["children"] if node["name"] == "docreader")
    assert {"code": "page_damaged", "message": "page 2 is damaged and was left out", "count": 1, "position": {"page": 2}} in reading[
        "output"
    ]["warnings"]


def test_parsing_again_without_the_password_loses_nothing(kit: Kit, locked: Document) -> None:
    reparse(kit, locked, password=SECRET)
    work_all()
    with pytest.raises(InvalidInput) as caught:
        reparse(kit, locked)
    assert (caught.value.code, caught.value.field) == ("password_needed", "password")
    other = kit.upload("other.md", "# Other\n\nWords.\n")
    work_all()
    with space_scope(kit.space.pk), pytest.raises(InvalidInput):
        documents_reparse(actor=kit.actor, base=kit.base, documents=[other, locked])
    assert state(kit, locked) == state(kit, other) == ("completed", "")
    assert found(kit, "K-0001")


def test_only_pdf_files_take_a_password(kit: Kit) -> None:
    document = kit.upload("table.xlsx", encrypted_office())
    work_all()
    assert state(kit, document) == ("failed", "locked")
    with pytest.raises(InvalidInput) as caught:
        reparse(kit, document, password="x")
    assert (caught.value.code, caught.value.field) == ("password_unsupported", "password")
    assert kept() == 0


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.doc", "a.xls"])
def test_encrypted_office_files_are_locked_whatever_their_name(kit: Kit, name: str) -> None:
    document = kit.upload(name, encrypted_office())
    work_all()
    assert state(kit, document) == ("failed", "locked")


def test_the_password_survives_a_worker_that_was_killed(kit: Kit, locked: Document) -> None:
    reparse(kit, locked, password=SECRET)
    assert claim_next(job_kinds.get(services.PARSE)) is not None  # a worker took it and was never heard of again
    with unscoped("time passes"):
        IngestionRun.objects.filter(state="running").update(lease_until=timezone.now() - timedelta(seconds=1))
    work_all()
    assert (state(kit, locked), kept()) == (("completed", ""), 0)


@pytest.mark.ocr
def test_a_locked_scan_is_opened_by_ocr_as_well(kit: Kit) -> None:
    document = kit.upload("scan.pdf", locked_pdf(password=SECRET, data=make.scan_pdf(1, "DEVICE TH-7781")))
    work_all(services.PARSE)
    reparse(kit, document, password=SECRET)
    work_all(services.PARSE)
    assert kept() == 1  # handed on to OCR
    work_all()
    assert (state(kit, document), kept()) == (("completed", ""), 0)
    assert found(kit, "TH-7781")[0].chunk.positions[0]["page"] == 1


@pytest.mark.parametrize("ending", ["stopped", "deleted", "parsed again", "too old", "another key"])
def test_a_password_that_was_not_used_is_dropped(kit: Kit, locked: Document, ending: str, settings: Any) -> None:
    reparse(kit, locked, password=SECRET)
    assert kept() == 1
    with space_scope(kit.space.pk):
        if ending == "stopped":
            document_cancel(actor=kit.actor, document=kit.reload(locked))
        elif ending == "deleted":
            documents_delete(actor=kit.actor, base=kit.base, documents=[kit.reload(locked)])
        elif ending == "parsed again":
            reparse(kit, locked, process_config={})
        elif ending == "too old":
            FilePassword.objects.update(created_at=timezone.now() - passwords.MAX_AGE)
        else:
            settings.SECRET_KEY = "another key of another deployment, long enough"
    if ending in ("stopped", "deleted", "parsed again"):
        assert kept() == 0
        return
    work_all()
    assert (state(kit, locked), kept()) == (("failed", "locked"), 0)


def test_the_schedule_drops_what_outlived_its_run_or_its_time(kit: Kit, locked: Document) -> None:
    reparse(kit, locked, password=SECRET)
    forget_passwords()
    assert kept() == 1  # its run waits
    with unscoped("time passes"):
        FilePassword.objects.update(created_at=timezone.now() - passwords.MAX_AGE)
    forget_passwords()
    assert kept() == 0
    with unscoped("a run that ended some other way"):
        run = IngestionRun.objects.filter(state="queued").get()
        passwords.keep(run, SECRET)
        IngestionRun.objects.filter(pk=run.pk).update(state="done")
    forget_passwords()
    assert kept() == 0
