"""The tables of a PostgreSQL index: what they are called, how they are made, what must be there for them."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

import psycopg
from psycopg import Connection, errors

from apps.retrieval.plugins.protocol import IndexOutdated
from apps.retrieval.tokens import tokeniser_id

log = logging.getLogger(__name__)

SCHEMA_VERSION = 3
LEAST_PGVECTOR = (0, 8)  # iterative scans
HNSW_DIMENSIONS = 4000
GRAPH_BYTES = 1200  # of a vector's place in a graph that is being made in memory, besides the vector
LEAST_MEMORY_KB, MOST_MEMORY_KB = 64 * 1024, 1024 * 1024
VECTOR, PLAIN = "vector", "plain"

GENERATIONS = """
CREATE TABLE IF NOT EXISTS {schema}.generation (
    id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('current', 'building', 'dropped')),
    version INTEGER NOT NULL, tokeniser TEXT NOT NULL, mode TEXT NOT NULL CHECK (mode IN ('vector', 'plain')),
    average REAL NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS generation_state ON {schema}.generation (state) WHERE state <> 'dropped';
"""
TABLES = """
CREATE TABLE {doc} (
    id BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, kb BIGINT NOT NULL, space INTEGER NOT NULL, rev BIGINT NOT NULL,
    folder BIGINT NOT NULL, tags BIGINT[] NOT NULL, enabled BOOLEAN NOT NULL, n INTEGER NOT NULL, tokens BIGINT NOT NULL,
    vectors INTEGER NOT NULL
);
CREATE INDEX ON {doc} (kb);
CREATE INDEX ON {doc} (tenant);
CREATE TABLE {space} (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
CREATE TABLE {text} (
    chunk BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, kb BIGINT NOT NULL, doc BIGINT NOT NULL, folder BIGINT NOT NULL,
    tags BIGINT[] NOT NULL, live BOOLEAN NOT NULL, enabled BOOLEAN NOT NULL, len INTEGER NOT NULL, tsv TSVECTOR NOT NULL,
    sv {sparse} NOT NULL
) WITH (toast_tuple_target = 128);
ALTER TABLE {text} ALTER tsv SET STORAGE EXTERNAL, ALTER tsv SET STATISTICS 1000, ALTER sv SET STORAGE PLAIN;
CREATE INDEX ON {text} (doc);
"""
# fastupdate: a list of pending entries makes every search slower and now and then one write very slow, and costs a third more in all.
_WORDS = "CREATE INDEX IF NOT EXISTS {name} ON {text} USING gin (tsv) WITH (fastupdate = off)"
BLOBS = """
CREATE TABLE {blob} (doc BIGINT PRIMARY KEY, ids BYTEA NOT NULL, live BYTEA NOT NULL, scale BYTEA NOT NULL, emb BYTEA NOT NULL);
ALTER TABLE {blob} ALTER ids SET STORAGE EXTERNAL, ALTER live SET STORAGE EXTERNAL, ALTER scale SET STORAGE EXTERNAL,
    ALTER emb SET STORAGE EXTERNAL;
"""
_VECTORS = """
CREATE TABLE {vec} (
    chunk BIGINT PRIMARY KEY, tenant BIGINT NOT NULL, kb BIGINT NOT NULL, doc BIGINT NOT NULL, space INTEGER NOT NULL,
    folder BIGINT NOT NULL, tags BIGINT[] NOT NULL, enabled BOOLEAN NOT NULL, emb HALFVEC({dimension}) NOT NULL
);
ALTER TABLE {vec} ALTER emb SET STORAGE PLAIN;
CREATE INDEX ON {vec} (kb);
CREATE INDEX ON {vec} (doc);
"""
_HNSW = "CREATE INDEX IF NOT EXISTS {name} ON {vec} USING hnsw (emb halfvec_ip_ops) WITH (m = 16, ef_construction = 64)"


@dataclass(frozen=True, slots=True)
class Generation:
    """One set of tables. `average`: tokens of a passage for which its word vectors are BM25 as they stand."""

    schema: str
    id: int
    version: int
    tokeniser: str
    mode: str
    average: float

    def table(self, name: str) -> str:
        return f"{self.schema}.{name}_{self.id}"

    def vectors(self, dimension: int) -> str:
        return f"{self.schema}.vec_{self.id}_{dimension}"

    def require_current_version(self) -> Generation:
        held, wanted = (self.version, self.tokeniser), (SCHEMA_VERSION, tokeniser_id())
        if held != wanted:
            raise IndexOutdated(f"the search index was written as {held}, this version needs {wanted}; run manage.py rebuild_index")
        return self


def has_pgvector(connection: Connection) -> bool:
    """Whether pgvector 0.8 or later is there or could be made to be."""
    version = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    row = connection.execute(version).fetchone()
    if row is None:
        try:
            with connection.transaction():
                connection.execute("CREATE EXTENSION vector")
        except psycopg.Error as error:
            log.info("pgvector is not to be had (%s); searching without it", str(error).splitlines()[0])
            return False
        row = connection.execute(version).fetchone()
    return row is not None and tuple(int(part) for part in re.findall(r"\d+", row[0])[:2]) >= LEAST_PGVECTOR


def tables(connection: Connection, schema: str, key: int) -> list[str]:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    return sorted(name for (name,) in rows if re.fullmatch(rf"(doc|space|text|blob)_{key}|vec_{key}_\d+", name))


def tables_of(connection: Connection, generation: Generation) -> list[str]:
    """The names of the generation's tables, without their schema."""
    return tables(connection, generation.schema, generation.id)


def make_vector_table(connection: Connection, generation: Generation, dimension: int) -> None:
    """The table for vectors of this size, if it is missing. A generation that is being built gets its HNSW graphs at the end."""
    name = generation.vectors(dimension)
    there = "SELECT 1 FROM pg_tables WHERE schemaname || '.' || tablename = %s"  # to_regclass would not see what was made during the wait
    if connection.execute(there, (name,)).fetchone():
        return
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (name,))
    if connection.execute(there, (name,)).fetchone():
        return
    connection.execute(_VECTORS.format(vec=name, dimension=dimension))
    state = connection.execute(f"SELECT state FROM {generation.schema}.generation WHERE id = %s", (generation.id,)).fetchone()  # noqa: S608
    if state and state[0] == "current":
        make_hnsw(connection, generation, dimension)


def make_word_index(connection: Connection, generation: Generation) -> None:
    """The index over words. A generation that is being built gets it at the end: made at once it takes a fraction of the time."""
    # Sorted in pieces its pages are fuller than sorted whole: 93 instead of 120 MB for 40,000 passages, and no slower.
    connection.execute("SET LOCAL maintenance_work_mem = '48MB'")
    connection.execute(_WORDS.format(name=f"text_{generation.id}_words", text=generation.table("text")))


def make_hnsw(connection: Connection, generation: Generation, dimension: int) -> None:
    """The graph over the vectors of this size, made in memory where it fits, by several processes where the server allows it."""
    if dimension > HNSW_DIMENSIONS:
        return
    vec = generation.vectors(dimension)
    rows = int((connection.execute(f"SELECT count(*) FROM {vec}").fetchone() or (0,))[0])  # noqa: S608
    memory = min(max(rows * (2 * dimension + GRAPH_BYTES) // 1024, LEAST_MEMORY_KB), MOST_MEMORY_KB)
    sql = _HNSW.format(name=f"vec_{generation.id}_{dimension}_hnsw", vec=vec)
    try:
        with connection.transaction():
            connection.execute(f"SET LOCAL maintenance_work_mem = '{memory}kB'")
            connection.execute(sql)
    except (errors.DiskFull, errors.OutOfMemory):  # several processes share /dev/shm, which containers keep small
        with connection.transaction():
            connection.execute(f"SET LOCAL maintenance_work_mem = '{memory}kB'; SET LOCAL max_parallel_maintenance_workers = 0")
            connection.execute(sql)
