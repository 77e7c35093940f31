"""Ids of another space in bodies and queries: whoever may use a route is told the same as for an id that exists nowhere.

The permission matrix proves it for ids in the path. Here each route is asked with bodies of the space it works in, one id at a time replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.common.scope import unscoped
from apps.knowledge.models import Chunk, CopyRun, Document, DocumentImage, KnowledgeBase, MoveRun
from tests.inventory.test_permission_matrix import bare, row_counts, said
from tests.support.route_samples import CONTENTS
from tests.support.routes import routes
from tests.support.world import World, unharmed

Body = Callable[[dict[str, Any]], dict[str, Any]]

#: more places where REST takes ids: "METHOD path", the path as in `api/v1`, values of the space's ids
MORE: list[tuple[str, str, Body]] = [
    ("GET", "knowledge-bases/{kb_id}/knowledge", lambda ids: {"tag_ids": str(ids["tag_id"])}),
    ("GET", "knowledge/batch", lambda ids: {"ids": str(ids["document_id"]), "kb_id": str(ids["kb_id"])}),
    ("GET", "knowledge-bases/{kb_id}/files", lambda ids: {"file_path": f"resource://{ids['image_id']}"}),
    ("GET", "knowledge-bases/{kb_id}/files", lambda ids: {"file_path": str(ids["file_path"])}),
    ("GET", "files", lambda ids: {"file_path": f"resource://{ids['image_id']}"}),
    ("GET", "files", lambda ids: {"file_path": str(ids["file_path"])}),
    ("GET", "knowledge/move/progress/{move_task}", lambda ids: {}),
    ("GET", "knowledge-bases/copy/progress/{copy_task}", lambda ids: {}),
    ("POST", "knowledge-bases/copy/progress/{copy_task}/cancel", lambda ids: {}),
    ("GET", "knowledge/{document_id}/versions/{version}/download", lambda ids: {}),
    ("POST", "knowledge-bases/{kb_id}/hybrid-search", lambda ids: {"query_text": "pump", "knowledge_ids": [str(ids["document_id"])]}),
    ("POST", "knowledge-bases/{kb_id}/hybrid-search", lambda ids: {"query_text": "pump", "tag_ids": [str(ids["tag_id"])]}),
    (
        "POST",
        "knowledge-bases/{kb_id}/hybrid-search",
        lambda ids: {"query_text": "pump", "knowledge_base_ids": [str(ids["kb_id"]), str(ids["other_kb_id"])]},
    ),
    ("POST", "knowledge-search", lambda ids: {"query": "pump", "knowledge_ids": [str(ids["document_id"])]}),
    ("POST", "knowledge-search", lambda ids: {"query": "pump", "tag_ids": [str(ids["tag_id"])]}),
    ("POST", "knowledge-bases/{kb_id}/knowledge/manual", lambda ids: {"content": "text", "tag_ids": [str(ids["tag_id"])]}),
    ("POST", "knowledge-bases/{kb_id}/knowledge/url", lambda ids: {"url": "https://example.com/x", "tag_ids": [str(ids["tag_id"])]}),
    ("PUT", "initialization/config/{kb_id}", lambda ids: {"llmModelId": str(ids["model_id"])}),
    ("PUT", "initialization/config/{kb_id}", lambda ids: {"embeddingModelId": str(ids["model_id"])}),
]


class Watched(dict):
    """Remembers which ids were asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)


@pytest.fixture
def world(world: World) -> World:
    """Twins of everything that has an id: a picture, a file, a version, a copy, a move."""
    for space, name in ((world.home, "home"), (world.foreign, "foreign")):
        ids = world.ids[name]
        with unscoped("test data"):
            base, document = KnowledgeBase.objects.get(uid=ids["kb_id"]), Document.objects.get(uid=ids["document_id"])
            chunk = Chunk.objects.get(uid=ids["chunk_id"])
            image = DocumentImage.objects.create(
                space=space, kb=base, document=document, chunk=chunk, number=0, sha256="0" * 64, media_type="image/png", size_bytes=1, width=1, height=1,
                storage_path=document.storage_path,
            )  # fmt: skip
            tasks = {
                "copy_task": f"kb_clone_{space.pk}_1700000000000_0a0a0a0a_{base.uid}",
                "move_task": f"kg_move_{space.pk}_1700000000000_0a0a0a0a_{base.uid}",
            }
            common = {"space": space, "source_ref": base.pk, "target_ref": base.pk, "source_uid": base.uid, "target_uid": base.uid}
            CopyRun.objects.create(kind="copy", task_id=tasks["copy_task"], name="x", is_new=False, **common)
            MoveRun.objects.create(kind="move", task_id=tasks["move_task"], document_refs=[], mode="reuse_vectors", **common)
        ids |= {"image_id": image.uid, "file_path": document.storage_path, "version": 1, **tasks}
    nowhere = world.unknown["kb_id"]
    world.unknown |= {
        "image_id": nowhere,
        "file_path": world.ids["home"]["file_path"].replace(str(world.ids["home"]["document_id"]), str(nowhere)),
        "version": 99,
        "copy_task": f"kb_clone_{world.home.pk}_1700000000000_0b0b0b0b_{nowhere}",
        "move_task": f"kg_move_{world.home.pk}_1700000000000_0b0b0b0b_{nowhere}",
    }
    return world


def asked_ids(path: str, body: Body, ids: dict[str, Any]) -> set[str]:
    watched = Watched(ids)
    body(watched)
    return watched.asked | {name for name in ids if f"{{{name}}}" in path}


def faults_of(world: World, ask: Callable[[Any, dict[str, Any]], Any], names: set[str], *, session: bool) -> list[str]:
    """What one route betrays, for an admin and a member of the space."""
    found = []
    for identity in ("admin", "member"):
        for name in sorted(names):
            answers = []
            for stranger in (world.ids["foreign"], world.unknown):
                with unharmed():
                    client = world.client(identity, by="session" if session else "")
                    ids = {**world.ids["home"], name: stranger[name]}
                    before = row_counts()
                    answer = ask(client, ids)
                    text = answer.content if not answer.streaming else answer.getvalue()
                    answers.append((said(answer), bare(text, str(stranger[name]))))
                    if answers[-1][0] in (400, 403, 404) and before != row_counts():
                        found.append(f"{identity}: a refused {name} changed rows")
            if answers[0] != answers[1]:
                found.append(f"{identity}: {name} tells what exists elsewhere: {answers[0][0]} {answers[0][1][:200]!r}, {answers[1]}")
    return found


@pytest.mark.parametrize(("method", "path", "body"), MORE, ids=[f"{method} {path}-{at}" for at, (method, path, _body) in enumerate(MORE)])
def test_other_ids_of_rest(world: World, method: str, path: str, body: Body) -> None:
    def ask(client: Any, ids: dict[str, Any]) -> Any:
        return getattr(client, method.lower())(f"/api/v1/{path.format(**ids)}", body(ids))

    home = world.ids["home"]
    with unharmed():
        assert ask(world.client("admin"), home).status_code not in (403, 405), "the question itself is a good one"
    assert faults_of(world, ask, asked_ids(path, body, home) - {"version"}, session=False) == []


@pytest.mark.parametrize("family", ["api", "organization", "pages"])
def test_ids_in_the_bodies_of_the_samples(world: World, family: str) -> None:
    problems: list[str] = []
    for route in routes().values():
        prefix, _colon, name = route.name.rpartition(":")
        if (prefix or "pages") != family:
            continue
        for method in route.methods:
            body = CONTENTS.get(f"{method} page {name}" if family == "pages" else f"{method} {name}")
            if body is None:
                continue
            watched = Watched(world.ids["home"])
            body(watched)

            def ask(client: Any, ids: dict[str, Any], route: Any = route, method: str = method, body: Body = body) -> Any:
                return getattr(client, method.lower())(route.url(world.ids["home"]), body(ids))

            problems += [f"{method} {route.name}: {fault}" for fault in faults_of(world, ask, watched.asked, session=family == "pages")]
    assert problems == []


def test_a_foreign_tag_cannot_come_along_with_a_file(world: World) -> None:
    answers = []
    for tag in (world.ids["foreign"]["tag_id"], world.unknown["tag_id"]):
        client = world.client("member", by="session")
        parts = {"file": SimpleUploadedFile("a.txt", b"text"), "tag_ids": str(tag)}
        headers = {"X-Tenant-ID": str(world.home.pk)}
        answer = client.post(f"/api/v1/knowledge-bases/{world.ids['home']['kb_id']}/knowledge/file", parts, headers=headers)
        answers.append((answer.status_code, bare(answer.content, str(tag))))
    assert answers[0] == answers[1] and answers[0][0] == 400
