"""Files with names that broke other portals: each is uploaded, read, listed, filtered, found and cited, downloaded under its own name, packed
and deleted (public reports of hard file names)."""

from __future__ import annotations

import io
import re
import unicodedata
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.support.rest import Rest
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

NAMES = {
    "ampersand": "a&b.txt",
    "entity": "a&amp;b.txt",
    "hash": "a#b.txt",
    "climbing, encoded": "%2e%2e%2f.txt",
    "plus": "a+b c.txt",
    "semicolon": "a;b.txt",
    "quote": "a'b.txt",
    "double quote": 'a"b.txt',
    "markup": "<b>bold<i>.txt",
    "leading dot": ".hidden.txt",
    "dot before the end": "dots..txt",
    "trailing space": "space.txt ",
    "trailing dot": "dot.txt.",
    "emoji": "😀👩‍👩‍👧.txt",
    "255 bytes of Chinese": "汉" * 83 + "xx.txt",
    "decomposed": unicodedata.normalize("NFD", "é.txt"),
    "right to left": "invoice\u202etxt.exe.txt",
    "Windows device": "CON.txt",
    "upper case": "REPORT.TXT",
    "percent": "100%.txt",
    "template": "{{ 7*7 }}{% x %}.txt",
}
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")


@dataclass
class Sent:
    rest: Rest
    base: str
    ids: dict[str, str]


@pytest.fixture(scope="module")
def sent(shared_stack: LiveStack) -> Iterator[Sent]:
    """All of them in one base, each with a code of its own, read by a worker."""
    rest = Rest(shared_stack.base_url).sign_up()
    words = {"vector_enabled": False, "keyword_enabled": True, "wiki_enabled": False, "graph_enabled": False}
    base, ids = rest.make_base("Names", indexing_strategy=words), {}
    for number, (what, name) in enumerate(NAMES.items()):
        answer = rest.upload(base, "x.txt", f"The code of this one is NAME-{number:04}.\n", fileName=name)
        assert answer.status == 200, (what, answer)
        ids[what] = answer.body["data"]["id"]
    for what, uid in ids.items():
        assert rest.wait(uid)["parse_status"] == "completed", what
    yield Sent(rest, base, ids)


def raw(rest: Rest, path: str, body: bytes | None = None) -> tuple[bytes, Any]:
    headers = {"Authorization": f"Bearer {rest.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{rest.base_url}/api/v1{path}", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read(), answer.headers


@pytest.mark.parametrize("what", list(NAMES))
def test_a_name_survives_everything(sent: Sent, what: str) -> None:
    rest, base, uid, name = sent.rest, sent.base, sent.ids[what], NAMES[what]
    number = list(NAMES).index(what)
    text = f"The code of this one is NAME-{number:04}.\n".encode()
    shown = rest.document(uid)
    assert shown["file_name"] and not BIDI.search(shown["file_name"] + shown["title"]) and shown["folder_path"] == ""
    listed = rest.call("GET", f"/knowledge-bases/{base}/knowledge?keyword={quote(shown['file_name'])}").body["data"]
    assert uid in [row["id"] for row in listed]
    (hit,) = [hit for hit in rest.search(base, f"NAME-{number:04}") if hit["knowledge_id"] == uid]
    assert (hit["knowledge_filename"], hit["knowledge_title"]) == (shown["file_name"], shown["title"])
    data, headers = raw(rest, f"/knowledge/{uid}/download")
    offered = unquote(headers["Content-Disposition"].split("filename*=UTF-8''")[1])
    assert data == text and offered == name, "the name it was given"
    packed, _headers = raw(rest, f"/knowledge-bases/{base}/knowledge/batch-download", f'{{"ids": ["{uid}"]}}'.encode())
    archive = zipfile.ZipFile(io.BytesIO(packed))
    (entry,) = archive.namelist()
    assert archive.read(entry) == text and not set(entry) & set('<>:"\\|?*/') and not entry.startswith("..")
    assert entry.rpartition(".")[0].upper() != "CON" and not BIDI.search(entry) and len(entry.encode()) <= 255
    rest.data("DELETE", f"/knowledge/{uid}")
    assert rest.call("GET", f"/knowledge/{uid}").status == 404
    until(lambda: not [hit for hit in rest.search(base, f"NAME-{number:04}") if hit["knowledge_id"] == uid], "it is found no more")


def test_names_in_a_chinese_archive_of_pages(shared_stack: LiveStack) -> None:
    """A book whose entries were named in GBK, as old archivers wrote them, is read; and an archive of files says what to do instead."""
    rest = Rest(shared_stack.base_url).sign_up()
    base = rest.make_base("Archives")
    opf = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="2.0"><metadata/><manifest>'
        '<item id="c" href="第一章.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    container = '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles><rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body><h1>第一章</h1><p>编号 GBK-7001。</p></body></html>'
    book = archive_in_gbk(
        {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "content.opf": opf, "第一章.xhtml": page}
    )
    uid = rest.upload(base, "书.epub", book).body["data"]["id"]
    assert rest.wait(uid)["parse_status"] == "completed"
    assert [hit["knowledge_id"] for hit in rest.search(base, "GBK-7001", disable_vector_match=True)] == [uid]
    refused = rest.upload(base, "文件.zip", archive_in_gbk({"说明.txt": "text"}))
    assert refused.status == 400 and refused.body["error"]["details"]["reason"] == "unsupported_type" and refused.body["error"]["message"]


class GbkInfo(zipfile.ZipInfo):
    """An entry whose name is bytes of GBK without the mark of UTF-8."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:
        return self.filename.encode("gbk"), 0


def archive_in_gbk(entries: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in entries.items():
            archive.writestr(GbkInfo(name), text)
    return out.getvalue()
