"""Word and PowerPoint of before 2007 are read, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.ingestion.plugins.protocol import ParseFailure
from tests.ingestion.builders import read_bytes
from tests.support.ole import compound, doc, ppt

TEXT = "Pump manual\n阀门 KX-4410 opens slowly.\nThe last line."


@pytest.mark.parametrize("name", ["old.doc", "renamed.docx", "none"])
def test_word_97(tmp_path: Path, name: str) -> None:
    read = read_bytes(tmp_path, name, doc(TEXT))
    assert (read.parser, read.media_type) == ("legacy", "application/msword")
    assert [line.lstrip("# ") for line in read.text.split("\n") if line] == TEXT.split("\n")


def test_powerpoint_97(tmp_path: Path) -> None:
    read = read_bytes(tmp_path, "old.ppt", ppt("标题 of the first", "Second slide"))
    assert (read.parser, read.media_type) == ("legacy", "application/vnd.ms-powerpoint")
    assert [block for block in ("标题 of the first", "Second slide") if block in read.text] == ["标题 of the first", "Second slide"]


@pytest.mark.parametrize("data", [doc(TEXT)[:1600], compound({"1Table": b"x", "WordDocument": bytes(900)})], ids=["cut off", "empty"])
def test_a_file_that_only_looks_like_one_is_damaged(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ParseFailure) as failed:
        read_bytes(tmp_path, "old.doc", data)
    assert failed.value.reason == "corrupt"
