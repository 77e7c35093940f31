"""The main job by REST: from signing up to a passage that says where it stands, with one file of every kind."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.folder import FACTS, files, sign_png
from tests.support.rest import Rest
from tests.support.stack import LiveStack

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

FONT = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Bold.ttc")


@pytest.fixture(params=["filesystem", "redis"])
def stack(request: pytest.FixtureRequest, live_stack: Callable[..., LiveStack]) -> LiveStack:
    return live_stack(broker_url="" if request.param == "filesystem" else request.getfixturevalue("redis_server"))


def test_a_folder_of_files_becomes_findable_passages_with_their_places(stack: LiveStack) -> None:
    rest = Rest(stack.base_url).sign_up("alice")
    me = rest.data("GET", "/auth/me")
    assert me["user"]["is_system_admin"] is True
    base = rest.make_base("产品与售后")
    uploaded = {}
    for path, data in files().items():
        answer = rest.upload(base, path.rsplit("/", 1)[-1], data, fileName=path)
        assert answer.status == 200, (path, answer)
        assert (answer.body["data"]["parse_status"], answer.body["data"]["enable_status"]) == ("pending", "disabled")
        uploaded[path] = answer.body["data"]["id"]
    for path, document in uploaded.items():
        done = rest.wait(document, timeout_s=240)
        assert (path, done["parse_status"], done["error_message"]) == (path, "completed", "")
        assert done["vector_count"] == done["chunk_count"] > 0
    for path, (question, words, place) in FACTS.items():
        hits = rest.search(base, question)
        assert hits, path
        assert (path, hits[0]["knowledge_id"]) == (path, uploaded[path])
        assert words in hits[0]["content"]
        places = hits[0].get("source_locators", [])
        assert any(place.items() <= where.items() for where in places) or not place, (path, places)
    tree = rest.data("GET", f"/knowledge-bases/{base}/knowledge/folders")
    assert [(folder["path"], folder["document_count"]) for folder in tree["folders"]] == [("价格", 2), ("培训", 1), ("手册", 2)]
    _another_space_sees_nothing(stack, base, list(uploaded.values()))


def _another_space_sees_nothing(stack: LiveStack, base: str, documents: list[str]) -> None:
    """Whatever address names a foreign id answers like one that names an id nobody has."""
    other = Rest(stack.base_url).sign_up("mallory")
    nobody = str(uuid.uuid4())
    for template in (
        "/knowledge-bases/{}",
        "/knowledge-bases/{}/knowledge",
        "/knowledge-bases/{}/tags",
        "/knowledge-bases/{}/knowledge/folders",
    ):
        mine, none = other.call("GET", template.format(base)), other.call("GET", template.format(nobody))
        assert (mine.status, mine.body) == (none.status, none.body) and mine.status == 404
    for template in ("/knowledge/{}", "/chunks/{}", "/knowledge/{}/stages", "/knowledge/{}/download", "/knowledge/{}/preview"):
        mine, none = other.call("GET", template.format(documents[0])), other.call("GET", template.format(nobody))
        assert (mine.status, mine.body) == (none.status, none.body) and mine.status == 404
    assert other.call("POST", f"/knowledge-bases/{base}/hybrid-search", {"query_text": "ERR-4021"}).status == 404
    assert other.call("POST", "/knowledge-search", {"query": "ERR-4021", "knowledge_base_ids": [base]}).status == 404


@pytest.mark.ocr
def test_a_picture_of_a_sign_is_read(live_stack: Callable[..., LiveStack]) -> None:
    if not FONT.is_file():
        pytest.skip("the font that draws the sign (fonts-noto-cjk) is not installed")
    stack = live_stack()
    rest = Rest(stack.base_url).sign_up()
    base = rest.make_base()
    document = rest.upload(base, "sign.png", sign_png("安全出口 EXIT 27")).body["data"]["id"]
    done = rest.wait(document, timeout_s=300)
    assert (done["parse_status"], done["error_message"]) == ("completed", "")
    assert [hit["knowledge_id"] for hit in rest.search(base, "安全出口")] == [document]
