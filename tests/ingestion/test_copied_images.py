"""Pictures of a copied base: under handles and keys of their own, once, and readable; and beside another passage when theirs goes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.common import storage
from apps.common.jobs.claims import claim_next
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import space_scope, unscoped
from apps.ingestion import pipeline, services
from apps.ingestion.parsed import read_parsed
from apps.ingestion.plugins.protocol import Block, ParsedDocument
from apps.ingestion.reconcile import reconcile
from apps.knowledge import copying
from apps.knowledge.models import Chunk, CopyRun, Document, DocumentImage, KnowledgeBase
from apps.knowledge.rules.pictures import REFERENCE
from apps.knowledge.selectors.images import file_of
from apps.knowledge.services import base_copy, base_create, base_delete, chunks_delete, document_reparse, documents_delete
from tests.ingestion.test_images import images_of, markdown, png
from tests.support.kit import Kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)


def start(kit: Kit, target: KnowledgeBase | None = None) -> tuple[CopyRun, KnowledgeBase]:
    with space_scope(kit.space.pk):
        run = base_copy(actor=kit.actor, source=kit.base, target=target)
        return run, KnowledgeBase.objects.get(pk=run.target_ref)


def pictures(base: KnowledgeBase) -> list[DocumentImage]:
    with unscoped("tests look at every space"):
        rows = DocumentImage.objects.filter(kb=base, document__deleted_at__isnull=True)
        return list(rows.select_related("document", "chunk", "kb").order_by("document__file_name", "number"))


def stored(image: DocumentImage) -> bytes:
    with storage.read(image.storage_path) as opened:
        return bytes(opened.read())


def mentioned(image: DocumentImage) -> list[str]:
    return [entry[name] for entry in json.loads(image.chunk.image_info) for name in ("url", "original_url")]


def said(image: DocumentImage) -> list[Chunk]:
    """The passages that say what is known of a picture."""
    with unscoped("tests look at every space"):
        rows = Chunk.objects.filter(document=image.document, chunk_type__in=[Chunk.Type.IMAGE_OCR, Chunk.Type.IMAGE_CAPTION])
        return [row for row in rows.order_by("chunk_type", "pk") if image.url in row.image_info]


def the_same(source: KnowledgeBase, target: KnowledgeBase) -> None:
    """Every picture of the source is in the target: its bytes, its facts, its place; nothing of it is shared."""
    theirs, ours = pictures(source), pictures(target)
    facts = ("sha256", "number", "caption", "ocr_text", "at", "position", "width", "attrs", "media_type", "size_bytes")
    assert [[getattr(row, name) for name in facts] for row in ours] == [[getattr(row, name) for name in facts] for row in theirs]
    assert [stored(row) for row in ours] == [stored(row) for row in theirs]
    assert not {row.uid for row in ours} & {row.uid for row in theirs}
    assert not {row.storage_path for row in ours} & {row.storage_path for row in theirs}
    for own, other in zip(ours, theirs, strict=True):
        assert (own.chunk.kb_id, own.chunk.document_id) == (target.pk, own.document_id)
        if own.storage_path == own.document.storage_path:
            continue  # an uploaded picture: its text is what was read in it
        assert own.url in own.chunk.content and other.url in other.chunk.content
        assert REFERENCE.sub("", own.chunk.content) == REFERENCE.sub("", other.chunk.content)
        assert [row.content for row in said(own)] == [row.content for row in said(other)]
        for part, original in ((read_parsed(own.document), read_parsed(other.document)),):
            assert part is not None and original is not None
            assert part["blocks"] == original["blocks"] and own.url in part["text"] and other.url not in part["text"]
        assert own.url in mentioned(own) and other.url not in mentioned(own) and len(mentioned(own)) == len(mentioned(other))


def filled(kit: Kit) -> list[Document]:
    documents = [kit.upload(f"{n}.md", f"Device {n}.\n\n" + markdown(png("red"), png("blue", (120, 90 + n)))) for n in range(3)]
    work_all("parse", "embed")
    return documents


def test_a_copy_has_its_own_pictures_and_outlives_the_source(kit: Kit) -> None:
    filled(kit)
    _run, target = start(kit)
    assert work_all("copy") == 1
    assert len(pictures(target)) == 6
    the_same(kit.base, target)
    assert reconcile(repair=False, young_s=0).total == 0
    image = pictures(target)[0]
    with space_scope(kit.space.pk):
        base_delete(actor=kit.actor, base=kit.base)
        with file_of(actor=kit.actor, base=target, locator=image.url).source as opened:
            assert opened.read() == png("red")
        document_reparse(actor=kit.actor, document=kit.reload(image.document))
    work_all()
    again = images_of(image.document)[0]
    assert (again.uid, storage.exists(again.storage_path), storage.exists(image.storage_path)) == (image.uid, True, False)


def test_an_uploaded_picture_points_at_the_copys_own_original(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = ParsedDocument("Pump", [Block("paragraph", 0, 4)], media_type="image/png", parser="image", details={"width": 300, "height": 200})
    monkeypatch.setattr(pipeline, "parse_file", lambda *_args, **_more: seen)
    kit.upload("pump.png", png("red", (300, 200)))
    work_all("parse", "embed")
    _run, target = start(kit)
    work_all("copy")
    the_same(kit.base, target)
    (image,) = pictures(target)
    assert image.storage_path == image.document.storage_path
    assert reconcile(repair=False, young_s=0).total == 0


class Killed(BaseException):
    """What a worker that is killed never gets to handle."""


@pytest.mark.parametrize("moment", ["between files", "before rows", "after rows"])
def test_killed_and_begun_again_each_picture_is_there_once(kit: Kit, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    filled(kit)
    monkeypatch.setattr(copying, "SLICE", 1)
    run, target = start(kit)
    name, fatal = ("_copy_file", 6) if moment == "between files" else ("_copy_rows", 2)
    real, calls = getattr(copying, name), []

    def dies(*args: Any) -> Any:
        calls.append(args)
        if len(calls) != fatal:
            return real(*args)
        if moment != "before rows":
            real(*args)
        raise Killed

    monkeypatch.setattr(copying, name, dies)
    claim = claim_next(job_kinds.get("copy"))
    assert claim is not None
    with pytest.raises(Killed):
        work(claim)
    monkeypatch.setattr(copying, name, real)
    with unscoped("the lease of a killed worker"):
        CopyRun.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(minutes=1))
    assert work_all("copy") == 1
    assert len(pictures(target)) == 6
    the_same(kit.base, target)
    assert reconcile(repair=False, young_s=0).total == 0, "no file is left over"


def test_a_mirror_gains_and_loses_pictures_with_their_documents(kit: Kit) -> None:
    first, *_rest = filled(kit)
    with space_scope(kit.space.pk):
        target = base_create(actor=kit.actor, values={"name": "Target"})
    Kit(kit.space, kit.actor, target).upload("own.md", markdown(png("green")))
    work_all("parse", "embed")
    start(kit, target)
    work_all()
    the_same(kit.base, target)
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[kit.reload(first)])
    start(kit, target)
    work_all()
    assert len(pictures(target)) == 4
    the_same(kit.base, target)
    assert reconcile(repair=False, young_s=0).total == 0


def test_a_picture_the_store_lost_is_counted_and_not_mentioned(kit: Kit) -> None:
    kit.upload("a.md", markdown(png("red"), png("blue")))
    work_all("parse", "embed")
    lost, kept = pictures(kit.base)
    storage.remove(lost.storage_path)
    run, target = start(kit)
    work_all("copy")
    with unscoped("test look"):
        run.refresh_from_db()
        assert (run.state, run.progress_done, run.progress_failed) == ("done", 1, 1)
    (own,) = pictures(target)
    assert (own.sha256, stored(own), set(mentioned(own))) == (kept.sha256, png("blue"), {own.url})
    with unscoped("test look"):
        assert not Chunk.objects.filter(kb=target, image_info__contains=str(lost.uid)).exists()


def test_a_document_that_waits_leaves_no_files_of_pictures(kit: Kit) -> None:
    document = kit.upload("a.md", markdown(png("red")))
    work_all("parse", "embed")
    with space_scope(kit.space.pk):
        document_reparse(actor=kit.actor, document=kit.reload(document))
    _run, target = start(kit)
    work_all("copy")
    assert pictures(target) == [] and reconcile(repair=False, young_s=0).orphan_files == []
    work_all("parse", "embed")
    the_same(kit.base, target)


def test_a_picture_goes_to_the_nearest_passage_when_its_own_is_deleted(kit: Kit) -> None:
    with unscoped("test data"):
        KnowledgeBase.objects.filter(pk=kit.base.pk).update(chunking_config={"chunk_size": 100, "chunk_overlap": 0})
    sections = "\n\n".join(f"## Part {n}\n\n" + f"Words of part {n}. " * 8 for n in range(3))
    document = kit.upload("a.md", f"# Pump\n\n{sections}\n\n" + markdown(png("red")))
    work_all("parse", "embed")
    (image,) = images_of(document)
    with space_scope(kit.space.pk):
        chunks = list(Chunk.objects.filter(document=document, chunk_type="text").order_by("start_at"))
        assert len(chunks) > 2 and image.chunk_id == chunks[-1].pk
        chunks_delete(actor=kit.actor, document=kit.reload(document), chunks=[chunks[-1]])
    (moved,) = images_of(document)
    assert (moved.uid, moved.chunk_id) == (image.uid, chunks[-2].pk)
    assert mentioned(moved) == [image.url, image.url]
    with space_scope(kit.space.pk):
        chunks_delete(actor=kit.actor, document=kit.reload(document))
    assert images_of(document) == [] and not storage.exists(image.storage_path)
    assert reconcile(repair=False, young_s=0).orphan_files == []


def test_deleting_every_passage_of_an_uploaded_picture_keeps_its_original(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = ParsedDocument("Pump", [Block("paragraph", 0, 4)], media_type="image/png", parser="image", details={"width": 300, "height": 200})
    monkeypatch.setattr(pipeline, "parse_file", lambda *_args, **_more: seen)
    document = kit.upload("pump.png", png("red", (300, 200)))
    work_all(services.PARSE)
    with space_scope(kit.space.pk):
        chunks_delete(actor=kit.actor, document=kit.reload(document))
    assert images_of(document) == [] and storage.exists(kit.reload(document).storage_path)
