"""Pictures of documents: taken out within limits, kept once, referred to, and gone with what they belong to."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from typing import Any

import pytest
from PIL import Image

from apps.common import storage
from apps.common.scope import space_scope, unscoped
from apps.ingestion import services
from apps.ingestion.reconcile import reconcile
from apps.knowledge.models import Chunk, Document, DocumentImage
from apps.knowledge.services import document_reparse, documents_delete, documents_move, documents_purge
from apps.operations.file_keys import named_keys
from tests.ingestion.builders import read_bytes
from tests.support.kit import Kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)


def png(colour: str, size: tuple[int, int] = (120, 90)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def data_uri(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def markdown(*pictures: bytes) -> str:
    parts = [
        f"## Part {number}\n\nText of part {number}, long enough.\n\n![figure {number}]({data_uri(data)})\n"
        for number, data in enumerate(pictures, 1)
    ]
    return "# Pump\n\n" + "\n".join(parts)


def images_of(document: Document) -> list[DocumentImage]:
    with unscoped("tests look at every space"):
        return list(DocumentImage.objects.filter(document=document).select_related("chunk", "kb", "document").order_by("number"))


def docx_with(picture: bytes) -> bytes:
    import docx

    made = docx.Document()
    made.add_heading("Manual", 1)
    made.add_paragraph("Before the picture.")
    made.add_picture(io.BytesIO(picture))
    made.add_paragraph("After the picture.")
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def pptx_with(picture: bytes) -> bytes:
    from pptx import Presentation

    deck = Presentation()
    for number in (1, 2):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = f"Slide number {number}"
    slide.shapes.add_picture(io.BytesIO(picture), 0, 2_000_000)
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def pdf_with(*pictures: tuple[int, bytes]) -> bytes:
    """Two pages; (page, picture) placed in the middle of it."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(400, 600))
    for number in (1, 2):
        canvas.drawString(40, 540, f"The first line of page {number} stands here.")
        canvas.drawString(40, 60, f"The last line of page {number} stands here.")
        for page, data in pictures:
            if page == number:
                canvas.drawImage(ImageReader(io.BytesIO(data)), 100, 250, width=120, height=90)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


@pytest.mark.parametrize(("name", "make"), [("a.docx", docx_with), ("a.pptx", pptx_with)])
def test_an_embedded_picture_is_given_as_it_is(tmp_path: Any, name: str, make: Any) -> None:
    picture = png("red")
    (found,) = read_bytes(tmp_path, name, make(picture)).images
    assert (found.data, found.media_type, found.width, found.height) == (picture, "image/png", 120, 90)
    assert found.sha256 == hashlib.sha256(picture).hexdigest()
    if name == "a.pptx":
        assert found.position.slide == 2


def test_a_pdf_gives_each_picture_once_with_its_page_and_box(tmp_path: Any) -> None:
    read = read_bytes(tmp_path, "a.pdf", pdf_with((1, png("red")), (2, png("red")), (2, png("blue", (200, 100)))))
    assert [(i.position.page, i.width, i.height) for i in read.images] == [(1, 120, 90), (2, 200, 100)]
    assert read.images[0].position.bbox == (0.25, 0.4333, 0.55, 0.5833)
    before = read.text[: read.images[0].at]
    assert before.endswith("The first line of page 1 stands here."), "it stands after the block above it"


def test_decorations_and_what_is_no_picture_are_left_out(tmp_path: Any) -> None:
    text = markdown(png("red"), png("green", (16, 300)), b"no picture at all", png("red"))
    (kept,) = read_bytes(tmp_path, "a.md", text.encode()).images
    assert (kept.alt, kept.width) == ("figure 1", 120)


def test_a_page_scan_is_not_a_picture_of_the_gallery(tmp_path: Any) -> None:
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(400, 600))
    canvas.drawImage(ImageReader(io.BytesIO(png("red", (400, 600)))), 0, 0, width=400, height=600)
    canvas.save()
    read = read_bytes(tmp_path, "a.pdf", out.getvalue())
    assert (read.needs_ocr_pages, read.images) == ([1], [])


def test_pictures_are_stored_beside_their_passage_and_keep_their_handle(kit: Kit) -> None:
    red, blue = png("red"), png("blue")
    document = kit.upload("a.md", markdown(red, blue))
    work_all(services.PARSE)
    first, second = images_of(document)
    with storage.read(first.storage_path) as stored:
        assert stored.read() == red
    assert (first.caption, second.caption) == ("figure 1", "figure 2")
    entries = json.loads(first.chunk.image_info)
    assert entries[0]["url"] == f"resource://{first.uid}" and entries[0]["caption"] == "figure 1"
    with space_scope(kit.space.pk):
        document_reparse(actor=kit.actor, document=kit.reload(document))
    work_all(services.PARSE)
    again = images_of(document)
    assert [image.uid for image in again] == [first.uid, second.uid]
    assert not storage.exists(first.storage_path), "the files of the parse before are gone"
    assert all(storage.exists(image.storage_path) for image in again)
    assert {image.storage_path for image in again} <= named_keys("default").keys(), "a backup takes them along"


def test_an_uploaded_picture_is_its_own_image(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.ingestion import pipeline
    from apps.ingestion.plugins.protocol import Block, ParsedDocument

    picture = png("red", (300, 200))
    text = "Pump room"
    seen = ParsedDocument(
        text, [Block("paragraph", 0, len(text))], media_type="image/png", parser="image", details={"width": 300, "height": 200}
    )
    monkeypatch.setattr(pipeline, "parse_file", lambda *_args, **_more: seen)
    document = kit.upload("pump.png", picture)
    work_all(services.PARSE)
    (image,) = images_of(document)
    assert (image.ocr_text, image.storage_path, image.width) == ("Pump room", kit.reload(document).storage_path, 300)
    with space_scope(kit.space.pk):
        document_reparse(actor=kit.actor, document=kit.reload(document))
    work_all(services.PARSE)
    assert storage.exists(image.storage_path), "the original is not a file of the parse"


def test_they_go_with_their_document_and_reconcile_knows_them(kit: Kit) -> None:
    document = kit.upload("a.md", markdown(png("red")))
    work_all(services.PARSE)
    (image,) = images_of(document)
    found = reconcile(young_s=0)
    assert (found.orphan_files, found.missing_files) == ([], [])
    storage.remove(image.storage_path)
    assert reconcile(young_s=0).missing_files == [image.storage_path]
    with space_scope(kit.space.pk):
        documents_delete(actor=kit.actor, base=kit.base, documents=[kit.reload(document)])
        documents_purge(actor=kit.actor, base=kit.base, documents=[kit.reload(document)])
    work_all("cleanup")
    assert images_of(document) == []
    assert list(storage.keys()) == []


def test_they_move_with_their_document(kit: Kit) -> None:
    from apps.knowledge.services import base_create

    document = kit.upload("a.md", markdown(png("red")))
    work_all()
    with space_scope(kit.space.pk):
        target = base_create(actor=kit.actor, values={"name": "Target"})
        documents_move(actor=kit.actor, source=kit.base, target=target, documents=[kit.reload(document)], mode="reuse_vectors")
    work_all("move")
    (image,) = images_of(document)
    assert image.kb_id == target.pk
    with unscoped("tests look at every space"):
        assert Chunk.objects.get(pk=image.chunk_id).kb_id == target.pk
