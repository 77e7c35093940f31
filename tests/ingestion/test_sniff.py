"""Content before name: what a file really is."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.ingestion.plugins.sniff import ACCEPTED, BY_EXTENSION, extension_of, sniff
from tests.ingestion import builders as make

PDF = make.pdf([[(72, 700, "x")]])
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600


@pytest.mark.parametrize(
    ("data", "name", "family", "mismatch"),
    [
        (PDF, "table.docx", "pdf", True),
        (PDF, "REPORT.PDF", "pdf", False),
        (b"junk before\n" + PDF, "scan", "pdf", False),
        (make.xlsx({"A1": 1}), "merged", "sheets", False),
        (make.xlsx({"A1": 1}), "a.docx", "sheets", True),
        (make.docx(make.paragraph("x")), "a.zip", "docx", False),
        (make.pptx(), "", "pptx", False),
        (make.epub(), "book.zip", "epub", False),
        (make.html(), "页面.txt", "html", True),
        (b"\xef\xbb\xbf<!-- c -->\n<!DOCTYPE html><p>x", "a.md", "html", True),
        (b"<div>markdown may begin so</div>\n\ntext", "a.md", "markdown", False),
        (b"a,b\n1,2\n", "a.csv", "csv", False),
        ("标题".encode("utf-16"), "a.txt", "text", False),
        ("DateTime,Bid".encode("utf-16-le"), "a.txt", "text", False),
        (make.eml(), "letter", "eml", False),
        (make.eml(), "a.eml", "eml", False),
        (make.mhtml(), "page.mhtml", "mhtml", False),
        (make.mhtml(), "page", "mhtml", False),
        (make.picture(), "照片.pdf", "image", True),
        (OLE + "WordDocument".encode("utf-16-le"), "a.docx", "legacy", True),
        (OLE + "PowerPoint Document".encode("utf-16-le"), "a.ppt", "legacy", False),
        (OLE + "Workbook".encode("utf-16-le"), "a.xls", "sheets", False),
        (OLE + "EncryptedPackage".encode("utf-16-le"), "a.docx", "locked", True),
        (OLE + "__substg1.0_".encode("utf-16-le"), "a.msg", "", False),
        (make.docx(make.paragraph("x"))[:500], "cut.docx", "docx", False),
        (b"PK\x03\x04 not a pdf" + b"\0" * 100, "two-faces.pdf", "", False),
        (b"{\\rtf1 x}", "a.rtf", "", False),
        (b"\x7fELF\x02\x01" + b"\0" * 50, "a.txt", "", False),
        (bytes(range(256)) * 8, "a.txt", "", False),
        (b"", "a.txt", "empty", False),
        (b"key: value\n", "a.yaml", "text", False),
        (b"just words", "README", "text", False),
    ],
)
def test_family(data: bytes, name: str, family: str, mismatch: bool, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    found = sniff(path, name)
    assert (found.family, found.mismatch) == (family, mismatch)


@pytest.mark.parametrize(
    ("name", "extension"),
    [
        ("A.PDF", "pdf"),
        ("a/b.c\\d.Md", "md"),
        ("noext", ""),
        ("trailing.docx . ", "docx"),
        (".md", "md"),
        ("x.averyveryverylong", ""),
        ("报告.txt", "txt"),
    ],
)
def test_extension_of(name: str, extension: str) -> None:
    assert extension_of(name) == extension


def test_the_contract_s_extensions_are_accepted() -> None:
    wanted = (
        "pdf txt docx doc epub html htm mhtml md markdown png jpg jpeg gif csv xlsx xls pptx ppt json webp tiff tsv xlsb ods eml log yaml"
    )
    assert set(wanted.split()) <= set(BY_EXTENSION)
    assert len({t.media_type for t in ACCEPTED}) == len(ACCEPTED)
