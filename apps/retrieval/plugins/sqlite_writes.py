"""The statements that change a SQLite index; each function runs inside one transaction of its caller."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import numpy as np

from apps.retrieval.plugins.protocol import Filing, IndexDocument, Vector
from apps.retrieval.plugins.sqlite_vectors import merged, quantise
from apps.retrieval.plugins.sqlite_words import COLUMNS, packed, with_passage
from apps.retrieval.plugins.writing import DELETE_AT_ONCE, Flags, foreign_document, grouped, to_refile, vectors_of, wrong_dimension
from apps.retrieval.tokens import document_tokens

PACKED_LEVEL = 1  # of zlib: a third of the size, and hardly any time


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document with everything slow already done, so that the transaction only writes."""

    document: IndexDocument
    bodies: list[str]
    packed_bodies: bytes
    words: tuple[bytes, bytes, bytes, bytes, bytes]
    dimension: int
    vectors: int
    live: bytes
    scales: bytes
    values: bytes


def kb_token(tenant_id: int, kb_id: int) -> str:
    """The word that ties a passage to its space and base; a base id of another space cannot match it."""
    return f"k{tenant_id}_{kb_id}"


def batches(documents: Iterable[IndexDocument]) -> Iterator[list[Prepared]]:
    """Prepared documents in groups that make one short transaction each."""
    return ([_prepare(document) for document in group] for group in grouped(documents))


def _prepare(document: IndexDocument) -> Prepared:
    made, dimension = vectors_of(document)
    scales, values = quantise(made, dimension)
    tokens = [document_tokens(chunk.text) for chunk in document.chunks]
    bodies = [" ".join(passage) for passage in tokens]
    return Prepared(
        document=document,
        bodies=bodies,
        packed_bodies=zlib.compress("\n".join(bodies).encode("utf-8"), PACKED_LEVEL),
        words=packed(tokens),
        dimension=dimension,
        vectors=sum(vector is not None for vector in made),
        live=bytes(chunk.enabled for chunk in document.chunks),
        scales=scales,
        values=values,
    )


def put(connection: Connection, batch: Sequence[Prepared]) -> None:
    """Replace the documents; one that the index holds with a higher rev is left alone."""
    for prepared in batch:
        document = prepared.document
        held = connection.execute("SELECT tenant, rev FROM doc WHERE id = ?", (document.id,)).fetchone()
        if held is not None:
            if held[0] != document.tenant_id:
                raise foreign_document()
            if held[1] > document.rev:
                continue
            _remove(connection, [document.id])
        _insert(connection, prepared)


def _insert(connection: Connection, prepared: Prepared) -> None:
    document = prepared.document
    token = kb_token(document.tenant_id, document.kb_id)
    space = _space_id(connection, document.vector_space, prepared.dimension) if prepared.vectors else 0
    connection.execute(
        "INSERT INTO doc (id, tenant, kb, space, rev, folder, enabled, n, vectors, ids, live, scale, emb)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            document.id,
            document.tenant_id,
            document.kb_id,
            space,
            document.rev,
            document.folder_id,
            int(document.enabled),
            len(document.chunks),
            prepared.vectors,
            np.array([c.id for c in document.chunks], dtype=np.int64).tobytes(),
            prepared.live,
            prepared.scales,
            prepared.values,
        ),
    )
    sql = f"INSERT INTO words (doc, {COLUMNS}, body) VALUES (?,?,?,?,?,?,?)"  # noqa: S608
    connection.execute(sql, (document.id, *prepared.words, prepared.packed_bodies))
    connection.executemany(
        "INSERT INTO chunk (id, doc, tenant, kb, enabled) VALUES (?,?,?,?,?)",
        [(c.id, document.id, document.tenant_id, document.kb_id, int(document.enabled and c.enabled)) for c in document.chunks],
    )
    connection.executemany(
        "INSERT INTO fts (rowid, kb, body) VALUES (?,?,?)",
        [(c.id, token, body) for c, body in zip(document.chunks, prepared.bodies, strict=True)],
    )
    _set_tags(connection, document.id, document.tag_ids)


def _space_id(connection: Connection, name: str, dimension: int) -> int:
    row = connection.execute("SELECT id, dimension FROM space WHERE name = ?", (name,)).fetchone()
    if row is None:
        cursor = connection.execute("INSERT INTO space (name, dimension) VALUES (?, ?)", (name, dimension))
        return int(cursor.lastrowid or 0)
    if row[1] != dimension:
        raise wrong_dimension(name, row[1], dimension)
    return int(row[0])


def _set_tags(connection: Connection, doc_id: int, tag_ids: Sequence[int]) -> None:
    connection.executemany("INSERT OR IGNORE INTO doctag (tag, doc) VALUES (?, ?)", [(tag, doc_id) for tag in tag_ids])


def _remove(connection: Connection, doc_ids: Sequence[int]) -> None:
    for doc_id in doc_ids:
        _forget_words(connection, doc_id)
        for table, column in (("chunk", "doc"), ("words", "doc"), ("doctag", "doc"), ("moved", "doc"), ("doc", "id")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (doc_id,))  # noqa: S608


def _forget_words(connection: Connection, doc_id: int) -> None:
    """Take the document's passages out of the word index, which has to be told what it was told of them."""
    sql = (
        "SELECT doc.tenant, coalesce(moved.home, doc.kb), doc.ids, words.body FROM doc JOIN words ON words.doc = doc.id"
        " LEFT JOIN moved ON moved.doc = doc.id WHERE doc.id = ?"
    )
    for tenant, home, ids, packed_bodies in connection.execute(sql, (doc_id,)).fetchall():
        bodies = zlib.decompress(packed_bodies).decode("utf-8").split("\n")
        keys = np.frombuffer(ids, dtype=np.int64).tolist()
        rows = [(key, kb_token(tenant, home), body) for key, body in zip(keys, bodies, strict=len(keys) > 0)]
        connection.executemany("INSERT INTO fts (fts, rowid, kb, body) VALUES ('delete', ?, ?, ?)", rows)


def _own(connection: Connection, tenant_id: int, doc_ids: Sequence[int] | None, kb_ids: Sequence[int] | None = None) -> list[int]:
    """Those of the named documents that are in the index and belong to the space."""
    found: set[int] = set()
    for column, ids in (("id", doc_ids), ("kb", kb_ids)):
        if ids is not None:
            sql = f"SELECT id FROM doc WHERE {column} IN (SELECT value FROM json_each(?)) AND +tenant = ?"  # noqa: S608
            found.update(row[0] for row in connection.execute(sql, (json.dumps(list(ids)), tenant_id)))
    return sorted(found)


def delete(connection: Connection, tenant_id: int, doc_ids: Sequence[int] | None, kb_ids: Sequence[int] | None) -> int:
    """How many documents went; at most DELETE_AT_ONCE, so that other writers get their turn."""
    doomed = _own(connection, tenant_id, doc_ids, kb_ids)[:DELETE_AT_ONCE]
    _remove(connection, doomed)
    return len(doomed)


def set_flags(connection: Connection, tenant_id: int, doc_ids: Sequence[int], flags: Flags) -> None:
    for doc_id in _own(connection, tenant_id, doc_ids):
        if flags.folder_id is not None:
            connection.execute("UPDATE doc SET folder = ? WHERE id = ?", (flags.folder_id, doc_id))
        if flags.tag_ids is not None:
            connection.execute("DELETE FROM doctag WHERE doc = ?", (doc_id,))
            _set_tags(connection, doc_id, flags.tag_ids)
        if flags.kb_id is not None:
            _move(connection, doc_id, flags.kb_id)
        if flags.enabled is not None:
            connection.execute("UPDATE doc SET enabled = ? WHERE id = ?", (int(flags.enabled), doc_id))
            ids, live = _rows(connection, doc_id)
            connection.executemany(
                "UPDATE chunk SET enabled = ? WHERE id = ?",
                [(int(flags.enabled and own), key) for key, own in zip(ids.tolist(), live, strict=True)],
            )


def refile(connection: Connection, tenant_id: int, filings: Sequence[Filing], words: Mapping[int, list[str]]) -> list[int]:
    """Ids of the documents that need `put`; `words` are the tokens of the heads, by passage."""
    named = json.dumps([filing.id for filing in filings])
    sql = (
        "SELECT d.id, d.rev, coalesce(m.home, d.kb) FROM doc d LEFT JOIN moved m ON m.doc = d.id"
        " WHERE d.id IN (SELECT value FROM json_each(?)) AND +d.tenant = ?"
    )
    rows = connection.execute(sql, (named, tenant_id)).fetchall()
    due, left = to_refile(filings, {row[0]: row[1] for row in rows})
    homes = {row[0]: row[2] for row in rows}  # a moved document's words keep the token of the base they were written for
    connection.executemany("UPDATE doc SET rev = ?, folder = ? WHERE id = ?", [(f.rev, f.folder_id, f.id) for f in due])
    connection.executemany("DELETE FROM doctag WHERE doc = ?", [(f.id,) for f in due])
    connection.executemany("INSERT INTO doctag (tag, doc) VALUES (?, ?)", [(tag, f.id) for f in due for tag in sorted({*f.tag_ids})])
    for filing in due:
        if filing.heads:
            _rewrite_heads(connection, filing, kb_token(tenant_id, homes[filing.id]), words)
    return left


def tokens_of(filings: Sequence[Filing]) -> dict[int, list[str]]:
    """{passage: its tokens}, so that the transaction only writes."""
    return {head.id: list(document_tokens(head.text)) for filing in filings for head in filing.heads}


def _rewrite_heads(connection: Connection, filing: Filing, token: str, words: Mapping[int, list[str]]) -> None:
    """Give passages other words, in the word index and in the bytes beside it."""
    sql = f"SELECT doc.ids, words.body, {COLUMNS} FROM doc JOIN words ON words.doc = doc.id WHERE doc.id = ?"  # noqa: S608
    ids, packed_bodies, *columns = connection.execute(sql, (filing.id,)).fetchone()
    keys = np.frombuffer(ids, dtype=np.int64).tolist()
    bodies = zlib.decompress(packed_bodies).decode("utf-8").split("\n")
    for head in filing.heads:
        if head.id not in keys:
            continue
        at, body = keys.index(head.id), " ".join(words[head.id])
        connection.execute("INSERT INTO fts (fts, rowid, kb, body) VALUES ('delete', ?, ?, ?)", (head.id, token, bodies[at]))
        connection.execute("INSERT INTO fts (rowid, kb, body) VALUES (?, ?, ?)", (head.id, token, body))
        bodies[at] = body
        columns = list(with_passage(tuple(columns), at, words[head.id]))
    packed_bodies = zlib.compress("\n".join(bodies).encode("utf-8"), PACKED_LEVEL)
    names = ", ".join(f"{name} = ?" for name in (*COLUMNS.split(", "), "body"))
    connection.execute(f"UPDATE words SET {names} WHERE doc = ?", (*columns, packed_bodies, filing.id))  # noqa: S608


def _move(connection: Connection, doc_id: int, kb_id: int) -> None:
    """Put a document into another base. Its words keep the token of the base they were written for (a word index without content
    cannot change one column), so the move is remembered and searches of the new base look under the old token too."""
    home = connection.execute(
        "SELECT coalesce((SELECT home FROM moved WHERE doc = ?1), (SELECT kb FROM doc WHERE id = ?1))", (doc_id,)
    ).fetchone()[0]
    connection.execute("UPDATE doc SET kb = ? WHERE id = ?", (kb_id, doc_id))
    connection.execute("UPDATE chunk SET kb = ? WHERE doc = ?", (kb_id, doc_id))
    connection.execute("DELETE FROM moved WHERE doc = ?", (doc_id,))
    if home != kb_id:
        connection.execute("INSERT INTO moved (doc, kb, home) VALUES (?,?,?)", (doc_id, kb_id, home))


def _rows(connection: Connection, doc_id: int) -> tuple[np.ndarray, bytes]:
    ids, live = connection.execute("SELECT ids, live FROM doc WHERE id = ?", (doc_id,)).fetchone()
    return np.frombuffer(ids, dtype=np.int64), live


def set_chunk_enabled(connection: Connection, tenant_id: int, chunk_ids: Sequence[int], enabled: bool) -> None:
    wanted = set(chunk_ids)
    sql = "SELECT DISTINCT doc FROM chunk WHERE id IN (SELECT value FROM json_each(?)) AND tenant = ?"
    for (doc_id,) in connection.execute(sql, (json.dumps(sorted(wanted)), tenant_id)).fetchall():
        ids, live = _rows(connection, doc_id)
        changed = bytes(int(enabled) if key in wanted else own for key, own in zip(ids.tolist(), live, strict=True))
        connection.execute("UPDATE doc SET live = ? WHERE id = ?", (changed, doc_id))
        connection.executemany(
            "UPDATE chunk SET enabled = (SELECT enabled FROM doc WHERE id = ?) AND ? WHERE id = ?",
            [(doc_id, int(enabled), key) for key in ids.tolist() if key in wanted],
        )


def set_vectors(connection: Connection, tenant_id: int, doc_id: int, rev: int, vector_space: str, vectors: Mapping[int, Vector]) -> bool:
    """Add `vectors` to those the document has; vectors of another space it had are dropped."""
    sql = "SELECT space, ids, scale, emb FROM doc WHERE id = ? AND tenant = ? AND rev = ?"
    row = connection.execute(sql, (doc_id, tenant_id, rev)).fetchone()
    if row is None:
        return False
    if not vectors:
        return True
    dimension = len(next(iter(vectors.values())))
    space = _space_id(connection, vector_space, dimension)
    ids = np.frombuffer(row[1], dtype=np.int64).tolist()
    scales, values, count = merged([vectors.get(key) for key in ids], dimension, row[2:] if row[0] == space else None)
    connection.execute(
        "UPDATE doc SET space = ?, vectors = ?, scale = ?, emb = ? WHERE id = ?",
        (space, count, scales, values, doc_id),
    )
    return True
