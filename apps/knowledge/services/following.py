"""Documents that follow something outside: its name and its place become theirs."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.events import publish
from apps.common.policy import authorize
from apps.knowledge.events import DocumentsRefiled
from apps.knowledge.models import Document
from apps.knowledge.rules.documents import clean_folder
from apps.knowledge.rules.locks import check_not_moving
from apps.knowledge.rules.texts import clean_title

FOLLOWED = frozenset({"title", "file_name", "folder_path", "source"})


def document_follow(*, actor: Actor, document: Document, values: dict[str, str]) -> Document:
    """The document under another title, file name, folder or address; its content is not read again. What it has already writes nothing.

    Raises: InvalidInput as for an upload; Conflict while it is being moved to another base.
    """
    authorize(actor, "document.update", document)
    if unknown := set(values) - FOLLOWED:
        raise ValueError(f"a document does not follow {sorted(unknown)}")
    with transaction.atomic():
        check_not_moving(document.kb, [document.pk])
        row = Document.objects.select_related("kb").select_for_update(of=("self",)).get(pk=document.pk, deleted_at__isnull=True)
        changes: dict[str, Any] = {}
        for name, value in values.items():
            wanted = clean_folder(value) if name == "folder_path" else clean_title(value) if name == "title" else value
            if wanted != getattr(row, name) and (wanted or name in ("folder_path", "source")):
                changes[name] = {"before": getattr(row, name), "after": wanted}
                setattr(row, name, wanted)
        if changes:
            row.index_rev += 1
            row.save(update_fields=[*changes, "index_rev", "updated_at"])
            audit(
                actor, "knowledge.updated", row, target_type="knowledge", title=row.title, changed_fields=sorted(changes), changes=changes
            )
            publish(DocumentsRefiled(space_id=row.space_id, document_ids=(row.pk,)))
    return row  # type: ignore[no-any-return]
