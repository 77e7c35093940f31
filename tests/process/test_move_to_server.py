"""From the embedded to the server shape: `manage.py move_to_server`, then the same portal on PostgreSQL and Redis."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.postgres import PostgresProcess
from tests.support.rest import Rest
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

TEXTS = {
    "手册.md": "# 传感器手册\n\n## 校准\n\n传感器应每季度校准一次。故障代码 ERR-4021 表示过热。\n\n## 存放\n\n存放在干燥处，避免阳光直射。\n",
    "manual.md": "# Pump manual\n\nThe pump must be primed before it is started.\n\n## Faults\n\nERR-4012 means that the pump runs dry.\n",
    "policy.txt": "差旅报销制度：出差人员应在返回后七个工作日内提交报销单，附上发票与行程单。\n",
}
QUESTIONS = ("ERR-4021", "怎么校准传感器", "pump runs dry", "报销需要什么材料", "prime the pump")
EMBEDDED = {"KB_DATABASE_URL": "", "KB_BROKER_URL": ""}


def answers(rest: Rest, base: str) -> dict[str, list[tuple[str, str, float]]]:
    found = {question: rest.search(base, question) for question in QUESTIONS}
    return {question: [(hit["id"], hit["knowledge_id"], round(hit["score"], 1)) for hit in hits] for question, hits in found.items()}


def original(rest: Rest, document: str) -> bytes:
    request = urllib.request.Request(
        f"{rest.base_url}/api/v1/knowledge/{document}/download", headers={"Authorization": f"Bearer {rest.token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def history(rest: Rest, base: str, documents: list[str]) -> Any:
    """What was done: the activity of the base, the stages of every document, the revisions of every passage."""
    stages = {document: rest.data("GET", f"/knowledge/{document}/stages") for document in documents}
    passages = [(document, row["id"]) for document in documents for row in rest.data("GET", f"/chunks/{document}?page_size=50")]
    revisions = {chunk: rest.data("GET", f"/chunks/{document}/{chunk}/revisions") for document, chunk in passages}
    assert sum(map(len, revisions.values())) == 1
    activity = rest.call("GET", f"/knowledge-bases/{base}/activity?page_size=50").body
    assert len(json.dumps(activity)) > 500
    return activity, stages, revisions


def contents(rest: Rest, base: str) -> Any:
    documents = rest.data("GET", f"/knowledge-bases/{base}/knowledge?page_size=50")
    kept = ("id", "title", "file_name", "parse_status", "chunk_count", "vector_count", "created_at")
    listed = sorted([{name: row[name] for name in kept} for row in documents], key=lambda row: row["id"])
    tags = {row["id"]: rest.document(row["id"])["tags"] for row in listed}
    passages = {
        row["id"]: [
            (c["id"], c["seq_id"], c["content"], c["content_revision"]) for c in rest.data("GET", f"/chunks/{row['id']}?page_size=50")
        ]
        for row in listed
    }
    return listed, tags, passages, rest.data("GET", f"/knowledge-bases/{base}/tags"), rest.data("GET", "/auth/me")["user"]["id"]


def count_rows(url: str, table: str) -> int:
    with psycopg.connect(url) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # type: ignore[index]


def count_of(connection: psycopg.Connection, kind: str) -> int:
    """Rows of the index's only table of this kind."""
    sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'kb_index' AND tablename LIKE %s"
    ((name,),) = connection.execute(sql, (f"{kind}%",)).fetchall()
    return int(connection.execute(f"SELECT count(*) FROM kb_index.{name}").fetchone()[0])  # type: ignore[index]


def embedded(data_dir: Path) -> bool:
    """Whether no work is left to do."""
    with closing(sqlite3.connect(data_dir / "kbportal.sqlite3")) as connection:
        return connection.execute("SELECT count(*) FROM ingestion_ingestionrun WHERE state IN ('queued', 'running')").fetchone() == (0,)


def last_document(data_dir: Path) -> int:
    with closing(sqlite3.connect(data_dir / "kbportal.sqlite3")) as connection:
        return int(connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'knowledge_document'").fetchone()[0])


def test_a_portal_moves_to_the_server_shape_with_all_it_has(
    live_stack: Callable[..., LiveStack], postgres_server: PostgresProcess, redis_server: str
) -> None:
    stack = live_stack(env=EMBEDDED)
    rest = Rest(stack.base_url).sign_up("alice")
    base = rest.make_base("产品")
    tag = rest.data("POST", f"/knowledge-bases/{base}/tags", {"name": "重要"})
    documents = [rest.upload(base, name, text).body["data"]["id"] for name, text in TEXTS.items()]
    for document in documents:
        assert rest.wait(document)["parse_status"] == "completed"
    doomed = rest.upload(base, "gone.txt", "这一篇会被删除。").body["data"]["id"]
    rest.wait(doomed)
    rest.data("DELETE", f"/knowledge/{doomed}")
    rest.data("PUT", "/knowledge/tags", {"updates": {documents[0]: [tag["id"]]}})
    first = rest.data("GET", f"/chunks/{documents[2]}?page_size=50")[0]
    edited = {"content": first["content"] + "逾期须说明原因。", "expected_revision": 0}
    rest.data("PUT", f"/chunks/{documents[2]}/{first['id']}", edited)
    until(lambda: rest.document(documents[2])["parse_status"] == "completed" and embedded(stack.data_dir), "every passage has its vector")
    space = rest.data("GET", "/auth/me")["tenant"]["id"]
    key = rest.data("POST", f"/tenants/{space}/api-keys", {"name": "reader", "full_access": True})["api_key"]
    before, found, done_so_far = contents(rest, base), answers(rest, base), history(rest, base, documents)
    files = [original(rest, document) for document in documents]
    assert files == [text.encode() for text in TEXTS.values()]
    assert all(found.values())
    url = postgres_server.create_database()
    move = ("move_to_server", "--database-url", url)

    running = stack.manage(*move, check=False)
    assert running.returncode != 0 and "Stop it first" in running.stderr
    stack.stop()

    with closing(sqlite3.connect(stack.data_dir / "kbportal.sqlite3")) as connection, connection:
        connection.execute("UPDATE knowledge_tag SET name = '重' || char(0) || '要'")
    tried = stack.manage(*move, "--check")
    assert "Checked only" in tried.stdout and "knowledge_chunk" in tried.stdout
    assert count_rows(url, "knowledge_document") == 0
    done = stack.manage(*move)
    assert "1 values held a NUL character" in done.stdout
    again = stack.manage(*move, check=False)
    assert again.returncode != 0 and "not empty" in again.stderr and "--force" in again.stderr
    assert "Moved." in stack.manage(*move, "--force").stdout

    high = last_document(stack.data_dir)
    moved = live_stack(broker_url=redis_server, data_dir=stack.data_dir, env={"KB_DATABASE_URL": url})
    rest = Rest(moved.base_url, token=rest.token)
    assert contents(rest, base) == before
    assert answers(rest, base) == found
    assert history(rest, base, documents) == done_so_far
    assert [original(rest, document) for document in documents] == files
    by_key = Rest(moved.base_url, headers={"X-API-Key": key})
    assert [hit["id"] for hit in by_key.search(base, "ERR-4021")] == [row[0] for row in found["ERR-4021"]]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT extname FROM pg_extension WHERE extname = 'vector'").fetchone() == ("vector",)
        alive = connection.execute(
            "SELECT count(*) FROM knowledge_chunk c JOIN knowledge_document d ON d.id = c.document_id WHERE d.deleted_at IS NULL"
        ).fetchone()
        assert alive == (count_of(connection, "text"),) == (count_of(connection, "vec"),)
        assert count_rows(url, "knowledge_chunk") > count_of(connection, "text"), "what is in the trash came along"
    fresh = rest.upload(base, "new.txt", "搬家之后新写的一篇，编号 NEW-0001。").body["data"]["id"]
    assert rest.wait(fresh)["parse_status"] == "completed"
    assert [hit["knowledge_id"] for hit in rest.search(base, "NEW-0001")][:1] == [fresh]
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT max(id) FROM knowledge_document").fetchone() == (high + 1,)
    assert "database, index and files agree" in moved.manage("reconcile", "--check", "--young", "0").stdout


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://a@b/c", "must start with postgres://"),
        ("postgres://a@127.0.0.1:5432/", "name of a database"),
        ("postgres://a@127.0.0.1:1/kb", "cannot be reached"),
    ],
)
def test_a_target_that_cannot_be_used_is_named(tmp_path: Path, url: str, words: str) -> None:
    stack = LiveStack(tmp_path / "data", env=EMBEDDED)
    stack.data_dir.mkdir()
    refused = stack.manage("move_to_server", "--database-url", url, check=False)
    assert refused.returncode != 0
    assert "nothing was moved" in refused.stderr and words in refused.stderr


def test_rows_that_do_not_fit_are_named_and_nothing_is_kept(tmp_path: Path, postgres_server: PostgresProcess) -> None:
    stack = LiveStack(tmp_path / "data", env=EMBEDDED)
    stack.data_dir.mkdir()
    stack.manage("migrate", "--verbosity", "0")
    with closing(sqlite3.connect(stack.data_dir / "kbportal.sqlite3")) as connection, connection:
        connection.execute("INSERT INTO auth_group (id, name) VALUES (1, 'fits'), (2, ?)", ("x" * 200,))
    url = postgres_server.create_database()
    refused = stack.manage("move_to_server", "--database-url", url, check=False)
    assert refused.returncode != 0
    assert "auth_group" in refused.stderr and "too long" in refused.stderr
    assert count_rows(url, "auth_group") == 0
