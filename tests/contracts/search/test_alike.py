"""Every search engine ranks alike: one corpus of Chinese and English passages, the same questions, the same answers."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from apps.retrieval.plugins.protocol import Hit, IndexChunk, IndexDocument, Query, SearchBackend, Vector, backends
from tests.support.search_engines import ENGINES, store_options

SPACE = "hand:32"
TOPICS = {
    "传感器": "温度传感器应每季度校准一次，校准前在常温下静置三十分钟，误差超过零点五度时更换探头并记录编号",
    "水泵": "水泵启动前必须先灌水，检查阀门与压力表，运行中发现异响应立即停机，通知值班人员处理并填写记录",
    "报销": "出差人员应在返回后七个工作日内提交报销单，附上发票与行程单，由部门主管审核后交财务付款",
    "网络": "服务器连接被拒绝时检查防火墙规则与端口，确认证书没有过期，再查看日志中的错误代码与时间",
    "pump": "The pump must be primed before it is started and the operator checks valve pressure and seal wear every week",
    "travel": "Employees file travel expenses within seven working days and attach invoices approved by the department manager",
    "network": "When the server refuses the connection check firewall rules certificates and the error code in the service log",
    "sensor": "Calibrate the temperature sensor every quarter and replace the probe when the deviation exceeds half a degree",
}
QUESTIONS = [
    "传感器多久校准一次", "水泵启动前要做什么", "报销需要哪些材料", "服务器连接被拒绝", "校准", "阀门压力", "how to prime the pump",
    "travel expense invoices", "firewall error code", "calibrate sensor probe", "ERR-4021 怎么处理", "err 4055", "PPR-1007", "税",
    "温度 temperature sensor", "水泵启动前必须先灌水", "不存在的词语 xyzzy",
]  # fmt: skip


def corpus() -> list[IndexDocument]:
    """600 passages of about 190 tokens: sentences of two topics, some codes, a vector near those of its topics."""
    chance = random.Random(5)
    noise = np.random.default_rng(5)
    names = list(TOPICS)
    axes = noise.normal(size=(len(names), 32)).astype(np.float32)
    documents = []
    for key in range(1, 201):
        chunks = []
        for n in range(3):
            first, second = chance.sample(range(len(names)), 2)
            words = [TOPICS[names[chance.choice((first, first, second))]] for _ in range(chance.randint(3, 6))]
            pieces = [piece[chance.randint(0, 12) :] for piece in words] + [f"编号 ERR-{4000 + (key * 3 + n) % 97}"]
            if chance.random() < 0.02:
                pieces.append(f"PPR-{1000 + key % 12}，增值税")
            chance.shuffle(pieces)
            vector = 2 * axes[first] + axes[second] + noise.normal(size=32).astype(np.float32)
            chunks.append(IndexChunk(key * 10 + n, "。".join(pieces), vector / np.linalg.norm(vector)))
        documents.append(IndexDocument(key, 1, 1 + key % 3, 1, 0, (key % 4,), True, SPACE, tuple(chunks)))
    return documents


@pytest.fixture(scope="module")
def engines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SearchBackend]]:
    made, stores = {}, []
    for engine in ENGINES:
        store = store_options(request, tmp_path_factory.mktemp(engine), engine)
        name, options = next(store)
        stores.append(store)
        made[engine] = _filled(name, options)
    yield made
    for store in stores:
        next(store, None)


def _filled(name: str, options: Mapping[str, str]) -> SearchBackend:
    backend = backends.get(name)(options)
    backend.ensure()
    backend.put(corpus())
    return backend


def question_vector(text: str) -> Vector:
    made = np.random.default_rng(len(text)).normal(size=32).astype(np.float32)
    return made / np.linalg.norm(made)


def assert_same_order(reference: dict[int, float], other: dict[int, float], tolerance: float, where: object) -> None:
    """Scores agree, and so does the order of any two that differ by more than the tolerance."""
    shared = sorted(reference.keys() & other.keys())
    for chunk in shared:
        assert other[chunk] == pytest.approx(reference[chunk], abs=tolerance), where
    last = min(reference.values(), default=0.0)
    astray = [chunk for chunk in reference.keys() - other.keys() if reference[chunk] > last + 2 * tolerance]
    assert astray == [], where  # only what stands at the end of the list may be exchanged for its like


@pytest.mark.parametrize("engine", ENGINES[1:])
@pytest.mark.parametrize("question", QUESTIONS)
def test_words_rank_alike(engines: dict[str, SearchBackend], engine: str, question: str) -> None:
    query = Query(1, (1, 2), question, mode="text")
    reference, other = engines["sqlite"].text_leg(query), engines[engine].text_leg(query)
    assert reference == other
    exact = [{hit.chunk_id: hit.grade for hit in engines[name].exact_leg(query)} for name in ("sqlite", engine)]
    assert exact[0] == exact[1] or len(exact[0]) >= len(exact[1]) >= 50


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_vectors_rank_alike(engines: dict[str, SearchBackend], engine: str) -> None:
    for question in QUESTIONS:
        query = Query(1, (1, 2, 3), vector=question_vector(question), vector_space=SPACE, mode="vector", tag_ids=(1, 2))
        legs = [{hit.chunk_id: hit.score for hit in engines[name].vector_leg(query)} for name in ("sqlite", engine)]
        assert len(legs[0]) == len(legs[1]) == 60
        assert_same_order(legs[0], legs[1], 0.01, question)


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_the_fused_ranking_is_alike(engines: dict[str, SearchBackend], engine: str) -> None:
    first = []
    for question in QUESTIONS:
        query = Query(1, (1, 2, 3), question, question_vector(question), SPACE, k=50)
        reference, other = engines["sqlite"].search(query), engines[engine].search(query)
        exact = [{hit.chunk_id for hit in hits if hit.exact} for hits in (reference, other)]
        if min(map(len, exact)) >= 50:  # more are exact than are listed; which of them is left open
            continue
        assert exact[0] == exact[1], question
        assert_same_order(scores(reference), scores(other), 0.06, question)
        first.append(reference[0].chunk_id == other[0].chunk_id)
    assert first.count(False) <= 1 and len(first) > 12


def scores(hits: list[Hit]) -> dict[int, float]:
    return {hit.chunk_id: hit.score for hit in hits}
