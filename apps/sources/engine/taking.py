"""Taking over one item: a new document, a new version of one, another name, or nothing at all."""

from __future__ import annotations

import dataclasses
import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.files import File

from apps.common.actor import Actor
from apps.common.errors import Conflict, DomainError, InvalidInput, TransientError
from apps.common.text import clean_line, display_name, folder_path
from apps.knowledge.models import Chunk, Document, KnowledgeBase, Tag
from apps.knowledge.selectors import document_of_bytes
from apps.knowledge.services import (
    Arrival,
    document_follow,
    document_upload,
    document_version_add,
    documents_delete,
    documents_restore,
    tag_create,
)
from apps.sources.models import ConflictStrategy, DataSource, SourceItem, item_key
from apps.sources.plugins.protocol import Content, Item

#: Refusals that another try would only repeat, until the item changes at the source.
FINAL = frozenset({"empty", "blank", "too_large", "unsupported_type", "illegal_name", "illegal_title", "invalid_input", "unreadable"})
LONGEST = {"title": 512, "file_name": 255, "url": 2048, "resource_id": 512, "fingerprint": 256}


class LocalFile(File):  # type: ignore[type-arg]
    """A file that is on disk already: nobody needs to copy it to look at it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.open("rb"), name=path.name)
        self._path = path

    def temporary_file_path(self) -> str:
        return str(self._path)


@dataclasses.dataclass(frozen=True, slots=True)
class Named:
    """An item's names in the form they are stored in."""

    title: str
    folder: str
    url: str
    fingerprint: str
    resource_id: str

    @classmethod
    def of(cls, item: Item) -> Named:
        return cls(
            title=clean_line(item.title)[: LONGEST["title"]],
            folder=folder_path(item.folder),
            url=clean_line(item.url)[: LONGEST["url"]],
            fingerprint=fitting(item.fingerprint),
            resource_id=item.resource_id[: LONGEST["resource_id"]],
        )


def fitting(fingerprint: str) -> str:
    """A fingerprint of any length as one that can be stored."""
    if len(fingerprint) <= LONGEST["fingerprint"]:
        return fingerprint
    return "sha256:" + hashlib.sha256(fingerprint.encode("utf-8", "surrogatepass")).hexdigest()


class Taking:
    """Writes documents for one source. Each method leaves document and item in step, also when it is repeated after a crash between."""

    def __init__(self, source: DataSource, actor: Actor, run_pk: int) -> None:
        self.source, self.actor, self.run_pk = source, actor, run_pk
        self.base: KnowledgeBase = source.kb
        self._tag: list[str] | None = None

    # -- what became of the document meanwhile

    def own(self, known: SourceItem) -> Document | None:
        """The document of an item, if it is there and still in this base."""
        document = known.document
        if document is None or document.deleted_at is not None or document.kb_id != self.base.pk:
            return None
        return document

    def changed_here(self, document: Document, known: SourceItem) -> bool:
        """Whether somebody gave it other content: another file, or an edited or switched-off passage."""
        if document.content_sha256 != known.content_sha256:
            return True
        edited = Chunk.objects.filter(document=document)
        return bool(edited.filter(content_revision__gt=0).exists() or edited.filter(is_enabled=False).exists())

    def back(self, known: SourceItem) -> Document | None:
        """The document of an item brought back from the trash as it was; None when it is there no more."""
        document = known.document
        if document is None or document.deleted_at is None or document.purge_at is None or document.kb_id != self.base.pk:
            return None
        if not documents_restore(actor=self.actor, base=self.base, documents=[document]).count:
            return None
        return Document.objects.select_related("kb").filter(pk=document.pk, deleted_at__isnull=True).first()  # type: ignore[no-any-return]

    # -- writing

    def create(self, item: Item, content: Content, digest: tuple[str, str]) -> tuple[Document, bool]:
        """(the document, whether it is this item's own): another document of the base may have the very bytes already."""
        found = document_of_bytes(actor=self.actor, base=self.base, md5=digest[1])
        if found is not None:
            return found, self._is_mine(found, item)
        stored = self._upload(item, content)
        return stored.document, not stored.duplicate or self._is_mine(stored.document, item)

    def _upload(self, item: Item, content: Content) -> Any:
        named = Named.of(item)
        arrival = Arrival(
            channel=self.source.type,
            tag_ids=self._tags(),
            metadata=self._metadata(item, content),
            folder_path=named.folder,
            title=named.title or clean_line(content.title)[: LONGEST["title"]],
            source=named.url or clean_line(content.url)[: LONGEST["url"]],
        )
        with LocalFile(content.path) as upload:
            try:
                return document_upload(actor=self.actor, base=self.base, upload=upload, file_name=file_name_of(content), arrival=arrival)
            except InvalidInput as error:
                if error.code != "illegal_title":
                    raise
                plain = dataclasses.replace(arrival, title="")
                return document_upload(actor=self.actor, base=self.base, upload=upload, file_name=file_name_of(content), arrival=plain)

    def renew(self, document: Document, content: Content) -> Document:
        """The document with the new content as its next version; another one, when that has these bytes already."""
        with LocalFile(content.path) as upload:
            stored = document_version_add(actor=self.actor, document=document, upload=upload, file_name=file_name_of(content))
        return stored.document

    def follow(self, document: Document, known: SourceItem, item: Item, file_name: str = "") -> bool:
        """Give the document the name and place it has at the source now; whether that changed anything.

        With `skip`, what was renamed or moved here stays as it is here.
        """
        named = Named.of(item)
        theirs = {"title": named.title, "folder_path": named.folder, "source": named.url, "file_name": file_name}
        before = {"title": known.title, "folder_path": known.folder, "source": known.url, "file_name": known.file_name}
        values = {name: value for name, value in theirs.items() if value != before[name] and (value or name == "folder_path")}
        if self.source.conflict_strategy == ConflictStrategy.SKIP:
            values = {name: value for name, value in values.items() if getattr(document, name) == before[name] or not before[name]}
        if not values:
            return False
        try:
            document_follow(actor=self.actor, document=document, values=values)
        except InvalidInput as error:
            if error.code != "illegal_title":
                raise
            values.pop("title")
            document_follow(actor=self.actor, document=document, values=values)
        return True

    def delete(self, documents: list[Document]) -> None:
        documents_delete(actor=self.actor, base=self.base, documents=documents)

    def put(self, known: SourceItem | None, item: Item, **values: Any) -> SourceItem:
        """The row of an item with what is known now."""
        named = Named.of(item)
        row = known or SourceItem(
            space_id=self.source.space_id, source=self.source, key=item_key(item.external_id), external_id=item.external_id
        )
        row.title, row.folder, row.url, row.resource_id = named.title or row.title, named.folder, named.url or row.url, named.resource_id
        row.reason, row.retry, row.vanished_at, row.run_ref = "", None, None, self.run_pk
        for name, value in values.items():
            setattr(row, name, value)
        row.save()
        return row

    def _is_mine(self, document: Document, item: Item) -> bool:
        """Made for this very item by a run that ended between writing the document and the item."""
        told = document.metadata or {}
        if told.get("datasource_id") != str(self.source.uid) or told.get("external_id") != item.external_id:
            return False
        return not SourceItem.objects.filter(document=document).exclude(source=self.source, key=item_key(item.external_id)).exists()

    def _metadata(self, item: Item, content: Content) -> dict[str, str]:
        told = {str(name)[:64]: str(value)[:1000] for name, value in {**item.metadata, **content.metadata}.items() if value}
        return told | {
            "external_id": item.external_id,
            "source_resource_id": item.resource_id,
            "datasource_id": str(self.source.uid),
        }

    def _tags(self) -> list[str]:
        """The tag that is named after the source; documents come without one where it cannot be made."""
        if self._tag is None:
            name = self.source.name[:128]
            try:
                tag = Tag.objects.filter(kb=self.base, name=name).first() or tag_create(actor=self.actor, base=self.base, name=name)
                self._tag = [str(tag.uid)]
            except (InvalidInput, Conflict):
                self._tag = []
        elif self._tag and not Tag.objects.filter(kb=self.base, uid=self._tag[0]).exists():
            self._tag = None  # somebody deleted it meanwhile
            return self._tags()
        return self._tag


def file_name_of(content: Content) -> str:
    return display_name(clean_line(content.file_name))


def digest_of(path: Path) -> tuple[str, str]:
    """(SHA-256, MD5) of a file."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        return sha256, hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def remembered(item: Item) -> dict[str, Any]:
    """An item as JSON, to be tried again later."""
    values = dataclasses.asdict(item)
    values["modified_at"] = item.modified_at.isoformat() if item.modified_at else None
    return values


def recalled(values: dict[str, Any]) -> Item:
    at = values.get("modified_at")
    return Item(**{**values, "modified_at": datetime.fromisoformat(at) if at else None})


def is_final(error: DomainError) -> bool:
    return error.code in FINAL and not isinstance(error, TransientError)
