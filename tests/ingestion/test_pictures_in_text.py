"""Pictures stand in the text where they stand in the original, are read by OCR and described by a model, and found by what they say."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from apps.common.scope import space_scope, unscoped
from apps.ingestion import lookers, services
from apps.ingestion.illustrating import Known, illustrate
from apps.ingestion.models import IngestionRun, Span
from apps.ingestion.plugins.protocol import ParsedDocument
from apps.knowledge.models import Chunk, Document, DocumentImage
from apps.knowledge.services import base_settings_update, base_update, chunk_update, chunks_delete, document_reparse
from apps.llm.models import Model
from apps.retrieval.search import Options, Scope, search
from tests.ingestion.builders import read_bytes
from tests.ingestion.test_images import data_uri, docx_with, images_of, markdown, pdf_with, png, pptx_with
from tests.support.endpoint import Endpoint, answer, serving
from tests.support.kit import Kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)

SIGN = "Valve KX-4410"
ALT = ("figure 1", "image.png")


def sign(text: str = SIGN, size: tuple[int, int] = (420, 120)) -> bytes:
    """A picture with a line of writing on it."""
    picture = Image.new("RGB", size, "white")
    ImageDraw.Draw(picture).text((20, 35), text, fill="black", font=ImageFont.load_default(40))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def read(tmp_path: Any, name: str, data: bytes) -> tuple[ParsedDocument, ParsedDocument]:
    """The document as parsed, and with its pictures in the text."""
    before, after = read_bytes(tmp_path, name, data), read_bytes(tmp_path, name, data)
    import uuid

    illustrate(after, {image.sha256: Known(uuid.uuid5(uuid.NAMESPACE_URL, image.sha256)) for image in after.images})
    return before, after


def passages(document: Document, kind: str = "text") -> list[Chunk]:
    with unscoped("tests look at every space"):
        rows = Chunk.objects.filter(document=document, chunk_type=kind).select_related("document", "kb", "parent")
        return list(rows.order_by("chunk_index", "pk"))


def found(kit: Kit, query: str) -> list[Chunk]:
    with space_scope(kit.space.pk):
        return [
            hit.chunk
            for hit in search(actor=kit.actor, query=query, scope=Scope(kb_uids=(kit.base.uid,)), options=Options(mode="text")).hits
        ]


@pytest.mark.parametrize(
    ("name", "make"),
    [("a.docx", docx_with), ("a.pptx", pptx_with), ("a.md", lambda data: markdown(data).encode())],
    ids=["docx", "pptx", "md"],
)
def test_a_picture_stands_in_the_text_between_what_stands_around_it(tmp_path: Any, name: str, make: Any) -> None:
    before, after = read(tmp_path, name, make(png("red")))
    (image,) = after.images
    assert after.text[image.at :].startswith("![") and "](resource://" in after.text[image.at :].split("\n")[0]
    kept = [after.text[block.start : block.end] for block in after.blocks if block.kind != "image"]
    assert kept == [text for block in before.blocks if (text := before.text[block.start : block.end]) not in ALT]
    assert [block.start for block in after.blocks] == sorted(block.start for block in after.blocks)
    for block in after.blocks:
        for row in block.rows:
            assert after.text[row[0] : row[1]].startswith("|")
    if name == "a.docx":
        at = after.text.index("![")
        assert after.text.index("Before the picture.") < at < after.text.index("After the picture.")
    if name == "a.md":
        assert after.text.count("figure 1") == 1, "its alternative text is not said twice"


def test_a_pdf_has_it_below_the_block_above_it(tmp_path: Any) -> None:
    _before, after = read(tmp_path, "a.pdf", pdf_with((2, png("blue"))))
    at = after.text.index("![](resource://")
    assert after.text.index("first line of page 2") < at < after.text.index("last line of page 2")
    (block,) = [block for block in after.blocks if block.kind == "image"]
    assert block.position.page == 2 and block.position.bbox is not None


def test_passages_hold_the_reference_and_are_found_without_its_letters(kit: Kit) -> None:
    words = markdown(png("red")).replace(" 1", " one")  # three handles in ten hold a 1 of their own
    document = kit.upload("a.md", words)
    work_all(services.PARSE, services.EMBED)
    (image,) = images_of(document)
    (beside,) = [chunk for chunk in passages(document) if image.url in chunk.content]
    assert f"![figure one]({image.url})" in beside.content and image.chunk_id == beside.pk
    assert beside.pk in {chunk.pk for chunk in found(kit, "figure")}
    assert found(kit, str(image.uid)) == [] and found(kit, "resource") == [], "a handle is no word of the document"


@pytest.fixture
def eyes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """OCR that knows the sign, for tests of what becomes of its text; how many pictures each look was at."""
    looked: list[int] = []

    def look(pictures: list[bytes], **_more: Any) -> list[tuple[str, bytes, str]]:
        looked.append(len(pictures))
        return [(SIGN if data == sign() else "", data, "") for data in pictures]

    monkeypatch.setattr(lookers, "look_at", look)
    return looked


def test_text_in_an_embedded_picture_is_read_and_found(kit: Kit) -> None:
    document = kit.upload("a.docx", docx_with(sign()))
    work_all(services.PARSE, services.EMBED)
    assert kit.reload(document).parse_status == "completed", "the document does not wait for its pictures"
    assert found(kit, "KX-4410") == []
    work_all()
    (image,) = images_of(document)
    assert "KX-4410" in image.ocr_text and image.read_at is not None
    (said,) = passages(document, "image_ocr")
    assert (said.content, said.parent_id) == (image.ocr_text, image.chunk_id)
    assert [chunk.pk for chunk in found(kit, "KX-4410")] == [said.pk]
    assert json.loads(image.chunk.image_info)[0]["ocr_text"] == image.ocr_text
    fresh = kit.reload(document)
    assert (fresh.chunk_count, fresh.vector_count) == (len(passages(document)) + 1,) * 2, "it has its vector too"
    with unscoped("test look"):
        assert Span.objects.get(document=document, name="multimodal").status == "done"


def test_a_document_of_nothing_but_pictures_is_read(kit: Kit, eyes: list[int]) -> None:
    document = kit.upload("a.md", f"![]({data_uri(sign())})\n")
    work_all()
    fresh = kit.reload(document)
    assert (fresh.parse_status, fresh.reason) == ("completed", "")
    assert [chunk.chunk_type for chunk in found(kit, "KX-4410")] == ["image_ocr"]


def test_ocr_is_kept_by_content_and_not_done_again(kit: Kit, eyes: list[int]) -> None:
    document = kit.upload("a.md", markdown(sign()))
    work_all()
    with space_scope(kit.space.pk):
        document_reparse(actor=kit.actor, document=kit.reload(document))
    work_all()
    assert "KX-4410" in images_of(document)[0].ocr_text
    assert (eyes, len(passages(document, "image_ocr"))) == ([1], 1)


def test_only_so_many_and_only_large_enough_pictures_are_read(kit: Kit, eyes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookers, "MOST_READ", 6)
    monkeypatch.setattr(lookers, "AT_ONCE", 4)
    document = kit.upload("a.md", markdown(png("black", (70, 70)), *[png((n, 0, 0)) for n in range(8)]))  # type: ignore[arg-type]
    work_all(services.PARSE, services.PICTURES)
    assert eyes == [4, 2]
    assert [bool(image.read_at) for image in images_of(document)] == [False, *[True] * 6, False, False]


def test_a_picture_that_takes_the_reader_down_is_left_out_alone(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.ingestion.plugins.protocol import ParseFailure

    bad = png("black")

    def look(pictures: list[bytes], **_more: Any) -> list[tuple[str, bytes, str]]:
        if bad in pictures:
            raise ParseFailure("crashed", "the child died")
        return [("words", b"", "") for _ in pictures]

    monkeypatch.setattr(lookers, "look_at", look)
    document = kit.upload("a.md", markdown(png("red"), bad, png("blue")))
    work_all()
    assert [image.ocr_text for image in images_of(document)] == ["words", "", "words"]
    assert kit.reload(document).parse_status == "completed"


@pytest.mark.parametrize("who", ["upload", "base", "portal"])
def test_nobody_reads_pictures_where_that_is_not_wished(kit: Kit, settings: Any, who: str) -> None:
    wish: dict[str, Any] = {}
    if who == "upload":
        wish = {"process_config": {"enable_multimodel": False}}
    elif who == "portal":
        settings.OCR_ENABLED = False
    else:
        with space_scope(kit.space.pk):
            never = {"image_actions": {"ocr": {"on": [], "on_unobserved": False}}}
            base_update(actor=kit.actor, base=kit.base, name="Base", config={"image_processing_config": never})
    document = kit.upload("a.md", markdown(sign()), **wish)
    work_all()
    assert images_of(document)[0].read_at is None and passages(document, "image_ocr") == []
    with unscoped("test look"):
        assert not IngestionRun.objects.filter(kind__in=(services.PICTURES, services.DESCRIBE)).exists()
        assert Span.objects.get(document=document, name="multimodal").status == "skipped"


def test_what_a_picture_says_follows_its_passage(kit: Kit, eyes: list[int]) -> None:
    document = kit.upload("a.md", markdown(sign()) + "\n## Last\n\n" + "More text of another part. " * 40)
    work_all()
    beside = images_of(document)[0].chunk
    with space_scope(kit.space.pk):
        chunk_update(actor=kit.actor, chunk=beside, is_enabled=False)
    work_all()
    assert [row.is_enabled for row in passages(document, "image_ocr")] == [False] and found(kit, "KX-4410") == []
    with space_scope(kit.space.pk):
        chunks_delete(actor=kit.actor, document=kit.reload(document), chunks=[beside])
    work_all()
    (image,) = images_of(document)
    (said,) = passages(document, "image_ocr")
    assert image.chunk_id == said.parent_id != beside.pk
    assert [chunk.pk for chunk in found(kit, "KX-4410")] == [said.pk], "it is found beside the passage that stayed"


@pytest.fixture
def endpoint(settings: Any) -> Iterator[Endpoint]:
    settings.MODEL_ALLOW = ["127.0.0.0/8"]
    settings.OCR_ENABLED = False
    with serving() as made:
        yield made


def sees(kit: Kit, endpoint: Endpoint, attributes: bool = False, **config: Any) -> Model:
    """The base has a vision model at the endpoint."""
    with space_scope(kit.space.pk):
        row = Model.objects.create(space=kit.space, name="eyes", type=Model.Type.VISION, base_url=endpoint.url)
        options = {
            "vlm_config": {"enabled": True, "model_id": str(row.uid), **config},
            "image_processing_config": {"image_attrs_enabled": attributes},
        }
        base_settings_update(actor=kit.actor, base=kit.base, values={"options": options})
        kit.base.refresh_from_db()
    return row


def asked_text(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"][0]["text"])


def test_pictures_are_described_as_the_base_wishes_and_found_by_it(kit: Kit, endpoint: Endpoint) -> None:
    sees(kit, endpoint, description_language="zh", custom_instructions="Name the colour of the handle.")
    endpoint.says = "一只带红色手柄的截止阀"
    document = kit.upload("a.docx", docx_with(png("red", (2000, 1500))))
    work_all()
    (image,) = images_of(document)
    assert (image.caption, image.attrs) == ("一只带红色手柄的截止阀", None) and image.described_at is not None
    (said,) = passages(document, "image_caption")
    assert [chunk.pk for chunk in found(kit, "截止阀")] == [said.pk]
    (request,) = endpoint.requests
    assert "Write in Chinese." in asked_text(request) and "Name the colour of the handle." in asked_text(request)
    address = request["messages"][-1]["content"][1]["image_url"]["url"]
    sent = Image.open(io.BytesIO(base64.b64decode(address.partition("base64,")[2])))
    assert address.startswith("data:image/jpeg;base64,") and sent.size == (1568, 1176)


def test_an_upload_may_wish_another_language_or_no_description(kit: Kit, endpoint: Endpoint) -> None:
    model = sees(kit, endpoint, description_language="zh")
    own = {"enabled": True, "model_id": str(model.uid), "description_language": "en"}
    kit.upload("a.docx", docx_with(png("red")), process_config={"vlm_config": own})
    kit.upload("b.docx", docx_with(png("blue")), process_config={"enable_multimodel": False})
    work_all()
    (request,) = endpoint.requests
    assert "Write in English." in asked_text(request)


def test_attributes_are_observed_and_say_which_pictures_are_read(kit: Kit, endpoint: Endpoint, settings: Any, eyes: list[int]) -> None:
    settings.OCR_ENABLED = True
    sees(kit, endpoint, attributes=True)
    told = iter([{"contain.text": "block", "contain.data_visual": False}, {"contain.text": "none", "contain.data_visual": False}])
    endpoint.says = lambda _asked: "```json\n" + json.dumps({"caption": "A sign.", **next(told), "colour": "white"}) + "\n```"
    document = kit.upload("a.md", markdown(sign(), sign("Pump PN-77")))
    work_all()
    first, second = images_of(document)
    assert first.attrs == {"system:contain.text": "block", "system:contain.data_visual": False}
    assert second.attrs == {"system:contain.text": "none", "system:contain.data_visual": False}
    assert "KX-4410" in first.ocr_text and (second.ocr_text, second.read_at) == ("", None)
    assert json.loads(first.chunk.image_info)[0]["attrs"]["attrs"] == first.attrs


def test_a_model_that_only_writes_gives_a_description_without_attributes(kit: Kit, endpoint: Endpoint) -> None:
    sees(kit, endpoint, attributes=True)
    endpoint.says = "A red square."
    document = kit.upload("a.md", markdown(png("red")))
    work_all()
    assert [(image.caption, image.attrs) for image in images_of(document)] == [("A red square.", None)]


def test_an_uploaded_picture_without_text_is_found_by_its_description(kit: Kit, endpoint: Endpoint) -> None:
    sees(kit, endpoint)
    endpoint.says = "A centrifugal pump on a steel base."
    document = kit.upload("photo.png", png("red", (300, 200)))
    work_all()
    assert kit.reload(document).parse_status == "completed"
    assert [chunk.chunk_type for chunk in found(kit, "centrifugal")] == ["image_caption"]
    assert passages(document)[0].content == f"![photo.png]({images_of(document)[0].url})"


def test_a_model_that_fails_leaves_the_document_found_and_says_so(kit: Kit, endpoint: Endpoint) -> None:
    sees(kit, endpoint)
    endpoint.behave = lambda _body, handler: answer(handler, 401, {"error": "no"})
    document = kit.upload("a.md", markdown(png("red"), png("blue")))
    work_all()
    fresh = kit.reload(document)
    assert (fresh.parse_status, fresh.reason) == ("completed", "") and found(kit, "part 2")
    (warning,) = fresh.warnings
    assert (warning["code"], warning["count"]) == ("pictures_undescribed", 2) and "model_unauthorised" in warning["message"]
    with unscoped("test look"):
        span = Span.objects.get(document=document, name="multimodal")
    assert (span.status, span.error_code) == ("failed", "MULTIMODAL_VLM_FAILED")
    endpoint.behave = None
    endpoint.says = "A square."
    with space_scope(kit.space.pk):
        run = IngestionRun.objects.get(document=document, kind=services.DESCRIBE)
        lookers.retry_looking(kit.actor, run)
    work_all()
    assert [image.caption for image in images_of(document)] == ["A square.", "A square."]
    assert kit.reload(document).warnings == [], "what was missing is not missing any more"


def test_a_picture_the_model_will_not_have_does_not_hold_up_the_others(kit: Kit, endpoint: Endpoint) -> None:
    sees(kit, endpoint)
    calls = iter([400, 200])
    endpoint.behave = lambda body, handler: body if next(calls) == 200 else answer(handler, 400, {"error": "picture"})  # type: ignore[func-returns-value]
    endpoint.says = "A square."
    document = kit.upload("a.md", markdown(png("red"), png("blue")))
    work_all()
    assert [image.caption for image in images_of(document)] == ["figure 1", "A square."]
    assert [(w["code"], w["count"]) for w in kit.reload(document).warnings] == [("pictures_undescribed", 1)]


def test_a_pass_that_was_killed_goes_on_where_it_stopped(kit: Kit, endpoint: Endpoint) -> None:
    sees(kit, endpoint)
    endpoint.says = "A square."
    document = kit.upload("a.md", markdown(png("red"), png("blue")))
    work_all(services.PARSE)
    first = images_of(document)[0]
    with unscoped("test data"):
        DocumentImage.objects.filter(pk=first.pk).update(caption="Done before.", described_at=first.created_at)
    work_all()
    assert len(endpoint.requests) == 1 and [image.caption for image in images_of(document)] == ["Done before.", "A square."]
