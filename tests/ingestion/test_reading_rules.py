"""Rules by which a base, or an upload, has types of files read."""

from __future__ import annotations

import io
from typing import Any

import pytest

from apps.common.scope import space_scope, unscoped
from apps.ingestion import pipeline, services
from apps.ingestion.parsed import read_parsed
from apps.ingestion.plugins.protocol import ParseRequest
from apps.knowledge.models import Chunk, Document
from apps.knowledge.services import base_update
from tests.ingestion.test_images import docx_with, pdf_with, png
from tests.support.kit import Kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)


def rules(kit: Kit, *kept: dict[str, Any]) -> None:
    with space_scope(kit.space.pk):
        base_update(actor=kit.actor, base=kit.base, name="Base", config={"chunking_config": {"parser_engine_rules": list(kept)}})
        kit.base.refresh_from_db()


def said(kit: Kit, document: Document) -> dict[str, Any]:
    parsed = read_parsed(kit.reload(document))
    assert parsed is not None, kit.reload(document).reason
    return parsed


def test_a_rule_has_a_type_read_in_another_way_and_other_types_as_usual(kit: Kit) -> None:
    rules(kit, {"file_types": ["md", "html"], "engine": "text"})
    marked = kit.upload("a.md", "# Title\n\nSome *bold* text.")
    table = kit.upload("a.csv", "name,size\npump,3\n")
    work_all(services.PARSE)
    assert (said(kit, marked)["parser"], said(kit, marked)["text"]) == ("text", "# Title\n\nSome *bold* text.")
    assert said(kit, table)["parser"] == "csv"


def test_the_first_rule_for_a_type_holds_and_an_upload_may_wish_its_own(kit: Kit) -> None:
    rules(kit, {"file_types": ["md"], "engine": "text"}, {"file_types": ["md"], "engine": "builtin"})
    usual = kit.upload("a.md", "# Title\n\nx", process_config={"parser_engine_rules": [{"file_types": ["md"], "engine": "builtin"}]})
    plain = kit.upload("b.md", "# Title\n\ny")
    work_all(services.PARSE)
    assert (said(kit, usual)["parser"], said(kit, plain)["parser"]) == ("markdown", "text")


def test_word_goes_to_the_second_reader(kit: Kit) -> None:
    rules(kit, {"file_types": ["docx"], "engine": "office"})
    document = kit.upload("a.docx", docx_with(png("red")))
    work_all(services.PARSE)
    assert said(kit, document)["parser"] == "legacy" and "After the picture." in said(kit, document)["text"]


def test_a_table_without_a_row_of_names(kit: Kit) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    for row in (["pump", 3], ["valve", 4]):
        book.active.append(row)  # type: ignore[union-attr]
    held = io.BytesIO()
    book.save(held)
    named = kit.upload("named.xlsx", held.getvalue())
    work_all(services.PARSE)
    rules(kit, {"file_types": ["xlsx"], "engine": "builtin", "xlsx_first_row_as_header": False})
    held.seek(0)
    book.active["A1"] = "Pump"  # type: ignore[index]
    book.save(held)
    bare = kit.upload("bare.xlsx", held.getvalue())
    work_all(services.PARSE)
    assert "| valve | 4 |" in said(kit, named)["text"]
    rows = [block["rows"] for block in said(kit, bare)["blocks"] if block["kind"] == "table"]
    assert [len(each) for each in rows] == [2], "every row is a row of values"


def test_every_page_of_a_pdf_by_ocr(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[ParseRequest] = []
    real = pipeline.parse_file

    def parse(request: ParseRequest, **more: Any) -> Any:
        asked.append(request)
        if request.ocr:
            request = ParseRequest(request.path, request.file_name, request.media_type)  # what OCR sees is proven elsewhere
        return real(request, **more)

    monkeypatch.setattr(pipeline, "parse_file", parse)
    rules(kit, {"file_types": ["pdf"], "engine": "ocr"})
    document = kit.upload("a.pdf", pdf_with((1, png("red"))))
    work_all(services.PARSE)
    assert kit.reload(document).parse_status == "processing" or kit.reload(document).chunk_count
    work_all(services.OCR)
    assert [(request.ocr, request.engine) for request in asked] == [(False, "ocr"), (True, "ocr")]
    with unscoped("test look"):
        assert Chunk.objects.filter(document=document).exists()


def test_without_ocr_the_text_layer_is_what_there_is(kit: Kit, settings: Any) -> None:
    settings.OCR_ENABLED = False
    rules(kit, {"file_types": ["pdf"], "engine": "ocr"})
    document = kit.upload("a.pdf", pdf_with())
    work_all(services.PARSE, services.EMBED)
    fresh = kit.reload(document)
    assert (fresh.parse_status, fresh.reason) == ("completed", "needs_ocr") and "first line of page 1" in said(kit, document)["text"]
