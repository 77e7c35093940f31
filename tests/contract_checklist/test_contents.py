"""Lines 14 to 19 and 22 of the contract's checklist: archives, passages, questions, metadata, search, pictures, copies."""

from __future__ import annotations

import json
import uuid
import zipfile
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from apps.common import storage
from apps.common.scope import unscoped
from apps.knowledge import downloads
from apps.knowledge.models import Chunk, Document, DocumentImage, KnowledgeBase
from apps.llm.models import Model
from apps.retrieval import services as retrieval_services
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from tests.contract_checklist.conftest import World, bytes_of, code, data
from tests.support.endpoint import Endpoint, serving


def test_line_14_an_archive_is_whole_or_not_at_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def upload(name: str, text: bytes) -> str:
        return str(world.member.upload(world.base, text, "x.txt", fileName=name).json()["data"]["id"])

    def archive(*ids: str) -> Any:
        return world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/batch-download", {"ids": list(ids)})

    one, clash, reserved = upload("f/a.txt", b"1"), upload("F/A.txt", b"22"), upload("NUL.txt", b"333")
    bare = str(world.make_document(world.base, "page", type="url").uid)
    answer = archive(one, clash, reserved, bare, one)
    assert (answer["Content-Type"], answer["Cache-Control"]) == ("application/zip", "private, no-store")
    packed = zipfile.ZipFile(bytes_of(answer))
    assert {name: packed.read(name) for name in packed.namelist()} == {"f/a.txt": b"1", "F/A (2).txt": b"22", "_NUL.txt": b"333"}
    assert code(archive(bare))[0] == 400, "nothing to pack"
    assert downloads.ARCHIVE_LIMIT == 512 * 1024 * 1024
    monkeypatch.setattr(downloads, "ARCHIVE_LIMIT", 6)
    assert archive(one, clash, reserved).status_code == 200, "as many bytes as are allowed"
    monkeypatch.setattr(downloads, "ARCHIVE_LIMIT", 5)
    assert code(archive(one, clash, reserved))[0] == 400
    taken = [downloads._archives.acquire(blocking=False) for _ in range(4)]
    try:
        assert taken == [True] * 4 and code(archive(one)) == (429, 1006), "the fifth at a time"
    finally:
        for _ in taken:
            downloads._archives.release()
    with unscoped("test data"):
        storage.remove(Document.objects.get(uid=clash).storage_path)
    broken = archive(one, clash)
    assert broken.status_code >= 500 and broken["Content-Type"].startswith("application/json")
    assert broken.json()["error"]["details"]["knowledge_id"] == clash


@pytest.mark.usefixtures("words_only")
def test_line_15_passages_keep_their_history_and_never_lose_an_edit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = world.member.upload(world.base, b"the zebra pump", "a.txt").json()["data"]
    world.parse()
    (chunk,) = data(world.member.get(f"chunks/{made['id']}"))
    url = f"chunks/{made['id']}/{chunk['id']}"
    edited = data(world.member.put(url, {"content": "the okapi pump", "expected_revision": 0}))
    assert (edited["content_revision"], edited["last_editor_id"], edited["index_status"]) == (1, str(world.member.user.pk), "ready")
    off = data(world.admin.put(url, {"is_enabled": False}))
    assert (off["content_revision"], world.search("okapi")) == (2, None), "turning it off counts, and is seen at once"
    same = data(world.member.put(url, {"content": "the okapi pump", "is_enabled": False}))
    assert same["content_revision"] == 2
    history = data(world.member.get(f"{url}/revisions"))
    assert [(row["revision"], row["content"], row["is_enabled"]) for row in history] == [
        (1, "the okapi pump", True),
        (0, "the zebra pump", True),
    ]
    late = world.member.put(url, {"content": "lost?", "expected_revision": 1})
    assert code(late) == (409, 1005) and data(world.member.get(f"chunks/by-id/{chunk['id']}"))["content"] == "the okapi pump"
    proxied = world.member.put(f"{world.organization}/{url}", {"content": "lost?", "expected_revision": 1})
    assert (proxied.status_code, proxied.json()["code"]) == (409, "KNOWLEDGE_CONFLICT")
    back = data(world.member.post(f"{url}/revert", {"revision": 0, "expected_revision": 2}))
    assert (back["content_revision"], back["content"], back["is_enabled"]) == (3, "the zebra pump", True)
    assert [row["revision"] for row in data(world.member.get(f"{url}/revisions"))] == [2, 1, 0]
    assert len(world.search("zebra")) == 1

    with monkeypatch.context() as away:
        away.setattr(retrieval_services, "index_documents", _index_is_away)
        kept = data(world.member.put(url, {"content": "the quagga pump"}))
    assert (kept["content"], kept["content_revision"], kept["index_status"]) == ("the quagga pump", 4, "failed")
    assert world.search("quagga") is None
    retried = data(world.member.put(url, {"content": "the quagga pump"}))
    assert (retried["content_revision"], retried["index_status"]) == (4, "ready"), "sent again it is tried again, with no new revision"
    assert len(world.search("quagga")) == 1


def _index_is_away(*_args: Any, **_options: Any) -> None:
    raise INDEX_FAILURES[0]("the index cannot be reached")


@pytest.fixture
def endpoint(settings: Any) -> Iterator[Endpoint]:
    settings.MODEL_ALLOW = ["127.0.0.0/8"]
    with serving() as made:
        yield made


def _with_model(world: World, endpoint: Endpoint) -> None:
    with unscoped("test data"):
        row = Model.objects.create(space=world.space, name="teller", type=Model.Type.CHAT, base_url=endpoint.url)
        KnowledgeBase.objects.filter(pk=world.base.pk).update(summary_model_id=str(row.uid))


def test_line_16_questions_are_added_changed_removed_made_anew_and_may_be_stale(world: World, endpoint: Endpoint) -> None:
    document = world.make_document(world.base, "a", chunks=1)
    (chunk,) = data(world.member.get(f"chunks/{document.uid}"))
    url = f"chunks/by-id/{chunk['id']}/questions"
    assert code(world.member.post(f"{url}/regenerate")) == (400, 1000), "no model writes for this base"
    first = data(world.member.put(url, {"question": "Which pump?"}))
    assert (first["question"], first["content_revision"]) == ("Which pump?", 0)
    changed = data(world.member.put(url, {"question": "Which valve?", "question_id": first["id"]}))
    assert changed == {**first, "question": "Which valve?"}
    world.member.put(f"chunks/{document.uid}/{chunk['id']}", {"content": "another text"})
    (kept,) = data(world.member.get(f"chunks/by-id/{chunk['id']}"))["metadata"]["generated_questions"]
    assert kept["content_revision"] == 0 and data(world.member.get(f"chunks/by-id/{chunk['id']}"))["content_revision"] == 1, "stale"
    for body in ({"question": " "}, {}, {"question": "x", "question_id": str(uuid.uuid4())}):
        assert code(world.member.put(url, body)) == (400, 1000)
    _with_model(world, endpoint)
    endpoint.says = '["One?", "Two?", "Three?", "Four?"]'
    made = data(world.member.post(f"{url}/regenerate"))
    assert [(row["question"], row["content_revision"]) for row in made] == [("One?", 1), ("Two?", 1), ("Three?", 1)]
    assert code(world.member.delete(url, {"question_id": first["id"]})) == (400, 1000), "it was replaced"
    assert world.member.delete(url, {"question_id": made[0]["id"]}).status_code == 200
    left = data(world.member.get(f"chunks/by-id/{chunk['id']}"))["metadata"]["generated_questions"]
    assert [row["question"] for row in left] == ["Two?", "Three?"]


def test_line_17_custom_metadata_has_limits_is_replaced_whole_and_refreshes_once(world: World, endpoint: Endpoint) -> None:
    _with_model(world, endpoint)
    document = world.make_document(world.base, "a", chunks=1, description="A summary.", summary_status="completed")
    url = f"knowledge/{document.uid}"

    def put(values: Any) -> Any:
        return world.member.put(url, {"custom_metadata": values})

    twenty = {f"k{n}": n for n in range(20)}
    assert data(put(twenty))["custom_metadata"] == twenty
    refused = {"k20": 1, **twenty}, {"x" * 65: 1}, {" ": 1}, {"": 1}, {"k": {"a": 1}}, {"k": [1]}, {"k": "x" * 1001}, {"é" * 33: 1}
    for values in refused:
        assert code(put(values)) == (400, 1010), values
    assert world.document(document.uid)["custom_metadata"] == twenty
    longest = {"é" * 32: "x" * 1000, "n": None, "b": False, "f": 1.5}
    answer = data(put(longest))
    assert (answer["custom_metadata"], answer["summary_status"]) == (longest, "pending"), "all others went"
    world.set(document, summary_status="completed")
    assert data(put(longest))["summary_status"] == "completed", "the same again refreshes nothing"
    assert data(put({}))["custom_metadata"] == {}
    bare = world.make_document(world.base, "b", chunks=1)
    assert data(world.member.put(f"knowledge/{bare.uid}", {"custom_metadata": {"k": 1}}))["summary_status"] == "none"


def test_line_18_each_leg_alone_and_both_say_why_a_passage_is_there(world: World) -> None:
    parts = ("The zebra pump. " * 20, "Opening hours of the canteen. " * 15, "ERR-4021 is heat. " * 20)
    text = "\n\n".join(f"# Part {n}\n\n{words}" for n, words in enumerate(parts))
    made = world.member.upload(world.base, text.encode(), "a.md").json()["data"]
    world.parse()
    words = world.search("zebra pump", disable_vector_match=True)
    assert words[0]["match_type"] == 1 and "zebra" in words[0]["content"]
    meaning = world.search("zebra pump", disable_keywords_match=True)
    assert {row["match_type"] for row in meaning} == {0} and "zebra" in meaning[0]["content"]
    both = world.search("zebra pump")
    assert {row["match_type"] for row in both} <= {0, 1} and both[0]["id"] == words[0]["id"]
    assert world.search("quagga", disable_vector_match=True) is None
    assert world.search("zebra", disable_vector_match=True, disable_keywords_match=True) is None
    chunk = words[0]["id"]
    world.member.put(f"chunks/{made['id']}/{chunk}", {"is_enabled": False})
    assert world.search("zebra", disable_vector_match=True) is None
    assert chunk not in {row["id"] for row in world.search("zebra pump", disable_keywords_match=True) or []}
    world.member.put(f"chunks/{made['id']}/{chunk}", {"is_enabled": True})
    alone = world.search("zebra", match_count=1, disable_vector_match=True)
    context = world.search("zebra", match_count=1, disable_vector_match=True, skip_context_enrichment=False)
    assert len(alone) == 1 and context[0]["id"] == alone[0]["id"]
    assert {row["match_type"] for row in context[1:]} <= {2, 4, 5} and len(context) > 1, "what stands around it comes after"
    url = f"knowledge-bases/{world.base.uid}/hybrid-search"
    assert code(world.member.post(url, {"query_text": ""}))[0] == 400


def _picture(world: World, name: str, **attrs: Any) -> None:
    document = world.make_document(world.base, name, chunks=1)
    with unscoped("test data"):
        chunk = Chunk.objects.get(document=document)
        DocumentImage.objects.create(
            space_id=world.space.pk, kb=world.base, document=document, chunk=chunk, number=0, sha256="0" * 64, media_type="image/png",
            size_bytes=1, width=9, height=9, storage_path="none", caption=name, attrs=attrs or None,
        )  # fmt: skip


def test_line_19_pictures_are_filtered_in_silence_and_keep_what_was_seen(world: World) -> None:
    text, visual = "system:contain.text", "system:contain.data_visual"
    odd = {"zero": 0, "none": None, "no": False, "more": {"a": [1]}}
    _picture(world, "few", **{text: "none", visual: False}, **odd)
    _picture(world, "many", **{text: "block", visual: True})
    _picture(world, "unseen")

    def listed(**query: Any) -> list[str]:
        asked = "&".join(f"{name}={quote(value if isinstance(value, str) else json.dumps(value))}" for name, value in query.items())
        rows = data(world.member.get(f"knowledge-bases/{world.base.uid}/images?{asked}"))
        return [row["source_name"] for row in reversed(rows)]

    every = ["few", "many", "unseen"]
    assert listed() == every
    assert listed(attr_filters={text: ["block"]}) == ["many"]
    assert listed(attr_filters={text: ["block", "none"], visual: ["true"]}) == ["many"]
    for ignored in ("{", "[]", '"x"', {"made:up": ["x"]}, {"builtin:caption": ["few"]}, {text: ["odd"]}):
        assert listed(attr_filters=ignored) == listed(attr_rules=ignored) == every
    assert listed(search_in="made:up", keyword="FEW") == ["few"] and set(listed(sort_by="made:up")) == set(every)
    assert listed(attr_rules={text: {"none": "off", "block": "off"}}) == ["unseen"]
    assert listed(attr_rules={text: {"block": "off"}, visual: {"true": "on"}}) == every, "on beats off"
    rows = {row["source_name"]: row for row in data(world.member.get(f"knowledge-bases/{world.base.uid}/images"))}
    assert rows["few"]["attrs"] == {text: "none", visual: False, **odd} and "attrs" not in rows["unseen"]


@pytest.mark.usefixtures("words_only")
def test_line_22_a_copy_mirrors_refuses_and_tells_its_own_people_where_it_is(world: World) -> None:
    for number in range(3):
        world.member.upload(world.base, f"text {number}".encode(), f"{number}.txt")
    target = world.make_base(world.space, "Target")
    world.member.upload(target, b"text 1", "one.txt")
    world.member.upload(target, b"gone after it", "gone.txt")
    world.parse()
    ids = {"source_id": str(world.base.uid), "target_id": str(target.uid)}
    world.set(target, embedding_model_id=str(uuid.uuid4()))
    assert code(world.admin.post("knowledge-bases/copy", ids)) == (400, 1000)
    world.set(target, embedding_model_id="")
    started = data(world.admin.post("knowledge-bases/copy", ids))
    assert (started["source_id"], started["target_id"]) == (ids["source_id"], ids["target_id"])
    progress = f"knowledge-bases/copy/progress/{started['task_id']}"
    assert data(world.member.get(progress))["status"] == "pending"
    world.parse()
    done = data(world.member.get(progress))
    assert (done["status"], done["progress"], done["total"], done["processed"]) == ("completed", 100, 3, 3)
    assert (done["source_id"], done["target_id"]) == (ids["source_id"], ids["target_id"]) and done["created_at"] > 1_700_000_000
    rows = data(world.member.get(f"knowledge-bases/{target.uid}/knowledge"))
    assert sorted(row["file_name"] for row in rows) == ["0.txt", "2.txt", "one.txt"], "what it had and the source has stays as it is"
    assert code(world.outsider.get(progress)) == (404, 1003)
    assert code(world.outsider.get(progress.replace(f"kb_clone_{world.space.pk}_", f"kb_clone_{world.other_space.pk}_"))) == (404, 1003)
    for garbage in ("garbage", "kb_clone_x_1_00000000_y", f"kg_move_{world.space.pk}_1_00000000_y"):
        assert code(world.member.get(f"knowledge-bases/copy/progress/{garbage}"))[0] in (400, 404), garbage
    assert code(world.member.get("knowledge-bases/copy/progress/garbage")) == (400, 1000)
