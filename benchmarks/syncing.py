"""Syncing a large folder while the worker is killed: `python -m benchmarks.syncing [--items 10000] [--kills 3]`.

Starts a portal of its own, lets two bases follow the same folder, one undisturbed and one while its worker is killed with SIGKILL at even
distances, compares what came out row by row, and syncs again to see what an unchanged run costs and writes. Prints rows for RESULTS.md.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.support.rest import Rest, retrying
from tests.support.stack import LiveStack
from tests.support.waiting import until

PER_FOLDER = 100


def fill(folder: Path, count: int) -> None:
    for number in range(count):
        inside = folder / f"part-{number // PER_FOLDER:03d}"
        inside.mkdir(parents=True, exist_ok=True)
        (inside / f"note-{number:05d}.md").write_text(
            f"# Note {number}\n\nPump {number} is replaced every {number % 9 + 1} years.\n", "utf-8"
        )


def source_over(rest: Rest, folder: Path, name: str) -> tuple[str, str]:
    """(base, source)"""
    base = rest.make_base(name)
    body = {"knowledge_base_id": base, "name": name, "type": "local_folder", "config": {"settings": {"folder": str(folder)}}}
    made = rest.call("POST", "/datasource", {**body, "deletion_policy": "apply"})
    assert made.status == 201, made
    return base, made.body["id"]


def sync(stack: LiveStack, rest: Rest, source: str, *, items: int = 0, kills: int = 0) -> tuple[float, dict[str, Any]]:
    """(seconds, the run as it ended); the worker dies whenever another part of the items is there."""
    started = time.monotonic()
    run = rest.call("POST", f"/datasource/{source}/sync", {}).body["id"]
    at = [items * (number + 1) // (kills + 1) for number in range(kills)]

    def ended() -> dict[str, Any] | None:
        log = retrying(lambda: rest.call("GET", f"/datasource/logs/{run}")).body
        if at and log["items_created"] >= at[0]:
            at.pop(0)
            stack.kill("worker")
        return log if log["status"] != "running" else None

    log = until(ended, "the sync has ended", timeout_s=3600, every_s=0.2)
    assert not at, "the sync was over before the worker could be killed"
    return time.monotonic() - started, log


def rows(database: Path, base: str) -> dict[str, set[Any]]:
    """What a base and its source hold, without what is never the same twice."""
    kb = base.replace("-", "")
    asked = {
        "documents": "SELECT d.title, d.folder_path, d.file_hash, d.version, d.deleted_at IS NULL FROM knowledge_document d"
        " JOIN knowledge_knowledgebase k ON k.id = d.kb_id WHERE k.uid = ?",
        "items": "SELECT i.title, i.state, i.fingerprint, i.folder, i.content_sha256 FROM sources_sourceitem i"
        " JOIN sources_datasource s ON s.id = i.source_id JOIN knowledge_knowledgebase k ON k.id = s.kb_id WHERE k.uid = ?",
    }
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        found = {name: connection.execute(sql, (kb,)).fetchall() for name, sql in asked.items()}
    assert all(len(each) == len(set(each)) for each in found.values()), "something is there twice"
    return {name: set(each) for name, each in found.items()}


def everything(database: Path) -> dict[str, tuple[int, Any]]:
    """{table: (rows, when the last one changed)} of what a sync could write, but for its own rows."""
    tables = (
        "knowledge_document",
        "knowledge_documentversion",
        "ingestion_ingestionrun",
        "sources_sourceitem",
        "sources_datasource",
        "common_activity",
    )
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        found = {}
        for table in tables:
            names = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            changed = next((name for name in ("updated_at", "synced_at", "run_ref", "created_at") if name in names), "id")
            found[table] = connection.execute(f"SELECT COUNT(*), MAX({changed}) FROM {table}").fetchone()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-syncing-") as name:
        folder = Path(name) / "source"
        fill(folder, args.items)
        env = {
            "KB_SOURCE_FOLDERS": str(folder),
            "KB_WORKER_QUEUES": "sync",
            "KB_EMBEDDER": "none",
        }  # reading the files is measured elsewhere
        stack = LiveStack(Path(name) / "data", env=env).start()
        try:
            rest = Rest(stack.base_url).sign_up()
            calm_base, calm = source_over(rest, folder, "calm")
            killed_base, killed = source_over(rest, folder, "killed")
            calm_s, calm_log = sync(stack, rest, calm)
            killed_s, killed_log = sync(stack, rest, killed, items=args.items, kills=args.kills)
            database = stack.data_dir / "kbportal.sqlite3"
            same = rows(database, calm_base) == rows(database, killed_base)
            counts = ("items_total", "items_created", "items_updated", "items_deleted", "items_skipped", "items_failed")
            same = same and [calm_log[each] for each in counts] == [killed_log[each] for each in counts]
            before = {table: state for table, state in everything(database).items() if table != "common_activity"}
            again_s, again = sync(stack, rest, calm)
            wrote = [table for table, state in everything(database).items() if table in before and before[table] != state]
        finally:
            stack.stop()
    print(
        "| items | undisturbed s | with kill -9 | seconds | rows and counts | unchanged again s | it wrote |\n|---|---|---|---|---|---|---|"
    )
    told = "the same" if same else "DIFFER"
    unchanged = f"{again['items_unchanged']:,} unchanged"
    print(
        f"| {args.items:,} | {calm_s:.0f} | {args.kills} | {killed_s:.0f} | {told} | {again_s:.1f} ({unchanged}) | {', '.join(wrote) or 'nothing but its run'} |"
    )


if __name__ == "__main__":
    main()
