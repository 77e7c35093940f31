"""Folders of a base: they are where documents lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Concat, Substr
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.events import publish
from apps.common.policy import authorize
from apps.common.text import folder_path as normal_folder
from apps.knowledge.events import DocumentsRefiled
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.rules.documents import clean_folder
from apps.knowledge.selectors import folder_count, in_folder

SLICE = 500


@dataclass(frozen=True, slots=True)
class Refiled:
    moved_count: int
    folder_path: str


def documents_into_folder(*, actor: Actor, base: KnowledgeBase, documents: Sequence[Document], path: str) -> Refiled:
    """File documents of one base under a folder; no parse follows. `moved_count`: rows whose path was written."""
    authorize(actor, "folder.update", base)
    target = clean_folder(path)
    with transaction.atomic():
        moved = _refile(actor, Document.objects.filter(kb=base, pk__in=[d.pk for d in documents], deleted_at__isnull=True), Value(target))
        if moved:
            titles = [document.title for document in documents][:50]
            before = sorted({document.folder_path for document in documents})
            audit(
                actor,
                "knowledge.updated",
                base,
                target_type="knowledge_base",
                titles=titles,
                count=moved,
                changed_fields=["folder_path"],
                changes={"folder_path": {"before": before[0] if len(before) == 1 else before[:50], "after": target}},
            )
    return Refiled(moved, target)


def folder_rename(*, actor: Actor, base: KnowledgeBase, source: str, target: str) -> Refiled:
    """Move a folder with everything below it; an existing target takes it in (contract knowledge 5.2).

    Raises: InvalidInput when a path is empty, or the target lies inside the source.
    """
    authorize(actor, "folder.update", base)
    old, new = clean_folder(source, field="from"), clean_folder(target, field="to")
    if not old or not new:
        raise InvalidInput(_("Name both folders."), field="from" if not old else "to")
    if new == old:
        return Refiled(0, new)
    if new.startswith(f"{old}/"):
        raise InvalidInput(_("A folder cannot go into itself."), field="to")
    with transaction.atomic():
        rows = Document.objects.filter(in_folder(old, recursive=True), kb=base, deleted_at__isnull=True)
        for path in rows.order_by().values_list("folder_path", flat=True).distinct():
            if normal_folder(f"{new}{path[len(old) :]}") != f"{new}{path[len(old) :]}":
                raise InvalidInput(_("Folders below it would become too deep or too long."), field="to")
        moved = _refile(actor, rows, Concat(Value(new), Substr("folder_path", len(old) + 1)))
        if moved:
            audit(
                actor,
                "knowledge.updated",
                base,
                target_type="knowledge_base",
                count=moved,
                changed_fields=["folder_path"],
                changes={"folder_path": {"before": old, "after": new}},
            )
    return Refiled(moved, new)


def folder_drop(*, actor: Actor, base: KnowledgeBase, path: str) -> str:
    """The folder's path, when nothing lies in it or below: then there is nothing left to remove, for folders are where documents lie.

    Raises: InvalidInput(folder_in_use) with the `count` of documents when some do; nothing changes.
    """
    authorize(actor, "folder.update", base)
    folder = clean_folder(path, field="folder")
    if not folder:
        raise InvalidInput(_("Name the folder."), field="folder")
    if count := folder_count(actor=actor, base=base, path=folder):
        raise InvalidInput(
            ngettext_lazy(
                "%(count)d document lies in this folder. Move or delete it first.",
                "%(count)d documents lie in this folder. Move or delete them first.",
                count,
            )
            % {"count": count},
            code="folder_in_use",
            field="folder",
            count=count,
        )
    return folder


def _refile(actor: Actor, rows: Any, path: Any) -> int:
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    now = timezone.now()
    for start in range(0, len(ids), SLICE):
        Document.objects.filter(pk__in=ids[start : start + SLICE]).update(folder_path=path, index_rev=F("index_rev") + 1, updated_at=now)
    if ids:
        publish(DocumentsRefiled(space_id=actor.space, document_ids=tuple(ids), only="folder"))
    return len(ids)
