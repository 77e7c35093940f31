"""The worker's side of an import, against a real server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from apps.common import storage
from apps.common.errors import InvalidInput, TransientError
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document
from apps.knowledge.services import document_fetch_source


@pytest.fixture
def site(settings: Any) -> Iterator[dict[str, tuple[int, str, bytes]]]:
    """{path: (status, content type, body)} of a server on the loopback; `site["base"]` is not a path but its address."""
    pages: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_args: Any) -> None: ...

        def do_GET(self) -> None:
            status, media_type, body = pages.get(self.path, (404, "text/plain", b"none"))
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.FETCH_ALLOW = ["127.0.0.1"]
    pages["base"] = f"http://127.0.0.1:{server.server_port}"
    yield pages
    server.shutdown()
    server.server_close()


def imported(world: Any, address: str, **body: Any) -> Document:
    answer = world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/url", {"url": address, **body})
    assert answer.status_code == 201, answer.content
    with unscoped("test look"):
        return Document.objects.select_related("kb").get(uid=answer.json()["data"]["id"])


def fetched(world: Any, document: Document) -> Document:
    with space_scope(world.space.pk):
        return document_fetch_source(actor=world.admin.actor, document=document)


@pytest.mark.parametrize("media_type", ["text/html; charset=gbk", "text/html", "text/html; charset=utf-8", "text/html; charset=iso-8859-1"])
def test_a_page_is_kept_byte_for_byte(world: Any, site: Any, stored: Any, media_type: str) -> None:
    body = '<html><head><meta charset="gbk"><title>安全</title></head><body><p>传感器安装说明</p></body></html>'.encode("gbk")
    site["/page"] = (200, media_type, body)
    document = fetched(world, imported(world, f"{site['base']}/page"))
    row = world.fresh(document)
    assert stored() == [row.storage_path] and storage.read(row.storage_path).read() == body
    assert (row.file_size, row.file_type, row.metadata["http_content_type"]) == (len(body), "html", media_type)
    hash_of_address = row.file_hash
    assert fetched(world, row).storage_path == row.storage_path, "the same bytes are not stored again"
    site["/page"] = (200, media_type, body + b"<p>more</p>")
    with unscoped("test look"):
        row = Document.objects.select_related("kb").get(pk=row.pk)
    old = row.storage_path
    newer = fetched(world, row)
    assert newer.storage_path != old
    assert newer.file_hash == hash_of_address, "a page is known by its address"


def test_files_behind_addresses(world: Any, site: Any) -> None:
    site["/a.csv"] = (200, "text/csv", b"a,b\n1,2\n")
    document = fetched(world, imported(world, f"{site['base']}/a.csv"))
    assert (document.type, document.file_type, document.file_size) == ("file_url", "csv", 8)
    assert world.member.get(f"knowledge/{document.uid}/download").getvalue() == b"a,b\n1,2\n"
    site["/big.csv"] = (200, "text/csv", b"x" * (10 * 1024 * 1024 + 1))
    with pytest.raises(InvalidInput) as caught:
        fetched(world, imported(world, f"{site['base']}/big.csv"))
    assert caught.value.code == "too_large"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        ((404, "text/html", b"no"), InvalidInput, "fetch_failed"),
        ((403, "text/html", b"no"), InvalidInput, "fetch_failed"),
        ((503, "text/html", b"no"), TransientError, "fetch_failed"),
        ((429, "text/html", b"no"), TransientError, "fetch_failed"),
        ((200, "text/html", b""), InvalidInput, "empty"),
        ((200, "text/html", b"  \n"), InvalidInput, "blank"),
    ],
)
def test_answers_that_are_no_documents(world: Any, site: Any, stored: Any, answer: Any, kind: Any, code: str) -> None:
    site["/x"] = answer
    with pytest.raises(kind) as caught:
        fetched(world, imported(world, f"{site['base']}/x"))
    assert caught.value.code == code
    assert stored() == []


def test_a_document_deleted_meanwhile_gets_no_file(world: Any, site: Any, stored: Any) -> None:
    site["/x"] = (200, "text/html", b"<p>text</p>")
    document = imported(world, f"{site['base']}/x")
    world.member.delete(f"knowledge/{document.uid}")
    from apps.common.errors import Conflict

    with pytest.raises(Conflict):
        fetched(world, document)
    assert stored() == []
