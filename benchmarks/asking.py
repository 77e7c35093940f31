"""How soon an answer begins in a base of 100,000 passages, and whether many streams at the same time all reach their end.

    python -m benchmarks.asking [--chunks 100000] [--turns 40] [--streams 100]

A portal as people run it (`manage.py serve --only web`, SQLite, packaged embedder) on a synthetic Chinese and English corpus that is written
into its database and index beforehand. Each question names a code that stands in the corpus, so the built-in answerer has something to
quote. Then `--streams` questions at once, by API keys, since a person may have eight answers written at a time: with the built-in answerer,
and with a scripted model on the loopback that talks for four seconds.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from benchmarks.search_latency import Meanings, Words, percentiles
from tests.support.stack import LiveStack

A_DOCUMENT = 20
AT_ONCE = 100  # documents written in one go
A_KEY = 8  # answers one asker may have written at a time
CODES = 400


def fill(chunks: int, keys: int, model_url: str) -> dict[str, Any]:
    """In a process of the portal's environment: a space with a base of so many passages; how to ask it."""
    import django

    django.setup()
    from apps.common.actor import Actor
    from apps.common.scope import space_scope, unscoped
    from apps.knowledge.models import Chunk, Document
    from apps.knowledge.models.chunk import passage_hash
    from apps.llm.models import Model
    from apps.llm.services.embedders import deployment_model_id, embedder
    from apps.retrieval.services import index_documents, meaning_hash, meaning_of, set_serving_space, store_vectors
    from apps.spaces.services.keys import key_create
    from tests.support.kit import make_kit

    kit, words, meanings = make_kit("Large"), Words(), Meanings(7)
    space, base, codes = kit.space, kit.base, []
    model_id = deployment_model_id()
    model = embedder(model_id)
    assert model is not None
    with space_scope(space.pk):
        set_serving_space(base.pk, space.pk, model.space, model_id)
        for start in range(0, chunks // A_DOCUMENT, AT_ONCE):
            documents = Document.objects.bulk_create(
                Document(
                    space=space,
                    kb=base,
                    title=f"d{at}.md",
                    file_name=f"d{at}.md",
                    file_hash=f"{at:064d}",
                    enabled=True,
                    parse_status="completed",
                    chunk_count=A_DOCUMENT,
                    index_rev=1,
                )  # fmt: skip
                for at in range(start, start + AT_ONCE)
            )
            made = []
            for document in documents:
                for index in range(A_DOCUMENT):
                    text = words.text()
                    place = {"chunk_index": index, "start_at": index * 420, "end_at": index * 420 + len(text)}
                    made.append(Chunk(space=space, kb=base, document=document, content=text, content_hash=passage_hash(text), **place))
            Chunk.objects.bulk_create(made)
            if len(codes) < CODES:
                codes.append(
                    next(word for word in made[0].content.replace("，", " ").replace("。", " ").split() if any(map(str.isdigit, word)))
                )
            store_vectors(space.pk, model.space, [meaning_hash(meaning_of(chunk)) for chunk in made], meanings.vectors(len(made)))
            index_documents(space.pk, [document.pk for document in documents])
        Model.objects.create(space=space, name="talker", type=Model.Type.CHAT, base_url=model_url)
    actor = Actor.system(space.pk, "benchmark")
    with unscoped("benchmark"):
        made_keys = [key_create(actor=actor, space=space, name=f"k{n}", full_access=True, capabilities=[])[1] for n in range(keys)]
        talker = str(Model.objects.get(name="talker").uid)
    return {"space": space.pk, "base": str(base.uid), "keys": made_keys, "codes": codes, "model": talker}


@dataclass(frozen=True, slots=True)
class Told:
    """Seconds from sending the question; None where it never came."""

    first: float | None
    token: float | None
    end: float | None
    answerer: str = ""


def ask(port: int, key: str, base: str, question: str, model: str) -> Told:
    """One question in a conversation of its own, its stream read to the end."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    connection.request("POST", "/api/v1/sessions", "{}", headers)
    session = json.loads(connection.getresponse().read())["data"]["id"]
    first = token = end = None
    answerer = ""
    body = json.dumps({"query": question, "knowledge_base_ids": [base], "summary_model_id": model, "disable_title": True})
    started = time.perf_counter()
    connection.request("POST", f"/api/v1/knowledge-chat/{session}", body, headers)
    answer = connection.getresponse()
    while answer.status == 200 and (line := answer.readline()):
        if not line.startswith(b"data:"):
            continue
        event, now = json.loads(line[5:]), time.perf_counter() - started
        first = first if first is not None else now
        if event["response_type"] == "answer":
            token = token if token is not None else now
            answerer = event.get("data", {}).get("answerer", answerer)
        if event["response_type"] == "complete":
            end = now
    connection.close()
    return Told(first, token, end, answerer)


def talking() -> tuple[str, Any]:
    """(address, server) of a model that talks for four seconds and cites what there is and what there is not."""
    from tests.support.endpoint import Endpoint

    endpoint = Endpoint()
    wait = threading.Event()

    def behave(_body: object, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        for at in range(20):
            row = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                   "choices": [{"index": 0, "delta": {"content": f"piece {at} [1][{at + 90}]. "}, "finish_reason": None}]}  # fmt: skip
            handler.wfile.write(f"data: {json.dumps(row)}\n\n".encode())
            handler.wfile.flush()
            wait.wait(0.2)
        handler.wfile.write(b"data: [DONE]\n\n")
        handler.close_connection = True

    endpoint.behave = behave  # type: ignore[assignment]
    return endpoint.url, endpoint


def shown(name: str, told: list[Told]) -> str:
    ended = [one for one in told if one.end is not None]
    parts = []
    for part in ("first", "token", "end"):
        p50, p95 = percentiles([getattr(one, part) for one in ended if getattr(one, part) is not None] or [float("nan")])
        parts.append(f"{p50:,.0f} / {p95:,.0f}")
    return f"| {name} | {len(ended)}/{len(told)} | {' | '.join(parts)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--fill", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fill:
        Path(args.fill[0]).write_text(json.dumps(fill(args.chunks, -(-args.streams // A_KEY), args.fill[1])), encoding="utf-8")
        return
    url, endpoint = talking()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as folder:
        stack = LiveStack(Path(folder) / "data", only="web", env={"KB_MODEL_ALLOW": "127.0.0.1"})
        try:
            stack.start()
            told = Path(folder) / "filled.json"
            command = [sys.executable, "-m", "benchmarks.asking", "--chunks", str(args.chunks), "--streams", str(args.streams)]
            began = time.perf_counter()
            subprocess.run([*command, "--fill", str(told), url], env={**os.environ, **stack.environ}, check=True)
            measure(stack, json.loads(told.read_text(encoding="utf-8")), args, time.perf_counter() - began)
        finally:
            stack.stop()
            endpoint.close()


def measure(stack: LiveStack, filled: dict[str, Any], args: argparse.Namespace, fill_s: float) -> None:
    keys, codes = filled["keys"], filled["codes"]

    def one(at: int, model: str) -> Told:
        return ask(stack.port, keys[at % len(keys)], filled["base"], f"What is {codes[at % len(codes)]} about?", model)

    for warm in range(3):
        one(warm, "extractive")
    print(f"{args.chunks:,} passages, filled in {fill_s:.0f} s\n")
    print("| what | ended | first event p50 / p95 ms | first token p50 / p95 ms | end p50 / p95 ms |\n|---|---|---|---|---|", flush=True)
    print(shown("one after the other, built-in answerer", [one(at, "extractive") for at in range(args.turns)]), flush=True)
    for name, model in (("built-in answerer", "extractive"), ("model that talks 4 s", filled["model"])):
        with ThreadPoolExecutor(args.streams) as pool:
            told = list(pool.map(lambda at, model=model: one(at, model), range(args.streams)))
        print(shown(f"{args.streams} at once, {name}", told), flush=True)


if __name__ == "__main__":
    main()
