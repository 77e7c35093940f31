"""The folder tree beside a list: roots, the way to the open folder, and the rest a level at a time as it is opened."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import FolderNode, FolderTree
from apps.portal.document_query import ListQuery

SHOWN = 200  # folders of one level at a time


def tree_nodes(base: KnowledgeBase, query: ListQuery, address: str, tree: FolderTree) -> list[dict[str, Any]]:
    """Nodes of `components/tree.html`, as many as are open."""
    every = {
        "label": _("All documents"),
        "href": query.href(address, folder=None),
        "count": f"{tree.total_document_count:,}",
        "current": query.folder is None,
        "icon": "layers",
    }
    if not tree.folders:
        return [every]
    loose = {
        "label": _("Not in a folder"),
        "href": query.href(address, folder=""),
        "count": f"{tree.root_document_count:,}",
        "current": query.folder == "",
        "icon": "inbox",
        "attrs": {"data-drop-folder": "", "data-folder-name": _("Not in a folder")},
    }
    return [every, *_level(base, query, address, tree.folders, "", 0), *([loose] if tree.root_document_count else [])]


def level_nodes(base: KnowledgeBase, query: ListQuery, address: str, tree: FolderTree, path: str, start: int) -> list[dict[str, Any]]:
    """One level below `path`, from the `start`-th folder on; empty when the folder is gone."""
    return _level(base, query, address, children_of(tree, path), path, start)


def children_of(tree: FolderTree, path: str) -> list[FolderNode]:
    below = tree.folders
    for part in path.split("/") if path else []:
        below = next((folder.children for folder in below if folder.name == part), [])
    return below


def _level(base: KnowledgeBase, query: ListQuery, address: str, folders: list[FolderNode], path: str, start: int) -> list[dict[str, Any]]:
    """The open branch is drawn whole however far down the level it stands."""
    open_path = query.folder or ""
    shown = folders[start : start + SHOWN]
    if start == 0:
        shown += [folder for folder in folders[SHOWN:] if _leads_to(folder, open_path)]
    nodes = [_node(base, query, address, folder, open_path) for folder in shown]
    rest = len(folders) - start - SHOWN
    if rest > 0:
        more = ngettext("%(count)s more folder", "%(count)s more folders", rest) % {"count": f"{rest:,}"}
        load = _load(base, query, path, start + SHOWN)
        nodes.append({"label": more, "href": query.href(address, folder=path or None), "icon": "more", "load": load})
    return nodes


def _node(base: KnowledgeBase, query: ListQuery, address: str, folder: FolderNode, open_path: str) -> dict[str, Any]:
    is_open = _leads_to(folder, open_path) and bool(folder.children)
    return {
        "label": folder.name,
        "href": query.href(address, folder=folder.path),
        "count": f"{folder.total_count:,}",
        "current": folder.path == query.folder,
        "open": is_open,
        "attrs": {"data-drop-folder": folder.path, "data-folder-name": folder.name},
        "children": _level(base, query, address, folder.children, folder.path, 0) if is_open else [],
        "load": _load(base, query, folder.path, 0) if folder.children and not is_open else "",
    }


def _leads_to(folder: FolderNode, open_path: str) -> bool:
    return open_path == folder.path or open_path.startswith(f"{folder.path}/")


def _load(base: KnowledgeBase, query: ListQuery, path: str, start: int) -> str:
    pairs = [(name, value) for name, value in query.pairs() if name not in ("folder", "page")]
    return f"{reverse('folder-level', args=[base.space_id, base.uid])}?{urlencode([('path', path), ('start', start), *pairs])}"
