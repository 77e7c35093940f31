"""What only the PostgreSQL engine has to get right; what every engine promises is in tests/contracts/search/."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psycopg
import pytest

from apps.common.errors import InvalidInput, TransientError, Unavailable
from apps.retrieval.plugins import postgres_reads
from apps.retrieval.plugins.bm25 import lexeme, question_slots, slot
from apps.retrieval.plugins.postgres_engine import PostgresBackend, open_postgres
from apps.retrieval.plugins.postgres_schema import make_hnsw
from apps.retrieval.plugins.postgres_scope import Scope
from apps.retrieval.plugins.postgres_store import close_pools
from apps.retrieval.plugins.postgres_terms import SAMPLED_SQL, quoted, sampled, sparse_question, times_in, words_of
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, IndexMissing, Query
from tests.support.postgres import PostgresProcess
from tests.support.waiting import pid_alive, until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def backend(index_database: str) -> Iterator[PostgresBackend]:
    made = PostgresBackend(index_database, schema=f"kb_index_{secrets.token_hex(4)}")
    made.ensure()
    yield made
    made.drop()


def doc(key: int, *texts: str, vectors: np.ndarray | None = None, **fields: int) -> IndexDocument:
    chunks = tuple(IndexChunk(key * 10 + n, text, None if vectors is None else vectors[n]) for n, text in enumerate(texts))
    values = {"tenant_id": 1, "kb_id": 1, "rev": 1, "folder_id": 0, **fields}
    return IndexDocument(key, chunks=chunks, vector_space="" if vectors is None else f"hand:{vectors.shape[1]}", **values)  # type: ignore[arg-type]


def found(backend: PostgresBackend, text: str) -> list[int]:
    return [hit.doc_id for hit in backend.search(Query(1, (1,), text, mode="text"))]


def test_pgvector_is_used_where_it_can_be_had(backend: PostgresBackend) -> None:
    assert backend.stats().details["mode"] == "vector"


def test_a_user_who_may_not_create_extensions_searches_without_pgvector(postgres_server: PostgresProcess) -> None:
    url = postgres_server.create_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE bound LOGIN; CREATE SCHEMA kb_index AUTHORIZATION bound")
    backend = PostgresBackend(url.replace("postgres@", "bound@"))
    backend.ensure()
    backend.put([doc(1, "水泵 pump", vectors=np.eye(1, 4, dtype=np.float32))])
    assert backend.stats().details["mode"] == "plain"
    assert found(backend, "水泵") == [1]
    with pytest.raises(Unavailable) as denied:
        PostgresBackend(url.replace("postgres@", "bound@"), schema="another").ensure()
    assert denied.value.code == "index_denied" and "permission denied" in str(denied.value)


def test_the_servers_of_distributions_work_without_pgvector(tmp_path: Path) -> None:
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not installed:
        pytest.skip("no PostgreSQL in /usr/lib/postgresql")
    with tempfile.TemporaryDirectory() as folder, PostgresProcess(Path(folder), programs=installed[0].parent) as server:
        backend = PostgresBackend(server.create_database())
        backend.ensure()
        made = [doc(key, f"水泵 {key} 的维护 ERR-40{key}", vectors=np.eye(9, dtype=np.float32)[key - 1 : key]) for key in range(1, 10)]
        backend.put(made)
        again = backend.begin_rebuild()
        again.put(made)
        backend.swap(again)
        assert backend.stats().details["mode"] in ("plain", "vector")
        assert (found(backend, "ERR-407")[0], len(found(backend, "水泵")), backend.check()) == (7, 9, [])
        hits = backend.search(Query(1, (1,), "水泵的维护", np.eye(9, dtype=np.float32)[3], "hand:9"))
        assert (hits[0].doc_id, len(hits)) == (4, 9)
        backend.delete(1, doc_ids=[7])
        assert found(backend, "ERR-407")[:1] != [7]
        close_pools()


def test_many_bases_are_searched_within_their_space_only(backend: PostgresBackend) -> None:
    """Of more bases than are named in the word index the space is, so that other spaces cost nothing."""
    backend.put([doc(1, "pump"), doc(2, "pump", kb_id=500), doc(3, "pump", tenant_id=2, kb_id=2)])
    scope = Scope.of(Query(1, tuple(range(1, 100)), "pump"))
    assert scope.kb_query == "('kb 1') & "
    hits = backend.search(Query(1, tuple(range(1, 100)), "pump", mode="text"))
    assert [hit.doc_id for hit in hits] == [1]
    backend.set_flags(1, [2], kb_id=50)
    assert {hit.doc_id for hit in backend.search(Query(1, tuple(range(1, 100)), "pump", mode="text"))} == {1, 2}


def test_a_graph_is_made_where_little_memory_may_be_shared(backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers keep /dev/shm small: what several processes cannot make together one makes alone."""
    vectors = np.random.default_rng(1).normal(size=(30, 8)).astype(np.float32)
    backend.put([doc(key, "", vectors=vectors[key : key + 1]) for key in range(30)])
    with backend._store.connection() as connection:
        generation = backend._store.generations(connection)["current"]
        name = f"vec_{generation.id}_8_hnsw"
        connection.execute(f"DROP INDEX {generation.schema}.{name}")
        tried: list[str] = []
        execute = connection.execute

        def limited(sql: str, *values: object) -> object:
            tried.append(sql)
            if sql.startswith("CREATE INDEX") and not any("max_parallel_maintenance_workers = 0" in past for past in tried):
                raise psycopg.errors.DiskFull('could not resize shared memory segment "/PostgreSQL.1" to 67108864 bytes')
            return execute(sql, *values)

        monkeypatch.setattr(connection, "execute", limited)
        make_hnsw(connection, generation, 8)
        monkeypatch.undo()
        assert connection.execute("SELECT to_regclass(%s)", (f"{generation.schema}.{name}",)).fetchone() != (None,)


def test_a_server_that_went_away_is_told_and_found_again(postgres_server: PostgresProcess) -> None:
    server = PostgresProcess(postgres_server.folder / "another")
    with server:
        backend = PostgresBackend(server.create_database())
        backend.ensure()
        backend.put([doc(1, "pump")])
        server.stop()
        for _ in range(2):
            with pytest.raises(TransientError) as failed:
                found(backend, "pump")
            assert failed.value.code == "index_busy"
        server.start()
        assert found(backend, "pump") == [1]


def test_the_servers_of_the_tests_end_with_their_parent() -> None:
    program = (
        "from tests.support.postgres import running_postgres\n"
        "with running_postgres() as server:\n    print(server.pid, flush=True)\n    input()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    pid = int(process.stdout.readline())
    assert pid_alive(pid)
    process.kill()
    process.wait(10)
    until(lambda: not pid_alive(pid), "PostgreSQL to end")


def test_many_vectors_in_scope_are_searched_by_graph(backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    made = random.normal(size=(600, 16)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    backend.put([doc(key, "", vectors=made[key : key + 1], kb_id=1 + key % 2) for key in range(600)])
    monkeypatch.setattr(postgres_reads, "EXACT_VECTORS", 100)
    recalled = 0
    for at in range(10):
        question = made[at * 2] + 0.1 * random.normal(size=16).astype(np.float32)
        hits = backend.vector_leg(Query(1, (1,), vector=question, vector_space="hand:16", candidates=20))
        best = np.argsort(-(made[::2] @ question))[:20] * 2
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True) and len(hits) == 20
        recalled += len({hit.doc_id for hit in hits} & set(best.tolist()))
    assert recalled >= 190
    hits = backend.vector_leg(Query(1, (1,), vector=made[0], vector_space="hand:16", candidates=500))
    assert len(hits) == 300  # more than the graph gives: all are compared after all


def test_very_long_words_and_passages(backend: PostgresBackend) -> None:
    long = "x" * 5000 + "1"
    backend.put([doc(1, f"before {long} after", "quote ' back\\slash o'clock"), doc(2, " ".join(f"word{n}" for n in range(200_000)))])
    hits = backend.search(Query(1, (1,), long, mode="text"))
    assert (hits[0].doc_id, hits[0].exact) == (1, True)
    assert not backend.search(Query(1, (1,), long[:-1] + "2", mode="text"))[0].exact
    assert found(backend, "o'clock") == [1]
    assert found(backend, "word17") == [2]
    assert backend.text_leg(Query(1, (1,), f"{long} before"))[0].held == 1.0


def test_in_large_bases_the_rarity_of_words_is_estimated(backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.put([doc(key, *(f"pump number{key}" if key % 10 else f"valve pump number{key}" for _ in range(4))) for key in range(1, 301)])
    query = Query(1, (1,), "valve pump number17")
    counted = backend.text_leg(query)
    monkeypatch.setattr("apps.retrieval.plugins.postgres_words.ALL_COUNTED", 100)
    monkeypatch.setattr("apps.retrieval.plugins.postgres_words.LEAST_SAMPLE", 250)
    estimated = backend.text_leg(query)
    assert [hit.doc_id for hit in estimated[:4]] == [hit.doc_id for hit in counted[:4]] == [17] * 4
    assert [hit.score for hit in estimated] == pytest.approx([hit.score for hit in counted], rel=0.1)
    assert [hit.score for hit in estimated] != [hit.score for hit in counted]  # one in four passages was looked at
    backend.set_flags(1, list(range(1, 301)), kb_id=2)
    assert [hit.doc_id for hit in backend.text_leg(Query(1, (2,), "valve pump number17"))][:4] == [17] * 4


def test_too_many_passages_to_read_are_put_in_order_by_the_database(backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.put([doc(key, f"pump number{key}" if key % 10 else f"valve pump number{key}") for key in range(1, 301)])
    query = Query(1, (1,), "valve pump number17")
    read = backend.text_leg(query)
    monkeypatch.setattr("apps.retrieval.plugins.postgres_words.MOST_READ", 100)
    assert backend.text_leg(query) == read


def test_sql_and_python_agree_on_the_sample(backend: PostgresBackend) -> None:
    ids = [*range(1, 2000), 2**31 - 1, 2**31, 2**40 + 7, 2**62]
    with backend._store.connection() as connection:
        for level in (1, 2, 5):
            sql = f"SELECT chunk FROM unnest(%s::bigint[]) chunk WHERE {SAMPLED_SQL.format(each=4**level)}".replace(" % ", " %% ")
            assert [row[0] for row in connection.execute(sql, (ids,))] == [key for key in ids if sampled(key, level)]
    assert 400 < sum(sampled(key, 1) for key in range(2000)) < 600


def test_a_text_cannot_pretend_to_belong_to_a_base(backend: PostgresBackend) -> None:
    backend.put([doc(1, "kb 1:2 kb:1:2 pump"), doc(2, "pump", kb_id=2)])
    assert [hit.doc_id for hit in backend.search(Query(1, (2,), "pump kb:1:2", mode="text"))] == [2]


def test_two_processes_may_make_the_index_at_once(index_database: str) -> None:
    schema = f"kb_index_{secrets.token_hex(4)}"
    failures: list[BaseException] = []

    def make() -> None:
        try:
            backend = PostgresBackend(index_database, schema=schema)
            backend.ensure()
            backend.put([doc(threading.get_ident() % 10_000_000, "pump", vectors=np.eye(1, 8, dtype=np.float32))])
        except BaseException as error:  # noqa: BLE001 - whatever a thread meets must reach the test
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    backend = PostgresBackend(index_database, schema=schema)
    assert failures == []
    assert (backend.stats().documents, backend.stats().vectors, backend.check()) == (6, 6, [])
    backend.drop()
    with pytest.raises(IndexMissing):
        backend.stats()


@pytest.mark.parametrize(("options", "field"), [({}, "dsn"), ({"dsn": "postgres://x/y", "mode": "fast"}, "mode")])
def test_missing_and_unknown_options_are_named(options: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        open_postgres(options)
    assert refused.value.field == field


def test_words_in_the_forms_postgres_takes() -> None:
    assert quoted("a'b\\c") == "'a''b\\\\c'"
    assert lexeme("short") == "short" and lexeme("税" * 85) == "税" * 85
    assert len(lexeme("税" * 86).encode()) < 255 and lexeme("税" * 86) != lexeme("税" * 87)
    assert sparse_question(np.array([7, 9], dtype=np.uint32), np.array([1.5, 0.25])) == "{8:1.5,10:0.25}/16777216"


def test_how_often_words_stand_is_read_back_from_their_vectors() -> None:
    made = [words_of(text.split()) for text in ("pump pump valve", "seal", "pump " * 40 + "hose " * 300)]
    sparse = [words.sparse(190.0) for words in made]
    passage, term, times = times_in(sparse, np.array([words.length for words in made]), 190.0, question_slots(["pump", "hose", "absent"]))
    slots = question_slots(["pump", "hose", "absent"]).tolist()
    pump, hose = slots.index(slot("pump")), slots.index(slot("hose"))
    assert sorted(zip(passage.tolist(), term.tolist(), times.tolist(), strict=True)) == sorted(
        [(0, pump, 2), (2, pump, 40), (2, hose, 255)]
    )
