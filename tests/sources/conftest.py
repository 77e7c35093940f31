"""A base with a scripted source, and a worker that looks at it when told to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.common.jobs.claims import Claim, claim_next
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import space_scope, unscoped
from apps.common.storage import temp_folder
from apps.knowledge.models import Document
from apps.sources.models import DataSource, SourceItem, SyncRun
from apps.sources.services import source_create, sync_start
from tests.knowledge import conftest as knowledge
from tests.knowledge.conftest import World
from tests.support import scripted
from tests.support.hosted.hostile import Route
from tests.support.hosted.serving import Server, application
from tests.support.scripted import Shelf, shelves

heard, in_space, run_jobs, store, world = knowledge.heard, knowledge.in_space, knowledge.run_jobs, knowledge.store, knowledge.world


class Killed(BaseException):
    """The process is gone: nothing that would clean up gets to run."""


class Desk:
    """A source of `world.base` over one shelf."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = uuid.uuid4().hex
        self.shelf = shelves.setdefault(self.name, Shelf())
        self._source: DataSource | None = None

    @property
    def actor(self) -> Any:
        return self.world.admin.actor

    @property
    def source(self) -> DataSource:
        if self._source is None:
            self._source = self.make()
        with unscoped("test look"):
            return DataSource.objects.select_related("kb").get(pk=self._source.pk)

    def make(self, **values: Any) -> DataSource:
        given = {
            "type": scripted.TYPE, "name": "Notes", "credentials": {"api_key": self.shelf.key}, "settings": {"shelf": self.name},
            "deletion_policy": "apply", **values,
        }  # fmt: skip
        with space_scope(self.world.space.pk, "test"):
            self._source = source_create(actor=self.actor, base=self.world.base, values=given)
        return self._source

    def start(self, **options: Any) -> SyncRun:
        with space_scope(self.world.space.pk, "test"):
            return sync_start(actor=self.actor, source=self.source, **options)

    def claim(self) -> Claim:
        found = claim_next(job_kinds.get("sync"))
        assert found is not None, "no run is waiting"
        return found

    def sync(self, **options: Any) -> SyncRun:
        """One whole run, however often it is put back; the row as it ended."""
        run = self.start(**options)
        for _try in range(20):
            self.ready(run)
            work(self.claim())
            run = self.fresh(run)
            if not run.is_live:
                return run
        raise AssertionError("the run does not end")

    def ready(self, run: SyncRun) -> None:
        """Whatever the run waits for is over."""
        with unscoped("test data"):
            SyncRun.objects.filter(pk=run.pk).update(not_before=None)

    def fresh(self, run: SyncRun) -> SyncRun:
        with unscoped("test look"):
            return SyncRun.objects.get(pk=run.pk)

    def items(self) -> dict[str, SourceItem]:
        with unscoped("test look"):
            return {row.external_id: row for row in SourceItem.objects.filter(source=self.source).select_related("document", "twin")}

    def documents(self) -> dict[str, Document]:
        """{title: document} of everything live in the base."""
        with unscoped("test look"):
            return {row.title: row for row in Document.objects.filter(kb=self.world.base, deleted_at__isnull=True)}

    def text(self, document: Document) -> str:
        from apps.common import storage

        with storage.read(document.storage_path) as file:
            return str(file.read().decode())


@pytest.fixture(autouse=True)
def _connector() -> Iterator[None]:
    scripted.register()
    yield
    scripted.unregister()


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


@pytest.fixture
def die(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """`die()` raises what no code catches, as a kill would end it."""

    def now() -> None:
        raise Killed

    return now


@pytest.fixture
def serve(settings: Any) -> Iterator[Callable[[Route], Server]]:
    settings.FETCH_ALLOW = ["127.0.0.1/32"]
    made: list[Server] = []

    def start(route: Route) -> Server:
        made.append(Server(application(route)))
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.fixture
def nothing_is_left_behind() -> Iterator[None]:
    """No test may leave a temporary file of a source behind; what others left there in the same process is theirs."""

    def found() -> set[str]:
        return {path.name for path in temp_folder().iterdir() if path.name.startswith(("kb-fetch-", "kb-source-", "kb-git-"))}

    before = found()
    yield
    assert found() - before == set()
