"""Where a question may look in a PostgreSQL index, as SQL and as a tsquery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.retrieval.plugins.postgres_terms import kb_lexeme, quoted, sample_lexeme, tenant_lexeme
from apps.retrieval.plugins.protocol import Query
from apps.retrieval.plugins.ranking import SQL_INT

PUSHDOWN_KBS = 32  # up to this many bases go into the word index as words; of more only their space, and the rows are filtered


@dataclass(frozen=True, slots=True)
class Scope:
    """SQL over a table with the columns tenant, kb, doc, folder, tags, enabled. `empty` means nowhere.

    `bases` are the rows whose words count, `wanted` those of them that may be found; both are without WHERE and take their own values.
    """

    empty: bool
    bases: str = ""
    base_values: tuple[Any, ...] = ()
    wanted: str = "enabled"
    wanted_values: tuple[Any, ...] = ()
    kbs: tuple[int, ...] = ()
    ties: tuple[str, ...] = ()

    @classmethod
    def of(cls, query: Query) -> Scope:
        kbs = sorted({kb for kb in query.kb_ids if kb in SQL_INT})
        restrictions = {"tags && ": query.tag_ids, "folder = ANY": query.folder_ids, "doc = ANY": query.doc_ids}
        if not kbs or query.tenant_id not in SQL_INT or any(ids is not None and not len(ids) for ids in restrictions.values()):
            return cls(empty=True)
        clauses, values = ["enabled"], []
        for clause, ids in restrictions.items():
            if ids is not None:
                clauses.append(f"{clause}(%s::bigint[])")
                values.append([i for i in ids if i in SQL_INT])
        few = len(kbs) <= PUSHDOWN_KBS
        ties = [kb_lexeme(query.tenant_id, kb) for kb in kbs] if few else [tenant_lexeme(query.tenant_id)]
        return cls(
            empty=False,
            bases="tenant = %s AND kb = ANY(%s::bigint[])",
            base_values=(query.tenant_id, kbs),
            wanted=" AND ".join(clauses),
            wanted_values=tuple(values),
            kbs=tuple(kbs),
            ties=tuple(ties),
        )

    @property
    def kb_query(self) -> str:
        """A tsquery ending in " & ": the bases, or the space when there are many."""
        return self.sample_query(0)

    def sample_query(self, level: int) -> str:
        """The same for one in 4 ** level of the passages."""
        return f"({' | '.join(quoted(sample_lexeme(tie, level)) for tie in self.ties)}) & "

    @property
    def where(self) -> str:
        return f"{self.bases} AND {self.wanted}"

    @property
    def values(self) -> tuple[Any, ...]:
        return (*self.base_values, *self.wanted_values)
