"""What every registered parser owes: exact spans in order, failures only of the agreed kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from apps.ingestion.plugins.parsers import parser_for
from apps.ingestion.plugins.protocol import REASONS, ParseFailure, ParseRequest, parsers, reason_if_empty
from apps.ingestion.plugins.sniff import ACCEPTED, BY_EXTENSION
from tests.ingestion import builders as make
from tests.ingestion.builders import check_spans

SAMPLES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "pdf": ("a.pdf", lambda: make.pdf([[(72, 760, "第一页 PPR-9087"), (72, 740, "第二行")], [(72, 760, "page two")]])),
    "docx": ("a.docx", lambda: make.docx(make.paragraph("正文段落") + make.paragraph("second"))),
    "pptx": ("a.pptx", make.pptx),
    "sheets": ("a.xlsx", lambda: make.xlsx({"A1": "名称", "B1": "数量", "A2": "螺栓", "B2": 12})),
    "csv": ("a.csv", lambda: "名称,数量\n螺栓,12\n".encode()),
    "html": ("a.html", make.html),
    "mhtml": ("a.mhtml", make.mhtml),
    "epub": ("a.epub", make.epub),
    "eml": ("a.eml", make.eml),
    "markdown": ("a.md", lambda: "# 标题\n\n段落 **粗** 体\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\n```\n".encode()),
    "json": ("a.json", lambda: '{"name": "螺栓", "sizes": [1, 2]}'.encode()),
    "text": ("a.txt", lambda: "第一段\n第二行\n\n第二段".encode()),
    "image": ("a.png", make.picture),
    "legacy": ("a.doc", lambda: b""),
}
NAMES = [name for name, _ in parsers]


def test_every_parser_has_a_sample_and_every_accepted_family_a_parser() -> None:
    assert set(SAMPLES) == set(NAMES)
    assert {t.family for t in ACCEPTED} == set(NAMES)
    assert {e for _, parser in parsers for e in parser.extensions} == set(BY_EXTENSION)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "legacy"])
def test_spans_are_exact(name: str, tmp_path: Path) -> None:
    file_name, data = SAMPLES[name]
    document = make.read_bytes(tmp_path, file_name, data())
    check_spans(document)
    assert document.parser == name
    assert document.media_type
    assert document.text.strip() or document.needs_ocr_pages == [1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "junk", [b"\x00\x01\xfe\xff" * 300, b"%PDF-1.7\n%\xe2\xe3\n", b"PK\x03\x04" + b"\x00" * 400, b"{", b"\xff\xd8\xff\xe0"], ids=repr
)
def test_junk_ends_in_a_failure_or_a_document_never_in_another_exception(name: str, junk: bytes, tmp_path: Path) -> None:
    path = tmp_path / "junk.bin"
    path.write_bytes(junk)
    parser = parsers.get(name)
    request = ParseRequest(path, SAMPLES[name][0], media_type=parser.media_types[0])
    try:
        document = parser.parse(request, make.silent)
    except ParseFailure as failure:
        assert failure.reason in REASONS and failure.message
    else:
        check_spans(document)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "legacy"])
def test_a_cut_off_file_ends_in_a_failure_or_a_document(name: str, tmp_path: Path) -> None:
    file_name, data = SAMPLES[name]
    whole = data()
    for share in (0.3, 0.7, 0.95):
        try:
            document = make.read_bytes(tmp_path, file_name, whole[: int(len(whole) * share)])
        except ParseFailure as failure:
            assert failure.reason in ("corrupt", "empty", "unsupported_type", "locked"), failure
        else:
            check_spans(document)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_file_is_called_empty(name: str, tmp_path: Path) -> None:
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, SAMPLES[name][0], b"")
    assert caught.value.reason == "empty"


@pytest.mark.parametrize("file_name", ["a.txt", "a.md", "a.csv", "a.json", "a.html"])
def test_a_file_of_blanks_gives_an_empty_document(file_name: str, tmp_path: Path) -> None:
    document = make.read_bytes(tmp_path, file_name, b" \n\t \n  ")
    assert document.text == "" and document.blocks == []
    assert reason_if_empty(document) == "empty"


@pytest.mark.parametrize("name", ["pdf", "docx", "pptx", "sheets", "csv", "html", "eml", "markdown", "json", "text", "epub", "mhtml"])
def test_the_text_limit_holds(name: str, tmp_path: Path) -> None:
    file_name, data = SAMPLES[name]
    with pytest.raises(ParseFailure) as caught:
        make.read_bytes(tmp_path, file_name, data(), max_chars=3)
    assert caught.value.reason == "too_large"


@pytest.mark.parametrize("name", NAMES)
def test_progress_ends_at_its_total(name: str, tmp_path: Path) -> None:
    if name == "legacy":
        pytest.skip("no writer and no sample of a .doc file; only damaged ones are tested")
    file_name, data = SAMPLES[name]
    path = tmp_path / "x"
    path.write_bytes(data())
    seen: list[tuple[int, int, str]] = []
    request = ParseRequest(path, file_name)
    _, parser, media_type = parser_for(request)
    parser.parse(ParseRequest(path, file_name, media_type=media_type), lambda d, t, u: seen.append((d, t, u)))
    assert seen and seen[-1][0] == seen[-1][1] > 0
    assert [d for d, _, _ in seen] == sorted(d for d, _, _ in seen)
