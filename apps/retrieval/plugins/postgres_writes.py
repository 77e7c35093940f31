"""The statements that change a PostgreSQL index; each function runs inside one transaction of its caller, on one generation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from psycopg import Connection

from apps.retrieval.plugins.postgres_schema import PLAIN, VECTOR, Generation, make_vector_table, tables_of
from apps.retrieval.plugins.postgres_terms import Words, half_bytes, kb_lexeme, quoted, tenant_lexeme, words_of
from apps.retrieval.plugins.protocol import Filing, IndexDocument, Vector
from apps.retrieval.plugins.ranking import SQL_INT
from apps.retrieval.plugins.sqlite_vectors import merged, quantise
from apps.retrieval.plugins.writing import DELETE_AT_ONCE, Flags, foreign_document, grouped, to_refile, vectors_of, wrong_dimension
from apps.retrieval.tokens import document_tokens

_TEXT = "chunk, tenant, kb, doc, folder, tags, live, enabled, len, tsv"
_TEXT_TYPES = ["int8", "int8", "int8", "int8", "int8", "int8[]", "bool", "bool", "int4", "bytea"]
_VEC = "chunk, tenant, kb, doc, space, folder, tags, enabled, emb"
_VEC_TYPES = ["int8", "int8", "int8", "int8", "int4", "int8", "int8[]", "bool", "bytea"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document with everything slow already done, so that the transaction only writes."""

    document: IndexDocument
    words: list[Words]
    vectors: list[Vector | None]
    dimension: int

    @property
    def vector_count(self) -> int:
        return sum(vector is not None for vector in self.vectors)


def batches(documents: Iterable[IndexDocument]) -> Iterator[list[Prepared]]:
    """Prepared documents in groups that make one short transaction each, in an order that lets no two writers wait for each other."""
    for group in grouped(documents):
        yield sorted((_prepare(document) for document in group), key=lambda prepared: prepared.document.id)


def _prepare(document: IndexDocument) -> Prepared:
    vectors, dimension = vectors_of(document)
    ties = tenant_lexeme(document.tenant_id), kb_lexeme(document.tenant_id, document.kb_id)
    words = [words_of(document_tokens(chunk.text), *ties) for chunk in document.chunks]
    return Prepared(document, words, [_usable(vector) for vector in vectors], dimension)


def _usable(vector: Vector | None) -> Vector | None:
    return None if vector is None or not vector.any() else vector


def put(connection: Connection, generation: Generation, batch: Sequence[Prepared]) -> None:
    """Replace the documents; one that the index holds with a higher rev is left alone."""
    for turn in _turns(batch):
        accepted = [prepared for prepared in turn if _claim(connection, generation, prepared)]
        _remove(connection, generation, [prepared.document.id for prepared in accepted])
        _insert_words(connection, generation, accepted)
        _insert_vectors(connection, generation, accepted)


def _turns(batch: Sequence[Prepared]) -> Iterator[list[Prepared]]:
    """The batch in lists that name each document once, so that of two versions in one call the later one stays."""
    rest = list(batch)
    while rest:
        turn = {prepared.document.id: prepared for prepared in reversed(rest)}
        yield [turn[key] for key in sorted(turn)]
        rest = [prepared for prepared in rest if turn[prepared.document.id] is not prepared]


def _claim(connection: Connection, generation: Generation, prepared: Prepared) -> bool:
    """Write the document's own row and hold it until commit; False when the index has a higher rev of it."""
    document = prepared.document
    space = _space_id(connection, generation, document.vector_space, prepared.dimension) if prepared.vector_count else 0
    values = (
        document.id,
        document.tenant_id,
        document.kb_id,
        space,
        document.rev,
        document.folder_id,
        list(document.tag_ids),
        document.enabled,
        len(document.chunks),
        prepared.vector_count,
    )
    table = generation.table("doc")
    sql = (
        f"INSERT INTO {table} AS held (id, tenant, kb, space, rev, folder, tags, enabled, n, vectors)"  # noqa: S608
        " VALUES (%s, %s, %s, %s, %s, %s, %s::bigint[], %s, %s, %s) ON CONFLICT (id) DO UPDATE SET kb = excluded.kb,"
        " space = excluded.space, rev = excluded.rev, folder = excluded.folder, tags = excluded.tags, enabled = excluded.enabled,"
        " n = excluded.n, vectors = excluded.vectors WHERE held.rev <= excluded.rev AND held.tenant = excluded.tenant RETURNING id"
    )
    if connection.execute(sql, values).fetchone() is not None:
        return True
    row = connection.execute(f"SELECT tenant FROM {table} WHERE id = %s", (document.id,)).fetchone()  # noqa: S608
    if row is not None and row[0] != document.tenant_id:
        raise foreign_document()
    return False


def _space_id(connection: Connection, generation: Generation, name: str, dimension: int) -> int:
    table = generation.table("space")
    find = f"SELECT id, dimension FROM {table} WHERE name = %s"  # noqa: S608
    row = connection.execute(find, (name,)).fetchone()
    if row is None:
        insert = f"INSERT INTO {table} (name, dimension) VALUES (%s, %s) ON CONFLICT DO NOTHING"  # noqa: S608
        connection.execute(insert, (name, dimension))
        row = connection.execute(find, (name,)).fetchone()
    assert row is not None
    if row[1] != dimension:
        raise wrong_dimension(name, row[1], dimension)
    if generation.mode == VECTOR:
        make_vector_table(connection, generation, dimension)
    return int(row[0])


def _insert_words(connection: Connection, generation: Generation, accepted: Sequence[Prepared]) -> None:
    _copy_words(connection, generation, (made for prepared in accepted for made in _word_rows(prepared)))


def _word_rows(prepared: Prepared) -> Iterator[tuple[tuple, Words]]:
    d = prepared.document
    for chunk, words in zip(d.chunks, prepared.words, strict=True):
        yield (chunk.id, d.tenant_id, d.kb_id, d.id, d.folder_id, list(d.tag_ids), chunk.enabled, d.enabled and chunk.enabled), words


def _copy_words(connection: Connection, generation: Generation, rows: Iterable[tuple[tuple, Words]]) -> None:
    sparse = generation.mode == VECTOR
    columns = _TEXT + (", sv" if sparse else "")
    with connection.cursor().copy(f"COPY {generation.table('text')} ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(_TEXT_TYPES + (["bytea"] if sparse else []))
        for fields, words in rows:
            row = (*fields, words.length, words.tsv)
            copy.write_row((*row, words.sparse(generation.average)) if sparse else row)


def _insert_vectors(connection: Connection, generation: Generation, accepted: Sequence[Prepared]) -> None:
    if generation.mode == PLAIN:
        for prepared in accepted:
            scales, values = quantise(prepared.vectors, prepared.dimension)
            ids = np.array([c.id for c in prepared.document.chunks], dtype=np.int64).tobytes()
            live = bytes(c.enabled for c in prepared.document.chunks)
            sql = f"INSERT INTO {generation.table('blob')} (doc, ids, live, scale, emb) VALUES (%s, %s, %s, %s, %s)"  # noqa: S608
            connection.execute(sql, (prepared.document.id, ids, live, scales, values))
        return
    for dimension in sorted({prepared.dimension for prepared in accepted} - {0}):
        rows = []
        for prepared in accepted:
            if prepared.dimension == dimension and prepared.vector_count:
                d = prepared.document
                space = _space_id(connection, generation, d.vector_space, dimension)
                flags = {c.id: d.enabled and c.enabled for c in d.chunks}
                given = {c.id: v for c, v in zip(d.chunks, prepared.vectors, strict=True) if v is not None}
                rows += _vector_rows((d.tenant_id, d.kb_id, d.id, space, d.folder_id, list(d.tag_ids)), given, flags)
        _copy_vectors(connection, generation, dimension, rows)


def _vector_rows(fields: tuple, vectors: Mapping[int, Vector], enabled: Mapping[int, bool]) -> list[tuple]:
    made = ((key, half_bytes(vector)) for key, vector in vectors.items())
    return [(key, *fields, enabled[key], emb) for key, emb in made if emb is not None]


def _copy_vectors(connection: Connection, generation: Generation, dimension: int, rows: Sequence[tuple]) -> None:
    if not rows:
        return
    with connection.cursor().copy(f"COPY {generation.vectors(dimension)} ({_VEC}) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(_VEC_TYPES)
        for row in rows:
            copy.write_row(row)


def _satellites(connection: Connection, generation: Generation) -> list[str]:
    """The tables besides `doc` whose rows name a document."""
    names = tables_of(connection, generation)
    return [f"{generation.schema}.{name}" for name in names if not name.startswith(("doc_", "space_"))]


def _vector_tables(connection: Connection, generation: Generation) -> list[str]:
    return [name for name in _satellites(connection, generation) if ".vec_" in name]


def _remove(connection: Connection, generation: Generation, doc_ids: Sequence[int]) -> None:
    """Everything of the documents but their own rows."""
    if doc_ids:
        for table in _satellites(connection, generation):
            connection.execute(f"DELETE FROM {table} WHERE doc = ANY(%s::bigint[])", (list(doc_ids),))  # noqa: S608


def _own(
    connection: Connection, generation: Generation, tenant_id: int, doc_ids: Iterable[int] | None, kb_ids: Iterable[int] | None = None
) -> list[int]:
    """Those of the named documents that are in the index and belong to the space, their rows held until commit."""
    sql = (
        f"SELECT id FROM {generation.table('doc')} WHERE (id = ANY(%s::bigint[]) OR kb = ANY(%s::bigint[])) AND tenant = %s"  # noqa: S608
        " ORDER BY id FOR UPDATE"
    )
    named = [[i for i in ids or () if i in SQL_INT] for ids in (doc_ids, kb_ids)]
    return [row[0] for row in connection.execute(sql, (*named, tenant_id))] if any(named) else []


def delete(
    connection: Connection, generation: Generation, tenant_id: int, doc_ids: Sequence[int] | None, kb_ids: Sequence[int] | None
) -> int:
    """How many documents went; at most DELETE_AT_ONCE, so that no transaction is long."""
    doomed = _own(connection, generation, tenant_id, doc_ids, kb_ids)[:DELETE_AT_ONCE]
    _remove(connection, generation, doomed)
    connection.execute(f"DELETE FROM {generation.table('doc')} WHERE id = ANY(%s::bigint[])", (doomed,))  # noqa: S608
    return len(doomed)


def set_flags(connection: Connection, generation: Generation, tenant_id: int, doc_ids: Sequence[int], flags: Flags) -> None:
    own = _own(connection, generation, tenant_id, doc_ids)
    if not own:
        return
    changes = {
        "folder": ("%s", flags.folder_id),
        "tags": ("%s::bigint[]", None if flags.tag_ids is None else list(flags.tag_ids)),
        "kb": ("%s", flags.kb_id),
    }
    given = {name: value for name, value in changes.items() if value[1] is not None}
    doc, text = generation.table("doc"), generation.table("text")
    vectors = _vector_tables(connection, generation)
    if flags.kb_id is not None:
        sql = f"UPDATE {text} SET tsv = ts_delete(tsv, 'kb ' || tenant || ':' || kb) || %s::tsvector WHERE doc = ANY(%s::bigint[])"  # noqa: S608
        connection.execute(sql, (quoted(kb_lexeme(tenant_id, flags.kb_id)), own))
    if given:
        sets = ", ".join(f"{name} = {value[0]}" for name, value in given.items())
        values = [value[1] for value in given.values()]
        for table, key in [(doc, "id"), (text, "doc"), *((vec, "doc") for vec in vectors)]:
            connection.execute(f"UPDATE {table} SET {sets} WHERE {key} = ANY(%s::bigint[])", (*values, own))  # noqa: S608
    if flags.enabled is not None:
        connection.execute(f"UPDATE {doc} SET enabled = %s WHERE id = ANY(%s::bigint[])", (flags.enabled, own))  # noqa: S608
        connection.execute(f"UPDATE {text} SET enabled = live AND %s WHERE doc = ANY(%s::bigint[])", (flags.enabled, own))  # noqa: S608
        for vec in vectors:
            sql = f"UPDATE {vec} v SET enabled = t.enabled FROM {text} t WHERE t.chunk = v.chunk AND v.doc = ANY(%s::bigint[])"  # noqa: S608
            connection.execute(sql, (own,))


_FILED = "jsonb_to_recordset(%s::jsonb) AS w(id bigint, rev bigint, folder bigint, tags bigint[])"


def refile(
    connection: Connection, generation: Generation, tenant_id: int, filings: Sequence[Filing], tokens: Mapping[int, list[str]]
) -> list[int]:
    """Ids of the documents that need `put`; `tokens` are those of the heads, by passage."""
    doc, text = generation.table("doc"), generation.table("text")
    sql = f"SELECT id, rev FROM {doc} WHERE id = ANY(%s::bigint[]) AND tenant = %s ORDER BY id FOR UPDATE"  # noqa: S608
    held: dict[int, int] = dict(connection.execute(sql, ([filing.id for filing in filings], tenant_id)).fetchall())
    due, left = to_refile(filings, held)
    if not due:
        return left
    rows = [{"id": f.id, "rev": f.rev, "folder": f.folder_id, "tags": list(dict.fromkeys(f.tag_ids))} for f in due]
    filed = json.dumps(rows)
    connection.execute(f"UPDATE {doc} d SET rev = w.rev, folder = w.folder, tags = w.tags FROM {_FILED} WHERE d.id = w.id", (filed,))  # noqa: S608
    for table in (text, *_vector_tables(connection, generation)):
        connection.execute(f"UPDATE {table} t SET folder = w.folder, tags = w.tags FROM {_FILED} WHERE t.doc = w.id", (filed,))  # noqa: S608
    _rewrite_heads(connection, generation, {head.id: tokens[head.id] for f in due for head in f.heads})
    return left


def tokens_of(filings: Sequence[Filing]) -> dict[int, list[str]]:
    """{passage: its tokens}, so that the transaction only writes."""
    return {head.id: list(document_tokens(head.text)) for filing in filings for head in filing.heads}


def _rewrite_heads(connection: Connection, generation: Generation, tokens: Mapping[int, list[str]]) -> None:
    """Give passages other words. They are put in anew: their words come in the form only COPY takes."""
    if not tokens:
        return
    kept = "chunk, tenant, kb, doc, folder, tags, live, enabled"
    sql = f"DELETE FROM {generation.table('text')} WHERE chunk = ANY(%s::bigint[]) RETURNING {kept}"  # noqa: S608
    rows = connection.execute(sql, (list(tokens),)).fetchall()
    made = ((row, words_of(tokens[row[0]], tenant_lexeme(row[1]), kb_lexeme(row[1], row[2]))) for row in rows)
    _copy_words(connection, generation, made)


def set_chunk_enabled(connection: Connection, generation: Generation, tenant_id: int, chunk_ids: Sequence[int], enabled: bool) -> None:
    wanted = [i for i in chunk_ids if i in SQL_INT]
    doc, text = generation.table("doc"), generation.table("text")
    sql = f"SELECT DISTINCT doc FROM {text} WHERE chunk = ANY(%s::bigint[]) AND tenant = %s"  # noqa: S608
    owners = _own(connection, generation, tenant_id, [row[0] for row in connection.execute(sql, (wanted, tenant_id))])
    sql = (
        f"UPDATE {text} t SET live = %s, enabled = %s AND d.enabled FROM {doc} d"  # noqa: S608
        " WHERE d.id = t.doc AND t.chunk = ANY(%s::bigint[]) AND t.doc = ANY(%s::bigint[])"
    )
    connection.execute(sql, (enabled, enabled, wanted, owners))
    for vec in _vector_tables(connection, generation):
        sql = (
            f"UPDATE {vec} v SET enabled = t.enabled FROM {text} t"  # noqa: S608
            " WHERE t.chunk = v.chunk AND v.chunk = ANY(%s::bigint[]) AND t.tenant = %s"
        )
        connection.execute(sql, (wanted, tenant_id))
    if generation.mode == PLAIN:
        blob = generation.table("blob")
        named = set(wanted)
        rows = connection.execute(f"SELECT doc, ids, live FROM {blob} WHERE doc = ANY(%s::bigint[])", (owners,)).fetchall()  # noqa: S608
        for key, ids, live in rows:
            keys = np.frombuffer(ids, dtype=np.int64).tolist()
            changed = bytes(int(enabled) if chunk in named else own for chunk, own in zip(keys, live, strict=True))
            connection.execute(f"UPDATE {blob} SET live = %s WHERE doc = %s", (changed, key))  # noqa: S608


def set_vectors(
    connection: Connection,
    generation: Generation,
    tenant_id: int,
    doc_id: int,
    rev: int,
    vector_space: str,
    vectors: Mapping[int, Vector],
) -> bool:
    """Add `vectors` to those the document has; vectors of another space it had are dropped."""
    doc = generation.table("doc")
    sql = f"SELECT space, kb, folder, tags FROM {doc} WHERE id = %s AND tenant = %s AND rev = %s FOR UPDATE"  # noqa: S608
    row = connection.execute(sql, (doc_id, tenant_id, rev)).fetchone()
    if row is None:
        return False
    if not vectors:
        return True
    dimension = len(next(iter(vectors.values())))
    space = _space_id(connection, generation, vector_space, dimension)
    if generation.mode == PLAIN:
        count = _merge_blob(connection, generation, doc_id, dimension, vectors, keep=row[0] == space)
    else:
        for table in _vector_tables(connection, generation):
            sql = f"DELETE FROM {table} WHERE doc = %s AND (space <> %s OR chunk = ANY(%s::bigint[]))"  # noqa: S608
            connection.execute(sql, (doc_id, space, list(vectors)))
        table = generation.table("text")
        enabled: dict[int, bool] = dict(connection.execute(f"SELECT chunk, enabled FROM {table} WHERE doc = %s", (doc_id,)).fetchall())  # noqa: S608
        given = {key: vector for key, vector in vectors.items() if key in enabled}
        rows = _vector_rows((tenant_id, row[1], doc_id, space, row[2], row[3]), given, enabled)
        _copy_vectors(connection, generation, dimension, rows)
        sql = f"SELECT count(*) FROM {generation.vectors(dimension)} WHERE doc = %s AND space = %s"  # noqa: S608
        count = (connection.execute(sql, (doc_id, space)).fetchone() or (0,))[0]
    connection.execute(f"UPDATE {doc} SET space = %s, vectors = %s WHERE id = %s", (space, count, doc_id))  # noqa: S608
    return True


def _merge_blob(
    connection: Connection, generation: Generation, doc_id: int, dimension: int, vectors: Mapping[int, Vector], *, keep: bool
) -> int:
    blob = generation.table("blob")
    row = connection.execute(f"SELECT ids, scale, emb FROM {blob} WHERE doc = %s", (doc_id,)).fetchone()  # noqa: S608
    assert row is not None
    ids = np.frombuffer(row[0], dtype=np.int64).tolist()
    scales, values, count = merged([vectors.get(key) for key in ids], dimension, (row[1], row[2]) if keep else None)
    connection.execute(f"UPDATE {blob} SET scale = %s, emb = %s WHERE doc = %s", (scales, values, doc_id))  # noqa: S608
    return count
