"""A small world: two organizations with twin data, people in them, and clients that speak for them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from apps.accounts.models import User
from apps.common import storage
from apps.common.actor import Actor, Role
from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Chunk, Document, KnowledgeBase, ParseStatus, passage_hash
from apps.spaces.models import ApiKey, Membership, Space
from tests.support.filestore import use_fresh_store


class Person:
    """A user in one space, with a signed-in client; paths are relative to /api/v1/."""

    def __init__(self, user: User, space: Space, role: str) -> None:
        self.user, self.space, self.role = user, space, role
        self.client = Client()
        self.client.force_login(user)

    @property
    def actor(self) -> Actor:
        role = Role.ADMIN if self.role == "admin" else Role.MEMBER
        return Actor(kind="user", user_id=self.user.pk, space_id=self.space.pk, space_kind=self.space.kind, role=role)  # type: ignore[arg-type]

    def call(self, method: str, path: str, body: Any = None, **extra: Any) -> Any:
        url = path if path.startswith("/") else f"/api/v1/{path}"
        headers = {"X-Tenant-ID": str(self.space.pk), **extra.pop("headers", {})}
        if body is not None and "content_type" not in extra:
            extra["content_type"] = "application/json"
        return self.client.generic(method, url, extra.pop("data", "") if body is None else _json(body), headers=headers, **extra)

    def get(self, path: str, **extra: Any) -> Any:
        return self.call("GET", path, **extra)

    def post(self, path: str, body: Any = None) -> Any:
        return self.call("POST", path, {} if body is None else body)

    def put(self, path: str, body: Any = None) -> Any:
        return self.call("PUT", path, {} if body is None else body)

    def delete(self, path: str, body: Any = None) -> Any:
        return self.call("DELETE", path, body)

    def upload(self, base: KnowledgeBase, data: bytes, name: str = "a.txt", **fields: Any) -> Any:
        parts = {"file": SimpleUploadedFile(name, data), **fields}
        return self.client.post(f"/api/v1/knowledge-bases/{base.uid}/knowledge/file", parts, headers={"X-Tenant-ID": str(self.space.pk)})


def _json(body: Any) -> str:
    import json

    return body if isinstance(body, str) else json.dumps(body)


class World:
    """`admin`, `member` in one organization with `base`; `outsider` admin of another with `other_base`."""

    def __init__(self) -> None:
        self.space = Space.objects.create(name="Acme", kind=Space.Kind.ORGANIZATION)
        self.other_space = Space.objects.create(name="Other", kind=Space.Kind.ORGANIZATION)
        self.admin = self.person("ada", self.space, "admin")
        self.member = self.person("mia", self.space, "member")
        self.outsider = self.person("otto", self.other_space, "admin")
        self.base = self.make_base(self.space, "Handbook")
        self.other_base = self.make_base(self.other_space, "Handbook")

    def person(self, name: str, space: Space, role: str) -> Person:
        user = User.objects.create_user(
            f"{name}-{uuid.uuid4().hex[:6]}@example.com", "pw", username=f"{name}-{uuid.uuid4().hex[:6]}", language="en"
        )
        Membership.objects.create(space=space, user=user, role=role)
        return Person(user, space, role)

    def key(self, space: Space, *, capabilities: list[str] | None = None, kb_uids: list[str] | None = None) -> Client:
        secret = uuid.uuid4().hex
        with unscoped("test data"):
            ApiKey.objects.create(
                space=space,
                name="k",
                token_hash=hashlib.sha256(secret.encode()).hexdigest(),
                hint="k",
                full_access=capabilities is None,
                capabilities=capabilities or [],
                kb_uids=kb_uids or [],
            )
        return Client(headers={"X-API-Key": secret})

    def make_base(self, space: Space, name: str = "Base", **values: Any) -> KnowledgeBase:
        flags = {"vector_enabled": True, "keyword_enabled": True, "wiki_enabled": False, "graph_enabled": False}
        with unscoped("test data"):
            return KnowledgeBase.objects.create(space=space, name=name, indexing_strategy=flags, **values)

    def make_document(self, base: KnowledgeBase, title: str = "a.txt", *, chunks: int = 0, **values: Any) -> Document:
        given = {
            "parse_status": ParseStatus.COMPLETED,
            "enabled": True,
            "file_name": title,
            "file_type": "txt",
            "file_hash": uuid.uuid4().hex,
            "storage_path": "",
            "chunk_count": chunks,
            **values,
        }
        with unscoped("test data"):
            document = Document.objects.create(space_id=base.space_id, kb=base, title=title, **given)
            for index in range(chunks):
                text = f"passage {index} of {title}"
                Chunk.objects.create(
                    space_id=base.space_id,
                    kb=base,
                    document=document,
                    chunk_index=index,
                    content=text,
                    content_hash=passage_hash(text),
                    start_at=index * 10,
                    end_at=index * 10 + 10,
                )
        return document

    def fresh(self, row: Any) -> Any:
        """The row as it is in the database now, or None."""
        with unscoped("test look"):
            return type(row).objects.filter(pk=row.pk).first()


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> Path:
    """An empty file store of the test's own."""
    use_fresh_store(settings, tmp_path)
    return tmp_path / "files"


@pytest.fixture
def world(db: Any, store: Path) -> World:
    return World()


@pytest.fixture
def in_space(world: World) -> Iterator[None]:
    with space_scope(world.space.pk, "test"):
        yield


@pytest.fixture
def heard() -> Iterator[Callable[[type], list[Any]]]:
    """`heard(Event)` is the list of events of that kind published since."""
    from apps.common import events

    added: list[tuple[type, Any]] = []

    def start(kind: type) -> list[Any]:
        found: list[Any] = []
        events._listeners[kind].append(found.append)
        added.append((kind, found.append))
        return found

    yield start
    for kind, listener in added:
        events._listeners[kind].remove(listener)


@pytest.fixture
def stored(store: Path) -> Callable[[], list[str]]:
    """`stored()` lists what lies in the file store."""
    return lambda: sorted(storage.keys())


@pytest.fixture
def run_jobs(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """`run_jobs(kind)` does every queued row of a kind, as a worker would; how many."""
    from apps.common.jobs.claims import claim_next
    from apps.common.jobs.registry import job_kinds
    from apps.common.jobs.tasks import work

    def run(kind: str) -> int:
        count = 0
        while (claim := claim_next(job_kinds.get(kind))) is not None:
            work(claim)
            count += 1
        return count

    return run
