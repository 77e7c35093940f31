"""Lines 4, 5, 6, 9, 10 and 21 of the contract's checklist: numbers of ids, folders, tags, order."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.knowledge.models import Document, Tag
from tests.contract_checklist.conftest import World, bytes_of, code, data
from tests.support.rows import Filed, make_documents


def _ids(world: World, count: int) -> list[str]:
    made = make_documents(world.base, [Filed(f"{n:03}.md", ("text",)) for n in range(count)], storage_path="k")
    return [str(document.uid) for document in made]


def _batch(world: World, act: str, ids: list[str]) -> Any:
    kb, member = str(world.base.uid), world.member
    if act == "batch-get":
        return member.get(f"knowledge/batch?ids={','.join(ids)}&kb_id={kb}")
    if act == "zip":
        return member.post(f"knowledge-bases/{kb}/knowledge/batch-download", {"ids": ids})
    if act == "folder":
        return member.post("knowledge/folder", {"kb_id": kb, "knowledge_ids": ids, "folder_path": "x"})
    return member.post(f"knowledge/{act}", {"kb_id": kb, "ids": ids})


COUNTED = {"batch-delete": "deleted_count", "batch-reparse": "reparse_count", "folder": "moved_count"}


@pytest.mark.parametrize("act", ["batch-delete", "batch-reparse", "folder", "batch-get", "zip"])
def test_line_04_one_to_two_hundred_ids_after_blanks_and_repeats_collapse(world: World, act: str) -> None:
    ids = _ids(world, 201)
    if act == "zip":  # a document without any original is left out, so these have their text
        for number in (0, 1):
            ids[number] = world.write(f"note {number}", "text", "draft")["id"]

    def many(wanted: list[str]) -> int:
        answer = _batch(world, act, wanted)
        assert answer.status_code == 200, answer.content
        if act == "batch-get":
            return len(data(answer))
        return int(data(answer)[COUNTED[act]])

    for none in ([], [" ", ""]):
        assert code(_batch(world, act, none))[0] == 400
    assert code(_batch(world, act, ids))[0] == 400
    with unscoped("test look"):
        untouched = Document.objects.filter(kb=world.base, deleted_at__isnull=True, folder_path="", parse_status="completed")
        assert untouched.count() == 201, "201 ids change nothing"
    if act == "zip":
        # Its 200 are counted as they come (4.16), blanks and repeats go afterwards.
        import zipfile

        names = zipfile.ZipFile(bytes_of(_batch(world, act, [ids[0], " ", ids[0], ids[1]]))).namelist()
        assert names == ["note 0.md", "note 1.md"]
        return
    assert many([ids[200]]) == 1
    assert many([*ids[:200], ids[0], " ", f" {ids[1]} "]) == 200


def test_line_05_absent_empty_and_named_folders_with_and_without_their_subtrees(world: World) -> None:
    for name, folder in (("root", ""), ("one", "a"), ("below", "a/b"), ("deep", "a/b/c"), ("sibling", "ab")):
        world.make_document(world.base, name, folder_path=folder)

    def listed(query: str) -> set[str]:
        return {row["title"] for row in data(world.member.get(f"knowledge-bases/{world.base.uid}/knowledge?{query}"))}

    everything = {"root", "one", "below", "deep", "sibling"}
    assert listed("") == listed("folder_recursive=true") == everything
    assert listed("folder_path=") == {"root"}
    assert listed("folder_path=&folder_recursive=true") == everything
    assert (
        listed("folder_path=a")
        == listed("folder_path=a&folder_recursive=false")
        == listed("folder_path=a&folder_recursive=junk")
        == {"one"}
    )
    assert listed("folder_path=a&folder_recursive=true") == {"one", "below", "deep"}, "and nothing of `ab`"
    assert listed("folder_path=%2Fa%5Cb%2F&folder_recursive=true") == {"below", "deep"}
    assert listed("folder_path=nowhere&folder_recursive=true") == set()


def test_line_06_renaming_merges_refuses_and_normalizes(world: World) -> None:
    for name, folder in (("one", "a"), ("two", "a/b"), ("three", "ab"), ("four", "c"), ("one", "c")):
        world.make_document(world.base, name, folder_path=folder)

    def rename(source: str, target: str) -> Any:
        return world.member.put(f"knowledge-bases/{world.base.uid}/knowledge/folders", {"from": source, "to": target})

    def folders() -> dict[str, int]:
        with unscoped("test look"):
            paths = list(Document.objects.filter(kb=world.base).values_list("folder_path", flat=True))
        return {path: paths.count(path) for path in paths}

    assert data(rename("a", "a")) == {"moved_count": 0, "folder_path": "a"}
    assert data(rename("nowhere", "b")) == {"moved_count": 0, "folder_path": "b"}
    for source, target in (("a", "a/b"), ("a", "a/new"), ("", "x"), ("a", ""), ("..", "x"), ("a", " . / .. ")):
        assert code(rename(source, target))[0] == 400, (source, target)
    assert folders() == {"a": 1, "a/b": 1, "ab": 1, "c": 2}
    assert data(rename("a", "c")) == {"moved_count": 2, "folder_path": "c"}, "an existing folder takes it in, two of one name included"
    assert folders() == {"c": 3, "c/b": 1, "ab": 1}
    assert data(rename("\\c\\", " d. /../ e.. ")) == {"moved_count": 4, "folder_path": "d/e"}
    assert folders() == {"d/e": 3, "d/e/b": 1, "ab": 1}
    deep = "/".join(str(level) for level in range(1, 18))
    answer = rename("ab", deep)
    assert data(answer) == {"moved_count": 1, "folder_path": deep.rpartition("/")[0]}, "a seventeenth level is cut"
    assert code(rename("ab\x01", "x")) == (400, 1010)
    long = rename("d", "é" * 100)
    assert data(long)["folder_path"] == "é" * 64, "a name is at most 128 bytes and never cut inside a character"


def test_line_09_no_tags_is_null_and_tags_stay_with_their_base(world: World) -> None:
    document, second = world.make_document(world.base, "a"), world.make_base(world.space, "Second")
    tag = data(world.member.post(f"knowledge-bases/{world.base.uid}/tags", {"name": "red"}))
    foreign = data(world.member.post(f"knowledge-bases/{second.uid}/tags", {"name": "red"}))
    uid = str(document.uid)

    def put(*tags: str) -> Any:
        return world.member.put("knowledge/tags", {"updates": {uid: list(tags)}})

    assert world.document(uid)["tags"] is None
    assert put(tag["id"]).json() == {"success": True}
    assert [each["id"] for each in world.document(uid)["tags"]] == [tag["id"]]
    assert data(world.member.get(f"knowledge/batch?ids={uid}"))[0]["tags"] is None, "never loaded there"
    assert code(put(foreign["id"]))[0] == code(put(tag["id"], str(uuid.uuid4())))[0] == 400
    assert [each["id"] for each in world.document(uid)["tags"]] == [tag["id"]]
    assert put().status_code == 200 and world.document(uid)["tags"] is None
    put(tag["id"])
    body = {"source_kb_id": str(world.base.uid), "target_kb_id": str(second.uid), "knowledge_ids": [uid], "mode": "reuse_vectors"}
    data(world.admin.post("knowledge/move", body))
    world.parse()
    moved = world.document(uid)
    assert (moved["knowledge_base_id"], moved["tags"]) == (str(second.uid), None)


def test_line_10_a_tag_in_use_stays_unless_force_is_said(world: World) -> None:
    document = world.make_document(world.base, "a")
    tags = f"knowledge-bases/{world.base.uid}/tags"
    used, unused = (data(world.member.post(tags, {"name": name}))["id"] for name in ("used", "unused"))
    world.member.put("knowledge/tags", {"updates": {str(document.uid): [used]}})
    refused = world.member.delete(f"{tags}/{used}", {})
    assert code(refused) == (400, 1000)
    assert [tag["id"] for tag in world.document(document.uid)["tags"]] == [used]
    assert world.member.delete(f"{tags}/{used}?force=false", {}).status_code == 400
    assert world.member.delete(f"{tags}/{unused}", {}).json() == {"success": True}
    with unscoped("test look"):
        assert list(Tag.objects.values_list("name", flat=True)) == ["used"]
    assert world.member.delete(f"{tags}/{used}?force=true", {}).json() == {"success": True}
    assert world.member.get(f"knowledge/{document.uid}").status_code == 404
    assert world.member.delete(f"{tags}/{used}", {}).status_code == 404


def test_line_21_each_field_sorts_both_ways_and_nothing_else_does(world: World) -> None:
    for name, created, updated in (("b", "2026-01-01", "2026-01-06"), ("a", "2026-01-02", "2026-01-05"), ("c", "2026-01-03", "2026-01-04")):
        world.set(world.make_document(world.base, name), created_at=f"{created}T00:00:00Z", updated_at=f"{updated}T00:00:00Z")
    url = f"knowledge-bases/{world.base.uid}/knowledge"
    orders = {"created_at": "bac", "updated_at": "cab", "file_name": "abc"}
    for field, upwards in orders.items():
        for order, wanted in (("asc", upwards), ("desc", upwards[::-1]), ("", upwards[::-1])):
            query = f"sort_by={field}" + (f"&sort_order={order}" if order else "")
            assert "".join(row["title"] for row in data(world.member.get(f"{url}?{query}"))) == wanted, query
    assert "".join(row["title"] for row in data(world.member.get(url))) == "cab"
    for query in (
        "sort_by=title", "sort_by=id", "sort_by=-file_name", "sort_by=file_name;DROP%20TABLE%20knowledge_document", "sort_by=created_at%20desc",
        "sort_by=1", "sort_order=up", "sort_order=asc,(select%201)", "sort_by=(CASE%20WHEN%201=1%20THEN%20file_name%20END)",
    ):  # fmt: skip
        assert code(world.member.get(f"{url}?{query}"))[0] == 400, query
