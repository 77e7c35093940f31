"""The gallery over REST, bytes behind references, signed links (contract knowledge 4.19, 9)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from django.core.files.base import ContentFile
from django.test import Client

from apps.common import storage
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Chunk, DocumentImage
from apps.knowledge.selectors import images as image_selectors

PNG = b"\x89PNG\r\n\x1a\nbytes"


def make_image(world: Any, base: Any, title: str = "a.md", *, data: bytes = PNG, enabled: bool = True, **values: Any) -> DocumentImage:
    document = world.make_document(base, title, chunks=1)
    with unscoped("test data"):
        chunk = Chunk.objects.get(document=document)
        key = storage.write(f"{base.space_id}/{base.uid}/{document.uid}/images/1/x.png", ContentFile(data))
        given = {"number": 0, "sha256": "0" * 64, "media_type": "image/png", "size_bytes": len(data), "width": 120, "height": 90}
        image = DocumentImage.objects.create(
            space_id=base.space_id, kb=base, document=document, chunk=chunk, storage_path=key, **{**given, **values}
        )
        info = [{"url": image.url, "original_url": image.url, "caption": image.caption, "ocr_text": image.ocr_text}]
        Chunk.objects.filter(pk=chunk.pk).update(image_info=json.dumps(info), is_enabled=enabled)
        image.refresh_from_db()
    return image


def listed(world: Any, query: str = "") -> list[str]:
    answer = world.member.get(f"knowledge-bases/{world.base.uid}/images?{query}")
    assert answer.status_code == 200, answer.content
    return [row["source_name"] for row in answer.json()["data"]]


def test_the_list_has_the_contract_shape(world: Any) -> None:
    image = make_image(world, world.base, caption="Pump", ocr_text="ERR-4021")
    make_image(world, world.other_base, "foreign.md")
    answer = world.member.get(f"knowledge-bases/{world.base.uid}/images").json()
    assert {name: answer[name] for name in ("success", "total", "page", "page_size")} == {
        "success": True, "total": 1, "page": 1, "page_size": 20,
    }  # fmt: skip
    (row,) = answer["data"]
    assert set(row) == {
        "id", "chunk_id", "knowledge_id", "source_name", "chunk_type", "url", "original_url", "caption", "ocr_text", "is_enabled",
        "status", "width", "height", "created_at", "updated_at",
    }  # fmt: skip
    assert (row["id"], row["url"], row["status"], row["chunk_type"]) == (f"{row['chunk_id']}#0", f"resource://{image.uid}", 2, "text")
    assert world.outsider.get(f"knowledge-bases/{world.base.uid}/images").status_code == 404


def test_filters_search_and_order(world: Any) -> None:
    make_image(world, world.base, "one", caption="b pump", ocr_text="alpha")
    make_image(world, world.base, "two", caption="a valve", ocr_text="PUMP", enabled=False)
    make_image(world, world.base, "three", caption="c")
    assert listed(world) == ["three", "two", "one"]
    assert listed(world, "sort_by=builtin:caption&sort_order=asc") == ["two", "one", "three"]
    assert listed(world, "sort_by=builtin:ocr_text") == ["three", "two", "one"], "not for sorting: falls back to the date"
    assert listed(world, "keyword=pump") == ["two", "one"]
    assert listed(world, "keyword=pump&search_in=builtin:caption,builtin:created_at") == ["one"]
    assert listed(world, "keyword=pump&search_in=builtin:created_at") == ["two", "one"]
    assert (listed(world, "is_enabled=true"), listed(world, "is_enabled=no")) == (["three", "one"], ["two"])
    assert listed(world, "page=2&page_size=2") == ["one"]
    assert world.member.get(f"knowledge-bases/{world.base.uid}/images?page_size=1001").status_code == 400


def test_attributes_filter_and_what_cannot_be_used_is_ignored(world: Any) -> None:
    make_image(world, world.base, "none", attrs={"system:contain.text": "none", "system:contain.data_visual": False, "x": 0, "y": None})
    make_image(world, world.base, "block", attrs={"system:contain.text": "block", "system:contain.data_visual": True})
    make_image(world, world.base, "unseen")

    def by(name: str, value: Any) -> list[str]:
        return listed(world, f"{name}={quote(value if isinstance(value, str) else json.dumps(value))}")

    assert by("attr_filters", {"system:contain.text": ["block"]}) == ["block"]
    assert by("attr_filters", {"system:contain.text": ["block", "none"], "system:contain.data_visual": ["false"]}) == ["none"]
    assert by("attr_filters", {"builtin:caption": ["x"], "made:up": ["y"], "system:contain.text": ["odd"]}) == ["unseen", "block", "none"]
    assert by("attr_rules", {"system:contain.text": {"none": "off"}}) == ["unseen", "block"]
    assert by("attr_rules", {"system:contain.text": {"none": "off", "block": "off"}, "system:contain.data_visual": {"true": "on"}}) == [
        "unseen", "block",
    ]  # fmt: skip
    for broken in ("{", "[1]", '"x"', '{"system:contain.text": 5}'):
        assert len(by("attr_filters", broken)) == len(by("attr_rules", broken)) == 3
    row = next(row for row in world.member.get(f"knowledge-bases/{world.base.uid}/images").json()["data"] if row["source_name"] == "none")
    assert row["attrs"] == {"system:contain.text": "none", "system:contain.data_visual": False, "x": 0, "y": None}


def test_gallery_config_names_what_the_list_takes(world: Any) -> None:
    data = world.member.get(f"knowledge-bases/{world.base.uid}/gallery-config").json()["data"]
    assert (data["attribute_sources"], data["mode"], data["status"]) == (["builtin", "system"], "all", {})
    usage = {row["id"]: tuple(row["usage"].values()) for row in data["attributes"]}
    assert usage == {
        "builtin:caption": (False, True, True),
        "builtin:ocr_text": (False, True, False),
        "builtin:created_at": (False, False, True),
        "builtin:updated_at": (False, False, True),
        "builtin:is_enabled": (True, False, False),
        "system:contain.text": (True, False, False),
        "system:contain.data_visual": (True, False, False),
    }
    extent = next(row for row in data["attributes"] if row["id"] == "system:contain.text")
    assert [value["value"] for value in extent["values"]] == ["none", "sparse", "block"]


def test_image_info_is_changed_by_admins_and_shown_in_the_list(world: Any) -> None:
    image = make_image(world, world.base)
    url = f"knowledge/image/{image.document.uid}/{image.chunk.uid}"
    entry = {"url": image.url, "caption": "Opened pump", "ocr_text": "AB-12", "attrs": {"schema": 1, "source": "x", "attrs": {"k": False}}}
    assert world.member.put(url, {"image_info": json.dumps([entry])}).status_code == 403
    answer = world.admin.put(url, {"image_info": json.dumps([entry])})
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    row = world.member.get(f"knowledge-bases/{world.base.uid}/images").json()["data"][0]
    assert (row["caption"], row["ocr_text"], row["attrs"]) == ("Opened pump", "AB-12", {"k": False})
    for wrong in ("{", "{}", '[{"caption": "no url"}]', json.dumps([{**entry, "caption": 5}]), '[{"url": "https://elsewhere/x.png"}]'):
        assert world.admin.put(url, {"image_info": wrong}).status_code == 400, wrong
    assert json.loads(world.fresh(image.chunk).image_info) == [entry]


def test_bytes_behind_a_reference(world: Any) -> None:
    image = make_image(world, world.base)
    url = f"knowledge-bases/{world.base.uid}/files?file_path="
    answer = world.member.get(f"{url}{quote(image.url)}")
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, PNG)
    assert (answer["Content-Type"], answer["X-Content-Type-Options"], answer["Cache-Control"]) == (
        "image/png", "nosniff", "private, max-age=86400",
    )  # fmt: skip
    assert answer["Content-Disposition"].startswith("inline")
    assert world.member.get(f"{url}local://{image.storage_path}").status_code == 200
    assert world.member.get(f"{url}storage://main/{image.storage_path}").status_code == 200
    assert world.member.get(f"files?file_path={image.url}").status_code == 200


@pytest.mark.parametrize(
    ("locator", "status", "body"),
    [
        ("", 400, {"error": "missing required parameter: file_path"}),
        ("resource://../x", 400, {"error": "invalid file path"}),
        ("resource://x", 400, {"error": "invalid file path"}),
        ("/etc/passwd", 400, {"error": "invalid file path"}),
        ("file:///etc/passwd", 400, {"error": "invalid file path"}),
        ("local://1/../2", 400, {"error": "invalid file path"}),
        ("local://999999/abc/original", 403, {"error": "forbidden: file path not accessible"}),
        ("resource://00000000-0000-4000-8000-000000000000", 404, None),
    ],
)
def test_refusals_of_the_byte_route(world: Any, locator: str, status: int, body: Any) -> None:
    answer = world.member.get(f"knowledge-bases/{world.base.uid}/files?file_path={quote(locator)}")
    assert answer.status_code == status
    assert answer.content == b"" if body is None else answer.json() == body


def test_files_of_others_stay_theirs(world: Any) -> None:
    foreign = make_image(world, world.other_base)
    mine = make_image(world, world.make_base(world.space, "Second"))
    url = f"knowledge-bases/{world.base.uid}/files?file_path="
    assert world.member.get(f"{url}{foreign.url}").status_code == 404, "as if it did not exist"
    refused = world.member.get(f"{url}{mine.url}")
    assert (refused.status_code, refused.json()) == (403, {"error": "forbidden: resource not accessible"})
    assert world.member.get(f"{url}local://{foreign.storage_path}").status_code == 403
    narrow = world.key(world.space, capabilities=["retrieve"], kb_uids=[str(mine.kb.uid)])
    assert narrow.get(f"/api/v1/knowledge-bases/{mine.kb.uid}/files?file_path={mine.url}").status_code == 403
    wide = world.key(world.space, capabilities=["retrieve"])
    assert wide.get(f"/api/v1/knowledge-bases/{mine.kb.uid}/files?file_path={mine.url}").status_code == 200


def test_active_content_comes_as_an_attachment(world: Any) -> None:
    image = make_image(world, world.base, media_type="image/svg+xml", data=b"<svg onload='alert(1)'/>")
    answer = world.member.get(f"knowledge-bases/{world.base.uid}/files?file_path={image.url}")
    assert (answer["Content-Type"], answer["Content-Disposition"][:10]) == ("application/octet-stream", "attachment")


def test_a_signed_link_opens_one_picture_until_it_ends(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    image = make_image(world, world.base)
    path = image_selectors.public_path(image)
    nobody = Client()
    answer = nobody.get(path)
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, PNG)
    assert nobody.head(path).status_code == 200
    assert nobody.get(path[:-1] + ("A" if path[-1] != "A" else "B")).status_code == 404
    assert nobody.get("/r/nonsense").status_code == 404
    monkeypatch.setattr(image_selectors, "LINK_LIFETIME_S", -1)
    assert nobody.get(path).status_code == 404, "too old"
    monkeypatch.undo()
    assert world.member.delete(f"knowledge/{image.document.uid}").status_code == 200
    assert nobody.get(path).status_code == 404, "deleted means gone"


def test_a_presigned_link_says_its_file_its_end_and_is_good_for_nothing_else(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    image = make_image(world, world.base)
    shown = world.member.get(f"knowledge-bases/{world.base.uid}/images?resource_urls=public").json()["data"][0]
    assert "/r/" in shown["url"] and "/api/v1/files/presigned?" in shown["original_url"]
    nobody, path = Client(), shown["original_url"].partition("testserver")[2]
    answer = nobody.get(path)
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, PNG)
    assert nobody.head(path).status_code == 200
    given = dict(parse_qsl(path.partition("?")[2]))
    assert given["file_path"] == image.url
    other = make_image(world, world.other_base)
    stored = f"local://{image.storage_path}"
    for changed in (
        {"file_path": other.url},
        {"file_path": stored},
        {"expires": "99999999999"},
        {"tenant_id": str(world.other_space.pk)},
        {"sig": ""},
    ):
        assert nobody.get(f"/api/v1/files/presigned?{urlencode({**given, **changed})}").status_code == 404, changed
    assert nobody.get(image_selectors.presigned_path(world.space.pk, stored)).status_code == 200, "stored paths are signed alike"
    assert nobody.get(image_selectors.presigned_path(world.space.pk, other.url)).status_code == 404, "never across spaces"
    assert nobody.get(image_selectors.presigned_path(world.space.pk, image.url, lifetime_s=-1)).status_code == 404, "over"
    assert world.member.delete(f"knowledge/{image.document.uid}").status_code == 200
    assert nobody.get(path).status_code == 404, "deleted means gone"
    narrow = world.key(world.space, capabilities=["retrieve"], kb_uids=[str(world.base.uid)])
    assert narrow.get(f"/api/v1/knowledge-bases/{world.base.uid}/images?resource_urls=public").status_code == 403


def test_links_replace_handles_only_where_asked(world: Any) -> None:
    image = make_image(world, world.base)
    text = json.dumps([{"url": image.url}])
    with space_scope(world.space.pk, "test"):
        links = image_selectors.public_links(actor=world.member.actor, texts=[text])
    (shown,) = json.loads(image_selectors.with_links(text, links, "https://kb.example"))
    assert (
        shown["url"].startswith("https://kb.example/r/")
        and Client().get(shown["url"].removeprefix("https://kb.example")).status_code == 200
    )
    with space_scope(world.other_space.pk, "test"):
        assert image_selectors.public_links(actor=world.outsider.actor, texts=[text]) == {}
    body = {"query_text": "x"}
    url = f"knowledge-bases/{world.base.uid}/hybrid-search?resource_urls="
    assert world.member.post(f"{url}sideways", body).status_code == 400
    assert world.member.post(f"{url}public", body).status_code == 200
    narrow = world.key(world.space, capabilities=["retrieve"], kb_uids=[str(world.base.uid)])
    address = f"/api/v1/{url}"
    assert narrow.post(f"{address}public", json.dumps(body), content_type="application/json").status_code == 403
    assert narrow.post(f"{address}handle", json.dumps(body), content_type="application/json").status_code == 200
