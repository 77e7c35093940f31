"""Reading documents, folders and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from django.db.models import Count, Q
from django.db.models.functions import Left
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.events import publish
from apps.common.models import Activity
from apps.common.policy import authorize
from apps.common.text import display_name
from apps.knowledge.events import PairImportAsked
from apps.knowledge.models import Document, KnowledgeBase, MoveRun, ParseStatus
from apps.knowledge.selectors.ids import as_uuid, clean_ids

BATCH_MAX = 200
PROGRESS_KEPT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class DocumentFilters:
    """What a list of documents is narrowed by (contract knowledge 4.7). `folder_path` None: every folder; "": the root."""

    tag_ids: Sequence[str] = ()
    keyword: str = ""
    file_type: str = ""
    parse_status: str = ""
    source: str = ""
    start_time: datetime | None = None
    end_time: datetime | None = None
    folder_path: str | None = None
    folder_recursive: bool = False
    sort_by: Literal["created_at", "updated_at", "file_name"] = "created_at"
    sort_order: Literal["desc", "asc"] = "desc"


@dataclass(slots=True)
class FolderNode:
    """A folder of the tree; `document_count` directly in it, `total_count` with everything below."""

    path: str
    name: str
    document_count: int = 0
    total_count: int = 0
    children: list[FolderNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FolderTree:
    root_document_count: int
    total_document_count: int
    folders: list[FolderNode]


def document_get(*, actor: Actor, document_id: Any, base: KnowledgeBase | None = None) -> Document:
    """The live document of this id (in `base`, when given), with its base and tags.

    Raises: NotFound, the same for a foreign id as for one that never was.
    """
    uid = as_uuid(document_id)
    rows = Document.objects.visible_to(actor).select_related("kb", "creator").prefetch_related("tags")
    if base is not None:
        rows = rows.filter(kb=base)
    found = rows.filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("Document not found."))
    return found  # type: ignore[no-any-return]


def pair_import_result(document: Document) -> dict[str, Any] | None:
    """What the last import of question pairs came to, for the document that stands for them; None for every other."""
    if document.type != Document.Type.FAQ:
        return None
    question = PairImportAsked(document.space_id, document.kb_id)
    publish(question)
    return question.found


BATCHES_LOOKED_AT = 200


def document_deleted_at(*, actor: Actor, document_id: Any) -> datetime | None:
    """When a document of this space was deleted, by what the activity log says; None for one that is there, foreign, or never was.

    Deletions in batches are looked for among the latest only.
    """
    authorize(actor, "document.read")
    uid = as_uuid(document_id)
    if uid is None or Document.objects.visible_to(actor).filter(uid=uid).exists():
        return None
    rows = Activity.objects.visible_to(actor)
    one = rows.filter(action="knowledge.deleted", target_id=str(uid)).order_by("-pk").first()
    if one is not None:
        return one.created_at
    batches = rows.filter(action="knowledge.batch_deleted").order_by("-pk").values_list("created_at", "details")[:BATCHES_LOOKED_AT]
    return next((when for when, details in batches if str(uid) in details.get("document_ids", ())), None)


def documents_get(*, actor: Actor, base: KnowledgeBase, ids: Sequence[Any], field_name: str = "ids") -> list[Document]:
    """All of 1 to 200 documents of one base, in the order named.

    Raises: InvalidInput for none, too many, or any that is not a document of this base (then nothing may be done to the others).
    """
    names = _bounded(ids, field_name)
    uids = [as_uuid(name) for name in names]
    found = {
        row.uid: row
        for row in Document.objects.visible_to(actor)
        .filter(kb=base, uid__in=[uid for uid in uids if uid])
        .select_related("kb")
        .prefetch_related("tags")
    }
    missing = [name for name, uid in zip(names, uids, strict=True) if uid not in found]
    if missing:
        raise InvalidInput(
            _("Some of these documents are not in this knowledge base. Reload the list and choose again."),
            code="unknown_documents",
            field=field_name,
            ids=missing,
            api_code=1000,
        )
    return [found[uid] for uid in dict.fromkeys(uids) if uid]


def _bounded(ids: Sequence[Any], field_name: str) -> list[str]:
    names = clean_ids(ids)
    if not names:
        raise InvalidInput(_("Name at least one document."), field=field_name, api_code=1000)
    if len(names) > BATCH_MAX:
        raise InvalidInput(_("At most %(max)d documents at a time.") % {"max": BATCH_MAX}, field=field_name, max=BATCH_MAX, api_code=1000)
    return names


def documents_batch(*, actor: Actor, ids: Sequence[Any], base: KnowledgeBase | None = None) -> list[Document]:
    """Those of 1 to 200 documents the actor may see; the others are left out in silence (contract knowledge 4.8)."""
    authorize(actor, "document.read")
    uids = [uid for name in _bounded(ids, "ids") if (uid := as_uuid(name))]
    rows = Document.objects.visible_to(actor).select_related("kb").filter(uid__in=uids)
    if base is not None:
        rows = rows.filter(kb=base)
    return list(rows.order_by("pk"))


def document_list(*, actor: Actor, base: KnowledgeBase, filters: DocumentFilters = DocumentFilters()) -> Any:
    """Documents of a base as a queryset ready to render, totally ordered."""
    authorize(actor, "document.read", base)
    # Through the base, which every row then shares instead of reading it again beside itself.
    shared: Any = base.documents
    rows = shared.visible_to(actor).listed().select_related("creator").prefetch_related("tags")
    if filters.tag_ids:
        uids = [uid for tag_id in filters.tag_ids if (uid := as_uuid(tag_id))]
        rows = rows.filter(pk__in=Document.objects.visible_to(actor).filter(kb=base, tags__uid__in=uids).values("pk"))
    if filters.keyword:
        rows = rows.filter(Q(file_name__icontains=filters.keyword) | Q(title__icontains=filters.keyword))
    if filters.file_type:
        wanted = filters.file_type.lower().lstrip(".")
        rows = rows.filter(type=wanted) if wanted in ("manual", "url") else rows.filter(file_type=wanted)
    if filters.parse_status:
        rows = rows.filter(parse_status=filters.parse_status)
    if filters.source:
        rows = rows.filter(type=filters.source) if filters.source in ("manual", "url") else rows.filter(channel=filters.source)
    if filters.start_time:
        rows = rows.filter(updated_at__gte=filters.start_time)
    if filters.end_time:
        rows = rows.filter(updated_at__lte=filters.end_time)
    rows = rows.filter(in_folder(filters.folder_path, recursive=filters.folder_recursive))
    sign = "-" if filters.sort_order == "desc" else ""
    return rows.order_by(f"{sign}{filters.sort_by}", f"{sign}pk")


def in_folder(path: str | None, *, recursive: bool) -> Q:
    """Documents in a folder: whole segments only, so that `a` never takes `ab` along."""
    if path is None or (path == "" and recursive):
        return Q()
    here = Q(folder_path=path)
    if not recursive:
        return here
    # Not `startswith`: LIKE ignores case on SQLite, and a range depends on the collation on PostgreSQL.
    return here | Q(Exact(Left("folder_path", len(path) + 1), f"{path}/"))


def document_search(
    *, actor: Actor, keyword: str = "", recent: bool = False, file_types: Sequence[str] = (), offset: int = 0, limit: int = 20
) -> tuple[list[Document], int]:
    """(documents of the space whose name or title contains the keyword, how many there are in all), latest change first."""
    authorize(actor, "document.read")
    rows = Document.objects.visible_to(actor).listed().select_related("kb").prefetch_related("tags")
    if keyword:
        rows = rows.filter(Q(file_name__icontains=keyword) | Q(title__icontains=keyword))
    elif not recent:
        raise InvalidInput(_("Write what to look for."), field="keyword", api_code=1000)
    if file_types:
        rows = rows.filter(file_type__in=[kind.lower().lstrip(".") for kind in file_types])
    return list(rows.order_by("-updated_at", "-pk")[offset : offset + limit]), rows.count()


def folder_tree(*, actor: Actor, base: KnowledgeBase) -> FolderTree:
    """The folders of a base, nested, siblings by lower-cased name (contract knowledge 5.2). One query."""
    authorize(actor, "folder.read", base)
    rows = Document.objects.visible_to(actor).filter(kb=base).exclude(parse_status=ParseStatus.DELETING)
    counts = dict(rows.order_by().values_list("folder_path").annotate(count=Count("pk")))
    nodes: dict[str, FolderNode] = {}
    roots: list[FolderNode] = []
    for path, count in counts.items():
        above: FolderNode | None = None
        parts = path.split("/") if path else []
        for depth in range(1, len(parts) + 1):
            here = "/".join(parts[:depth])
            if here not in nodes:
                nodes[here] = FolderNode(here, parts[depth - 1])
                (above.children if above else roots).append(nodes[here])
            above = nodes[here]
            above.total_count += count
        if above is not None:
            above.document_count = count
    for node in nodes.values():
        node.children.sort(key=lambda child: (child.name.lower(), child.name))
    roots.sort(key=lambda node: (node.name.lower(), node.name))
    return FolderTree(counts.get("", 0), sum(counts.values()), roots)


def folder_count(*, actor: Actor, base: KnowledgeBase, path: str) -> int:
    """How many documents lie in a folder and below it; `path` is in normal form and not empty."""
    authorize(actor, "folder.read", base)
    rows = Document.objects.visible_to(actor).filter(in_folder(path, recursive=True), kb=base)
    return int(rows.exclude(parse_status=ParseStatus.DELETING).count())


def folder_paths(*, actor: Actor, base: KnowledgeBase) -> list[str]:
    """Every folder that holds documents, for pickers."""
    authorize(actor, "folder.read", base)
    rows = Document.objects.visible_to(actor).filter(kb=base).exclude(folder_path="")
    return list(rows.order_by("folder_path").values_list("folder_path", flat=True).distinct())


def move_get(*, actor: Actor, task_id: str) -> MoveRun:
    """The move a task id names. Raises: InvalidInput when it is no such id; NotFound when it is unknown, foreign, or older than a day."""
    authorize(actor, "document.read")
    parts = task_id.split("_")
    if len(parts) < 6 or parts[:2] != ["kg", "move"] or not parts[2].isdigit():
        raise InvalidInput(_("This is not the id of a task."), field="task_id", api_code=1000)
    found = MoveRun.objects.visible_to(actor).filter(task_id=task_id, created_at__gt=timezone.now() - PROGRESS_KEPT).first()
    hidden = found is not None and actor.kb_uids is not None and not {found.source_uid, found.target_uid} <= actor.kb_uids
    if found is None or hidden:
        raise NotFound(_("Task not found."))
    return found  # type: ignore[no-any-return]


def document_same_named(*, actor: Actor, base: KnowledgeBase, paths: Sequence[str], folder: str = "") -> dict[str, Document]:
    """{path: the newest file of that name in its folder} for paths of files that are about to come into a folder of a base.

    A path that names no folder of its own is meant to come into `folder`; one that cannot be a path names nothing.
    """
    from apps.knowledge.rules.documents import clean_folder  # the rules read ids by these selectors

    authorize(actor, "document.read", base)
    places: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        inside, _slash, name = path.replace("\\", "/").rpartition("/")
        try:
            place = clean_folder("/".join(filter(None, [folder, inside])))
        except InvalidInput:
            continue
        places.setdefault((place, display_name(name)), []).append(path)
    found: dict[str, Document] = {}
    names = sorted({name for _place, name in places})
    for start in range(0, len(names), 500):
        rows = Document.objects.visible_to(actor).filter(kb=base, type=Document.Type.FILE, file_name__in=names[start : start + 500])
        for row in rows.order_by("pk"):
            found.update(dict.fromkeys(places.get((row.folder_path, row.file_name), ()), row))
    return found


def document_of_bytes(*, actor: Actor, base: KnowledgeBase, md5: str) -> Document | None:
    """The live uploaded document of a base that has exactly these bytes and could be read, if any."""
    authorize(actor, "document.read", base)
    rows = Document.objects.filter(kb=base, type=Document.Type.FILE, file_hash=md5, deleted_at__isnull=True)
    alive = rows.exclude(parse_status__in=(ParseStatus.FAILED, ParseStatus.DELETING))
    return alive.select_related("kb").order_by("pk").first()  # type: ignore[no-any-return]
