"""kill -9 of each process in every stage of an upload: after a restart the document is completed, once, and nothing is left over."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.redis import RedisProcess
from tests.support.rest import Rest, retrying
from tests.support.stack import LiveStack
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

SECTIONS = 3000


def long_text() -> str:
    """Different every time: vectors of a text that was seen before would come from the cache, and that stage would be over in no time."""
    paragraphs = [
        f"第{n}类设备在交付之后应当按照规定的周期进行检查，检查的结果写入设备档案，档案由资料室统一保管。" * 4
        + f" Item {n} is checked ({secrets.token_hex(4)})."
        for n in range(6)
    ]
    sections = [f"# 说明\n\n{paragraphs[n % len(paragraphs)]}" for n in range(SECTIONS)]
    return "\n\n".join([*sections, "# 结尾\n\n编号 KILL-4711 只出现一次。\n"])


STAGES = ("docreader", "chunking", "embedding")


def stage_of(rest: Rest, document: str) -> str:
    return str(rest.data("GET", f"/knowledge/{document}/stages")["current_stage"])


def assert_whole(stack: LiveStack, rest: Rest, base: str, document: str) -> None:
    """Completed once: one document, one set of passages, index and files agree, nothing runs."""
    done = rest.wait(document, timeout_s=150)
    assert (done["parse_status"], done["error_message"]) == ("completed", "")
    listed = rest.call("GET", f"/knowledge-bases/{base}/knowledge").body
    assert (listed["total"], listed["data"][0]["id"]) == (1, document)
    chunks = rest.call("GET", f"/chunks/{document}?page_size=1").body["total"]
    assert chunks >= SECTIONS / 4
    hits = rest.search(base, "KILL-4711")
    assert [hit["knowledge_id"] for hit in hits if "KILL-4711" in hit["content"]] == [document]
    checked = stack.manage("reconcile", "--check", "--young", "0")
    assert "database, index and files agree" in checked.stdout


@pytest.fixture
def ready(shared_stack: LiveStack, person: Rest) -> tuple[LiveStack, Rest, str]:
    """Whatever is killed has come back by the end of a test, so the next one works on the same portal, in a base of its own."""
    return shared_stack, person, person.make_base()


@pytest.fixture(scope="module")
def person(shared_stack: LiveStack) -> Rest:
    return Rest(shared_stack.base_url).sign_up()


@pytest.mark.parametrize("stage", STAGES)
def test_kill_of_the_worker_in_every_stage(ready: Any, stage: str) -> None:
    stack, rest, base = ready
    document = rest.upload(base, "long.md", long_text()).body["data"]["id"]
    until(lambda: stage_of(rest, document) == stage, f"stage {stage}", timeout_s=60, every_s=0.01)
    stack.wait_replaced("worker", stack.kill("worker"))
    assert_whole(stack, rest, base, document)


def test_kill_of_the_web_process_while_a_file_arrives_and_while_it_is_parsed(ready: Any) -> None:
    stack, rest, base = ready
    text = long_text()
    half = b'--x\r\nContent-Disposition: form-data; name="file"; filename="long.md"\r\n\r\n' + text.encode()[: len(text)]
    cut_off_upload(stack, rest, base, half)
    stack.wait_replaced("web", stack.kill("web"))
    document = retrying(lambda: rest.upload(base, "long.md", text)).body["data"]["id"]
    stack.wait_replaced("web", stack.kill("web"))
    retrying(lambda: rest.call("GET", f"/knowledge/{document}"))
    assert_whole(stack, rest, base, document)


def cut_off_upload(stack: LiveStack, rest: Rest, base: str, body: bytes) -> None:
    """Send the first half of an upload and leave the connection open while the server is killed."""
    import socket

    head = (
        f"POST /api/v1/knowledge-bases/{base}/knowledge/file HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {rest.token}\r\n"
        f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {len(body) * 2}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", stack.port), timeout=10)
    connection.sendall(head.encode() + body)


def test_kill_of_everything_at_once_and_restart(ready: Any) -> None:
    stack, rest, base = ready
    document = rest.upload(base, "long.md", long_text()).body["data"]["id"]
    until(lambda: stage_of(rest, document) == "docreader", "stage docreader", timeout_s=60, every_s=0.01)
    stack.kill("supervisor")
    stack.restart()
    assert_whole(stack, rest, base, document)


PAIRS = 1000


def pairs() -> list[dict[str, Any]]:
    """Rows of which some fail, some are taken in part, some are merged with what is there, and most are new."""
    rows = [
        {
            "standard_question": f"第 {n} 号业务如何办理",
            "similar_questions": [f"{n} 号业务怎么办", f"办理 {n // 2} 号业务需要什么"],
            "negative_questions": [f"如何取消 {n} 号业务"],
            "answers": [f"请在第 {n} 号窗口办理。" if n % 97 else ""],
            "tag_name": f"分类{n % 7}",
        }
        for n in range(PAIRS)
    ]
    return [*rows, {"standard_question": "Old", "similar_questions": ["Older"], "answers": ["New"]}, dict(rows[3])]


def import_pairs(rest: Rest, base: str, at: Callable[[dict[str, Any]], None]) -> tuple[dict[str, Any], list[Any]]:
    """(progress as it ended, entries); `at` hears the progress meanwhile."""
    rest.data("POST", f"/knowledge-bases/{base}/faq/entry", {"standard_question": "Old", "answers": ["Old"]})
    task = rest.data("POST", f"/knowledge-bases/{base}/faq/entries", {"mode": "append", "entries": pairs()})["task_id"]

    def ended() -> dict[str, Any] | None:
        progress = retrying(lambda: rest.call("GET", f"/faq/import/progress/{task}")).body["data"]
        at(progress)
        return progress if progress["status"] == "completed" else None

    progress = until(ended, "the import has ended", timeout_s=200, every_s=0.05)
    listed = [rest.data("GET", f"/knowledge-bases/{base}/faq/entries?page_size=1000&page={page}")["data"] for page in (1, 2)]
    texts = ("standard_question", "similar_questions", "negative_questions", "answers", "tag_name", "is_enabled", "is_recommended")
    return progress, sorted(([entry[name] for name in texts] for entry in [*listed[0], *listed[1]]), key=str)


def test_kill_of_the_worker_while_it_takes_question_pairs(ready: Any) -> None:
    stack, rest, _base = ready
    words = {
        "type": "faq",
        "indexing_strategy": {"vector_enabled": False, "keyword_enabled": True},
    }  # vectors would keep the queue for minutes
    calm, killed = rest.make_base("Calm", **words), rest.make_base("Killed", **words)
    undisturbed, entries = import_pairs(rest, calm, lambda _progress: None)
    reached: list[int] = []

    def kill(progress: dict[str, Any]) -> None:
        stage = (1, 40)[len(reached)] if len(reached) < 2 else 101  # as soon as it works, and in the middle
        if progress["status"] == "processing" and stage <= progress["progress"]:
            reached.append(progress["progress"])
            stack.wait_replaced("worker", stack.kill("worker"))

    progress, same = import_pairs(rest, killed, kill)
    assert len(reached) == 2 and reached[0] < reached[1] < 100, reached
    assert same == entries
    assert (len(entries), undisturbed["merged_count"], undisturbed["failed_count"]) == (PAIRS + 1 - 11, 1, 12)
    counted = (
        "total",
        "processed",
        "success_count",
        "failed_count",
        "partial_failed_count",
        "added_count",
        "merged_count",
        "merge_details",
    )
    assert {name: progress[name] for name in counted} == {name: undisturbed[name] for name in counted}
    assert [each["index"] for each in progress["success_entries"]] == [each["index"] for each in undisturbed["success_entries"]]
    found = rest.data("POST", f"/knowledge-bases/{killed}/faq/search", {"query_text": "901 号业务怎么办"})
    assert found[0]["standard_question"] == "第 901 号业务如何办理"


@pytest.mark.skipif("KB_BROKER_URL" in os.environ, reason="the broker is no folder here")
def test_a_wiped_broker_folder_costs_time_and_nothing_else(ready: Any) -> None:
    stack, rest, base = ready
    stack.kill("worker")
    document = rest.upload(base, "long.md", long_text()).body["data"]["id"]
    for message in (stack.data_dir / "broker" / "queue").iterdir():
        message.unlink(missing_ok=True)
    assert_whole(stack, rest, base, document)


def test_kill_of_redis_with_every_message_in_it(live_stack: Callable[..., LiveStack], tmp_path: Any) -> None:
    with RedisProcess(tmp_path / "redis") as redis:
        stack = live_stack(broker_url=redis.url)
        rest = Rest(stack.base_url).sign_up()
        base = rest.make_base()
        document = rest.upload(base, "long.md", long_text()).body["data"]["id"]
        redis.kill()
        other = rest.upload(base, "short.md", "# Short\n\nAccepted while the broker was down: KILL-0815.\n").body["data"]["id"]
        assert rest.document(other)["parse_status"] in ("pending", "processing")
        redis.start()
        assert rest.wait(other, timeout_s=90)["parse_status"] == "completed"
        assert rest.wait(document, timeout_s=150)["parse_status"] == "completed"
        assert [hit["knowledge_id"] for hit in rest.search(base, "KILL-0815")][:1] == [other]


def test_without_a_worker_the_row_says_so_and_a_worker_completes_it(live_stack: Callable[..., LiveStack]) -> None:
    web = live_stack(only="web")
    rest = Rest(web.base_url).sign_up()
    base = rest.make_base()
    document = rest.upload(base, "note.md", "# Note\n\nNobody works yet.\n").body["data"]["id"]
    assert rest.document(document)["parse_status"] == "pending"
    status, body = ready_state(web)
    assert status == 503
    assert body["parts"]["worker"] == "no worker serves: copy, embed, maintenance, ocr, parse, sync"
    web.stop()
    web.only = ""
    web.start()
    assert rest.wait(document, timeout_s=60)["parse_status"] == "completed"
    until(lambda: ready_state(web)[0] == 200, "the portal to say that all is well", timeout_s=30)


def ready_state(stack: LiveStack) -> tuple[int, dict[str, Any]]:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=10)
    connection.request("GET", "/healthz/ready")
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())
