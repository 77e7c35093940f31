"""News of knowledge bases and documents; published inside the transaction that makes it true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DocumentStored:
    """A document (or a new version, or a published manual text) waits to be parsed: its row says `pending`.

    `password` opens a locked file this once; listeners never store it in the clear.
    """

    space_id: int
    document_id: int
    trigger: str = "user"  # user | system | reparse
    options: dict[str, Any] = field(default_factory=dict)
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class DocumentParseCancelled:
    """Someone stopped the work on a document; its row says `cancelled`."""

    space_id: int
    document_id: int


@dataclass(frozen=True, slots=True)
class DocumentsDeleted:
    """Documents became tombstones: they must vanish from every index now, their rows and files soon."""

    space_id: int
    kb_id: int
    document_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DocumentsRestored:
    """Deleted documents are back with their passages: the index must hold them again. Those that must be read anew are `DocumentStored`."""

    space_id: int
    document_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DocumentsRefiled:
    """What filters see of documents changed, or their titles; passages did not. `index_rev` has risen by one.

    `only` names what changed (`folder`, `tags`) where nothing else did.
    """

    space_id: int
    document_ids: tuple[int, ...]
    only: str = ""


@dataclass(frozen=True, slots=True)
class ChunksChanged:
    """Text or enabled flag of passages changed; `index_rev` of the document has risen."""

    space_id: int
    document_id: int
    chunk_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SummaryWanted:
    """The summary of a document is to be written (again) in the background; its row says `pending`."""

    space_id: int
    document_id: int


@dataclass(frozen=True, slots=True)
class BaseDeleted:
    space_id: int
    kb_id: int


@dataclass(frozen=True, slots=True)
class CopyStarted:
    """A base is going to be filled with what another one holds: it may take over how that one is served."""

    space_id: int
    source_kb_id: int
    target_kb_id: int


@dataclass(frozen=True, slots=True)
class DocumentsCopied:
    """Documents came into a base with their passages: the index must hold them, missing vectors must be made.

    `pairs`: (primary key of the document copied, of its copy). Copies that wait to be parsed are announced as `DocumentStored`.
    """

    space_id: int
    source_kb_id: int
    target_kb_id: int
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class BaseFilled:
    """Every document of a copy is there: the index must hold exactly these before the copy is called complete."""

    space_id: int
    kb_id: int


@dataclass(frozen=True, slots=True)
class BaseChanged:
    """Settings of a base changed; `changed` names the fields."""

    space_id: int
    kb_id: int
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentsReparsed:
    """Documents of one space go through the pipeline again; `options`: what each one's pass is told, by primary key."""

    space_id: int
    document_ids: tuple[int, ...]
    options: dict[int, dict[str, Any]]


@dataclass(slots=True)
class PairImportAsked:
    """What the last import of question pairs into a base came to, in the contract's shape; a listener puts it into `found`."""

    space_id: int
    kb_id: int
    found: dict[str, Any] | None = None
