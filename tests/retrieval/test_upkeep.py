"""`rebuild_index` and `reconcile` while the portal is in use, at the same time as another one, and cut off in the middle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from apps.common import storage
from apps.common.scope import space_scope, unscoped
from apps.ingestion import reconcile as reconcile_module
from apps.ingestion.models import IngestionRun
from apps.ingestion.reconcile import reconcile
from apps.knowledge.models import Document
from apps.knowledge.services import documents_delete
from apps.retrieval import services
from apps.retrieval.engine import engine
from apps.retrieval.plugins.protocol import Query
from apps.retrieval.services import index_drift
from tests.support.kit import Kit, make_kit, work_all

Midway = Callable[[Callable[[], None]], None]


@pytest.fixture
def kit(db: None) -> Kit:
    kit = make_kit()
    for name in ("alpha", "bravo", "charlie"):
        kit.upload(f"{name}.md", f"# {name}\n\nThe text of {name} says {name}word.\n")
    work_all("parse")
    call_command("rebuild_index", verbosity=0)
    return kit


@pytest.fixture
def midway(monkeypatch: pytest.MonkeyPatch) -> Midway:
    """`midway(act)`: the next rebuild calls `act` once, when it has written its first documents."""

    def arrange(act: Callable[[], None]) -> None:
        real = services.index_documents
        waiting = [act]

        def index_documents(*args: Any, **options: Any) -> None:
            real(*args, **options)
            if options.get("into") is not None and waiting:
                waiting.pop()()

        monkeypatch.setattr(services, "index_documents", index_documents)

    return arrange


def found(kit: Kit, word: str) -> list[int]:
    return [hit.doc_id for hit in engine().text_leg(Query(kit.space.pk, (kit.base.pk,), word, mode="text"))]


def drift(kit: Kit) -> int:
    with space_scope(kit.space.pk):
        return index_drift(kit.space.pk).total


def document(kit: Kit, title: str) -> Document:
    with space_scope(kit.space.pk):
        return Document.objects.get(title=title)


def test_what_changes_during_a_rebuild_is_in_the_new_index(kit: Kit, midway: Midway) -> None:
    def change() -> None:
        gone = document(kit, "alpha.md")
        with space_scope(kit.space.pk):
            documents_delete(actor=kit.actor, base=kit.base, documents=[gone])
        kit.upload("delta.md", "# delta\n\nThe text says deltaword.\n")
        work_all("parse", "cleanup")
        assert found(kit, "bravoword") == [document(kit, "bravo.md").pk], "searches go on"

    midway(change)
    call_command("rebuild_index", verbosity=0)
    assert found(kit, "alphaword") == []
    assert found(kit, "deltaword") == [document(kit, "delta.md").pk]
    assert drift(kit) == 0


def test_of_two_rebuilds_the_later_one_wins_and_the_other_says_so(kit: Kit, midway: Midway) -> None:
    midway(lambda: call_command("rebuild_index", verbosity=0))
    with pytest.raises(CommandError, match="the one before goes on answering"):
        call_command("rebuild_index", verbosity=0)
    assert [found(kit, f"{name}word") for name in ("alpha", "bravo", "charlie")] == [
        [document(kit, f"{name}.md").pk] for name in ("alpha", "bravo", "charlie")
    ]
    assert (drift(kit), engine().check()) == (0, [])


def test_a_rebuild_that_is_cut_off_changes_nothing_and_can_be_repeated(kit: Kit, midway: Midway) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    midway(stop)
    with pytest.raises(KeyboardInterrupt):
        call_command("rebuild_index", verbosity=0)
    assert found(kit, "charlieword") == [document(kit, "charlie.md").pk]
    kit.upload("echo.md", "# echo\n\nThe text says echoword.\n")
    work_all("parse")
    assert found(kit, "echoword") == [document(kit, "echo.md").pk]
    call_command("rebuild_index", verbosity=0)
    assert (found(kit, "echoword"), drift(kit)) == ([document(kit, "echo.md").pk], 0)


def disagree(kit: Kit) -> None:
    """One disagreement of each kind: an index entry, an orphan file, a lost file, a document nobody works on."""
    with unscoped("a test breaks things"):
        Document.objects.filter(title="alpha.md").update(index_rev=99)
        Document.objects.filter(title="charlie.md").update(parse_status="pending")
        IngestionRun.objects.filter(document__title="charlie.md").delete()
    storage.remove(document(kit, "bravo.md").storage_path)
    (Path(django_settings.DATA_DIR) / "files" / "orphan").write_bytes(b"x")


def state() -> tuple[Any, ...]:
    with unscoped("a test looks at everything"):
        rows = list(Document.objects.order_by("pk").values()), list(IngestionRun.objects.order_by("pk").values())
    return (*rows, sorted(storage.keys()), sorted(engine().revisions().items()))


def test_a_check_only_looks(kit: Kit, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("reconcile", "--young", "0")
    disagree(kit)
    before = state()
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        call_command("reconcile", "--check", "--young", "0")
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "0 not in the index, 1 in an old state, 0 too many" in said
    assert "file without a row: orphan" in said and "row without its file: " in said and "was in flight" in said
    assert "4 disagree" in said
    assert state() == before


def test_two_at_once_repair_everything_once(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile(young_s=0)
    disagree(kit)
    real, inner = reconcile_module.services.run_start, []

    def run_start(*args: Any, **options: Any) -> Any:
        if not inner:
            inner.append(None)
            inner[0] = reconcile(young_s=0).total
        return real(*args, **options)

    monkeypatch.setattr(reconcile_module.services, "run_start", run_start)
    reconcile(young_s=0)
    with unscoped("a test counts"):
        runs = IngestionRun.objects.filter(state="queued", document__title="charlie.md").values_list("kind", flat=True)
        assert list(runs) == ["parse"]
    assert inner[0] >= 2
    work_all("parse")
    assert [key.storage_path for key in [document(kit, "bravo.md")]] == reconcile(young_s=0).missing_files
    assert drift(kit) == 0


def test_a_repair_that_is_cut_off_is_taken_up_by_the_next(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile(young_s=0)
    disagree(kit)

    def stop(_keys: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reconcile_module.files, "delete_files", stop)
        with pytest.raises(KeyboardInterrupt):
            reconcile(young_s=0)
    left = reconcile(young_s=0)
    assert (len(left.index), left.orphan_files, len(left.idle_documents)) == (0, ["orphan"], 1)
    assert reconcile(young_s=0).total == 1, "only the lost file is left, which nobody can repair"
