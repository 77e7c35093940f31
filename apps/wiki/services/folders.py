"""Making, renaming, moving and deleting folders of a wiki."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.wiki.enabling import check_wiki
from apps.wiki.foldering import MAX_DEPTH, below, clean_folder_name
from apps.wiki.models import WikiFolder, WikiPage


def folder_create(
    *, actor: Actor, base: KnowledgeBase, name: str, parent: WikiFolder | None = None, made_by_run: bool = False
) -> WikiFolder:
    """A new folder, in another one or at the root.

    Raises: InvalidInput at `name`; Conflict (`folder_taken`) when there is one of this name.
    """
    authorize(actor, "wiki.write", base)
    check_wiki(base)
    line = clean_folder_name(name)
    depth = parent.depth + 1 if parent else 1
    if depth > MAX_DEPTH:
        raise InvalidInput(_("Folders may be at most %(max)d deep.") % {"max": MAX_DEPTH}, field="parent_id", max=MAX_DEPTH)
    path = f"{parent.path}/{line}" if parent else line
    try:
        with transaction.atomic():
            folder = WikiFolder.objects.create(
                space_id=base.space_id, kb=base, parent=parent, name=line, path=path, depth=depth, made_by_run=made_by_run
            )
            if not made_by_run:
                _record(actor, "folder_create", folder)
    except IntegrityError:
        raise _taken(line) from None
    return folder  # type: ignore[no-any-return]


def folder_update(
    *, actor: Actor, folder: WikiFolder, name: str | None = None, parent: WikiFolder | None = None, move_parent: bool = False
) -> WikiFolder:
    """The folder under another name, or (with `move_parent`) in another folder or at the root; its pages and folders come along.

    Raises: InvalidInput at `name`, or at `parent_id` when it would end up inside itself; Conflict (`folder_taken`).
    """
    authorize(actor, "wiki.write", folder)
    with transaction.atomic():
        folder = WikiFolder.objects.select_related("kb", "parent").select_for_update(of=("self",)).get(pk=folder.pk)
        line = folder.name if name is None else clean_folder_name(name)
        above = parent if move_parent else folder.parent
        if above is not None and (above.pk == folder.pk or f"{above.path}/".startswith(f"{folder.path}/")):
            raise InvalidInput(_("A folder cannot be moved into itself."), field="parent_id", code="folder_inside_itself")
        before, path = folder.path, f"{above.path}/{line}" if above else line
        if path == before:
            return folder  # type: ignore[no-any-return]
        shift = (above.depth + 1 if above else 1) - folder.depth
        inside = below(folder.kb_id, before)
        deepest = max([folder.depth, *(row.depth for row in inside)])
        if deepest + shift > MAX_DEPTH:
            raise InvalidInput(_("Folders may be at most %(max)d deep.") % {"max": MAX_DEPTH}, field="parent_id", max=MAX_DEPTH)
        try:
            with transaction.atomic():
                folder.name, folder.parent, folder.path, folder.depth, folder.made_by_run = line, above, path, folder.depth + shift, False
                folder.save(update_fields=["name", "parent", "path", "depth", "made_by_run", "updated_at"])
        except IntegrityError:
            raise _taken(line) from None
        for row in inside:
            row.path, row.depth = path + row.path[len(before) :], row.depth + shift
        WikiFolder.objects.bulk_update(inside, ["path", "depth"], batch_size=500)
        _record(actor, "folder_update", folder, changes={"path": {"before": before, "after": path}})
    return folder  # type: ignore[no-any-return]


def folder_delete(*, actor: Actor, folder: WikiFolder) -> None:
    """Remove an empty folder. Raises: Conflict (`folder_not_empty`) while it holds pages or folders."""
    authorize(actor, "wiki.write", folder)
    with transaction.atomic():
        held = WikiPage.objects.live().filter(folder=folder).exists() or WikiFolder.objects.filter(parent=folder).exists()
        if held:
            raise Conflict(_("The folder is not empty. Move or delete what is in it first."), code="folder_not_empty")
        _record(actor, "folder_delete", folder)
        WikiFolder.objects.filter(pk=folder.pk).delete()


def _taken(name: str) -> Conflict:
    return Conflict(_("There is a folder named “%(name)s” already.") % {"name": name}, code="folder_taken", field="name")


def _record(actor: Actor, action: str, folder: WikiFolder, changes: dict[str, dict[str, str]] | None = None) -> None:
    audit(
        actor,
        "wiki.folder_changed",
        folder,
        target_type="wiki_folder",
        target_id=str(folder.uid),
        title=folder.path,
        action=action,
        changes=changes,
    )
