"""Lines 1, 2, 3 and 20 of the contract's checklist: the two families, roles, other spaces' ids, the activity cursor."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

from tests.contract_checklist.conftest import World, code, data

LINES = 22
#: Lines that this package does not prove, and why. Parts of kept lines that only question pairs, wiki pages or chat have (a question
#: base's column of tag deletion, `only_recommended`) are proved with those parts.
LEFT_OUT: dict[int, str] = {}


def test_each_line_has_a_test() -> None:
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    named = {int(number) for number in re.findall(r"^def test_line_(\d\d)_", source, re.MULTILINE)}
    assert named == set(range(1, LINES + 1)) - set(LEFT_OUT)


def shape(value: Any) -> Any:
    """The names and types of an answer without its values; a list is what its first row is."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def _furnished(world: World, person: Any, base: Any) -> dict[str, Any]:
    tag = data(person.post(f"knowledge-bases/{base.uid}/tags", {"name": "red"}))
    made = person.upload(base, b"pump one\n\nvalve two", "a.txt", tag_ids=tag["id"], fileName="f/a.txt").json()["data"]
    world.parse()
    chunk = data(person.get(f"chunks/{made['id']}"))[0]["id"]
    return {"kb": base.uid, "doc": made["id"], "tag": tag["id"], "chunk": chunk}


#: upstream path, the family's own path where it differs
READS = [
    ("knowledge-bases", "bases"),
    ("knowledge-bases/{kb}", "bases/{kb}"),
    ("knowledge-bases/{kb}/move-targets", "bases/{kb}/move-targets"),
    ("knowledge-bases/{kb}/knowledge", "bases/{kb}/documents"),
    ("knowledge-bases/{kb}/knowledge/folders", "bases/{kb}/folders"),
    ("knowledge-bases/{kb}/tags", "bases/{kb}/tags"),
    ("knowledge-bases/{kb}/images", "bases/{kb}/images"),
    ("knowledge-bases/{kb}/gallery-config", "bases/{kb}/gallery-config"),
    ("knowledge-bases/{kb}/activity", "bases/{kb}/activity"),
    ("knowledge/batch?ids={doc}&kb_id={kb}", "documents/batch?ids={doc}&kb_id={kb}"),
    ("knowledge/search?keyword=a", "documents/search?keyword=a"),
    ("knowledge/{doc}", "documents/{doc}"),
    ("knowledge/{doc}/stages", "documents/{doc}/stages"),
    ("initialization/config/{kb}", "initialization/config/{kb}"),
    ("chunks/{doc}", "chunks/{doc}"),
    ("chunks/by-id/{chunk}", "chunks/by-id/{chunk}"),
    ("chunks/{doc}/{chunk}/revisions", "chunks/{doc}/{chunk}/revisions"),
]


def test_line_01_both_families_answer_in_identical_shapes(world: World) -> None:
    places = ((world.admin, world.base, world.organization), (world.owner, world.own_base, "/v1/knowledge"))
    for _person, base, _family in places:
        world.make_base(base.space, "Twin")  # so that there is somewhere to move to
    ids = {person: _furnished(world, person, base) for person, base, _family in places}
    for upstream, proxied in READS:
        shapes = []
        for person, _base, family in places:
            at = ids[person]
            answers = person.get(upstream.format(**at)), person.get(f"{family}/{proxied.format(**at)}")
            assert [answer.status_code for answer in answers] == [200, 200], proxied
            assert answers[0].json() == answers[1].json(), proxied
            shapes.append(shape(answers[1].json()))
        assert shapes[0] == shapes[1], proxied
        assert "data" in shapes[0] and shapes[0]["success"] == "bool"
    made = [person.post(f"{family}/bases", {"name": "New"}) for person, _base, family in places]
    assert [answer.status_code for answer in made] == [201, 201]
    bare, upstream = made[0].json(), world.admin.post("knowledge-bases", {"name": "New"}).json()
    assert "success" not in bare and bare["name"] == "New" and shape(bare) == shape(made[1].json()) == shape(upstream["data"])
    writes = [
        ("POST", "bases/{kb}/manual", {"title": "Note", "content": "text"}),
        ("POST", "bases/{kb}/tags", {"name": "blue"}),
        ("PUT", "bases/{kb}/tags/{tag}", {"name": "green"}),
        ("PUT", "documents/{doc}", {"title": "renamed"}),
        ("POST", "documents/folder", {"kb_id": "{kb}", "knowledge_ids": ["{doc}"], "folder_path": ""}),
        ("POST", "bases/{kb}/hybrid-search", {"query_text": "pump"}),
        ("PUT", "chunks/{doc}/{chunk}", {"content": "pump three"}),
        ("POST", "documents/{doc}/reparse", {}),
        ("POST", "documents/{doc}/cancel-parse", {}),
        ("POST", "documents/batch-delete", {"kb_id": "{kb}", "ids": ["{doc}"]}),
    ]
    for method, path, body in writes:
        answers = []
        for person, _base, family in places:
            filled = {name: _filled(value, ids[person]) for name, value in body.items()}
            answers.append(person.call(method, f"{family}/{path.format(**ids[person])}", filled))
        assert [answer.status_code for answer in answers] == [200, 200], (path, [answer.content[:300] for answer in answers])
        assert shape(answers[0].json()) == shape(answers[1].json()), path


def _filled(value: Any, ids: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_filled(item, ids) for item in value]
    return value.format(**ids) if isinstance(value, str) else value


def test_line_02_members_write_contents_and_admins_manage(world: World) -> None:
    at = _furnished(world, world.member, world.base)
    second = world.make_base(world.space, "Second")
    member, family = world.member, world.organization
    writes = [
        ("POST", f"bases/{at['kb']}/manual", {"content": "text"}),
        ("POST", f"bases/{at['kb']}/tags", {"name": "blue"}),
        ("PUT", f"documents/{at['doc']}", {"custom_metadata": {"a": 1}}),
        ("PUT", "documents/tags", {"kb_id": str(at["kb"]), "updates": {at["doc"]: []}}),
        ("POST", "documents/folder", {"kb_id": str(at["kb"]), "knowledge_ids": [at["doc"]], "folder_path": "g"}),
        ("PUT", f"bases/{at['kb']}/folders", {"from": "g", "to": "h"}),
        ("PUT", f"chunks/{at['doc']}/{at['chunk']}", {"content": "pump nine"}),
        ("PUT", f"chunks/by-id/{at['chunk']}/questions", {"question": "Which pump?"}),
        ("POST", f"documents/{at['doc']}/reparse", {}),
    ]
    for method, path, body in writes:
        assert member.call(method, f"{family}/{path}", body).status_code == 200, path
    world.parse()
    move = {"source_kb_id": str(at["kb"]), "target_kb_id": str(second.uid), "knowledge_ids": [at["doc"]], "mode": "reuse_vectors"}
    settings = {"llmModelId": "", "embeddingModelId": ""}
    managing = [
        ("POST", "bases", {"name": "Mine"}),
        ("PUT", f"bases/{at['kb']}", {"name": "Renamed"}),
        ("PUT", f"initialization/config/{at['kb']}", settings),
        ("POST", "bases/copy", {"sourceId": str(at["kb"])}),
        ("POST", "documents/move", move),
        ("GET", f"bases/{at['kb']}/activity", None),
        ("DELETE", f"bases/{at['kb']}", None),
    ]
    for method, path, body in managing:
        refused = member.call(method, f"{family}/{path}", body)
        assert (refused.status_code, refused.json()["code"]) == (403, "KNOWLEDGE_MANAGE_REQUIRED"), path
    for method, path, body in managing:
        allowed = world.admin.call(method, f"{family}/{path}", body)
        assert allowed.status_code in (200, 201) or path.startswith("initialization") and allowed.status_code == 400, (
            path,
            allowed.content,
        )


def test_line_03_ids_of_another_space_never_leak(world: World) -> None:
    at = _furnished(world, world.admin, world.base)
    theirs, own = world.outsider, str(world.other_base.uid)
    mine = str(world.make_document(world.other_base, "own").uid)
    for path in (
        f"knowledge-bases/{at['kb']}", f"knowledge-bases/{at['kb']}/knowledge", f"knowledge-bases/{at['kb']}/knowledge/folders",
        f"knowledge-bases/{at['kb']}/tags", f"knowledge-bases/{at['kb']}/images", f"knowledge-bases/{at['kb']}/activity",
        f"knowledge/{at['doc']}", f"knowledge/{at['doc']}/download", f"knowledge/{at['doc']}/preview", f"knowledge/{at['doc']}/stages",
        f"chunks/{at['doc']}", f"chunks/by-id/{at['chunk']}", f"initialization/config/{at['kb']}",
    ):  # fmt: skip
        foreign = theirs.get(path)
        unknown = theirs.get(re.sub("|".join(map(str, (at["kb"], at["doc"], at["chunk"]))), str(uuid.uuid4()), path))
        assert code(foreign) == code(unknown) == (404, 1003), path
        assert foreign.json() == unknown.json(), path
    assert data(theirs.get(f"knowledge/batch?ids={at['doc']},{mine}")) == data(theirs.get(f"knowledge/batch?ids={mine}"))
    assert code(theirs.post(f"knowledge-bases/{own}/knowledge/batch-download", {"ids": [mine, at["doc"]]}))[0] == 404
    assert code(theirs.post("knowledge/folder", {"kb_id": own, "knowledge_ids": [mine, at["doc"]], "folder_path": "x"}))[0] == 400
    assert code(theirs.post("knowledge/batch-delete", {"kb_id": own, "ids": [mine, at["doc"]]}))[0] == 400
    assert code(theirs.post("knowledge/batch-reparse", {"kb_id": own, "ids": [mine, at["doc"]]}))[0] == 400
    assert code(theirs.put("knowledge/tags", {"kb_id": own, "updates": {at["doc"]: []}}))[0] == 403
    assert code(theirs.put("knowledge/tags", {"kb_id": own, "updates": {mine: [at["tag"]]}}))[0] == 400
    assert world.document(at["doc"])["folder_path"] == "f" and world.document(at["doc"])["tags"][0]["id"] == at["tag"]
    assert data(theirs.get(f"knowledge/{mine}"))["folder_path"] == ""


def test_line_20_the_activity_cursor_ends_and_filters_combine(world: World) -> None:
    for number in range(5):
        world.member.post(f"knowledge-bases/{world.base.uid}/tags", {"name": f"t{number}"})
    world.admin.put(f"knowledge-bases/{world.base.uid}", {"name": "Renamed"})
    url = f"knowledge-bases/{world.base.uid}/activity"
    seen, after, cursors = [], 0, []
    while True:
        page = world.admin.get(f"{url}?limit=2&after_id={after}").json()
        if not page["data"]:
            break
        after = page["next_cursor"]
        assert after == page["data"][-1]["id"]
        seen += [row["details"]["title"] for row in page["data"]]
        cursors.append(after)
    assert seen == ["Renamed", "t4", "t3", "t2", "t1", "t0"] and len(cursors) == 3
    assert page == {"success": True, "data": [], "next_cursor": 0}
    member = str(world.member.user.pk)
    found = {
        "action=tag.created": 5,
        f"action=tag.created&actor={member}&outcome=success": 5,
        f"action=kb.updated&actor={member}": 0,
        "outcome=failed": 0,
        "limit=100&after_id=nonsense": 6,
        "limit=junk": 6,
    }
    assert {query: len(data(world.admin.get(f"{url}?{query}"))) for query in found} == found
    assert world.key(world.space).get(f"/api/v1/{url}").status_code == 403
