"""The wiki tab of a base: its list, a page, what the page was before."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.errors import DomainError
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.services import base_visit
from apps.portal.web import PageView, done
from apps.portal.wiki.changes import fields_diff, line_diff
from apps.portal.wiki.frame import (
    SOURCE_WORDS,
    STATE_WORDS,
    TYPE_WORDS,
    WikiQuery,
    level_nodes,
    page_url,
    wiki_frame,
    wiki_url,
)
from apps.portal.wiki.reading import reading_context
from apps.wiki import selectors
from apps.wiki.models import WikiPage
from apps.wiki.services import page_revert

PAGE_SIZE = 50
VERSIONS = 100


class WikiPageBase(PageView):
    def base(self, kb_id: uuid.UUID) -> KnowledgeBase:
        return selectors.wiki_base_get(actor=self.actor, kb_id=kb_id)

    def wiki_page(self, base: KnowledgeBase, page_id: uuid.UUID) -> WikiPage:
        return selectors.page_get(actor=self.actor, base=base, page_id=page_id)


class WikiView(WikiPageBase):
    """Folders and types left, pages right; filters and page stand in the address."""

    actions = {"GET": "wiki.read"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        if not request.headers.get("HX-Request"):
            base_visit(actor=self.actor, base=base)
        query = WikiQuery.read(request.GET)
        frame = wiki_frame(self.actor, base, query)
        return self.page("portal/base_wiki.html", {**frame, **self._list(base, query)})

    def _list(self, base: KnowledgeBase, query: WikiQuery) -> dict[str, Any]:
        filters = selectors.PageFilters(
            types=() if query.type is None else (query.type or selectors.MANUAL,),
            state=query.state,
            folder_id=query.folder,
            sort_by="title",
            ascending=True,
        )
        rows = selectors.pages_filtered(actor=self.actor, base=base, filters=filters)
        if query.q:
            found = selectors.pages_search(actor=self.actor, base=base, words=query.q, limit=200)
            kept = set(rows.filter(pk__in=[page.pk for page in found]).values_list("pk", flat=True))
            found = [page for page in found if page.pk in kept]
            total = len(found)
        else:
            total = rows.count()
        start = (query.page - 1) * PAGE_SIZE
        shown = found[start : start + PAGE_SIZE] if query.q else list(rows.defer("content")[start : start + PAGE_SIZE])
        address, last = wiki_url(base), max(1, -(-total // PAGE_SIZE))
        return {
            "rows": [_row(base, page) for page in shown],
            "total": total,
            "count_text": ngettext("%(count)s page", "%(count)s pages", total) % {"count": f"{total:,}"},
            "previous": query.href(address, page=query.page - 1) if query.page > 1 else "",
            "next": query.href(address, page=query.page + 1) if query.page < last else "",
            "folder": selectors.folder_get(actor=self.actor, base=base, folder_id=query.folder) if query.folder else None,
            "here": query.href(address),
            "narrowed": bool(query.q or query.state),
        }


def _row(base: KnowledgeBase, page: WikiPage) -> dict[str, Any]:
    return {
        "page": page,
        "href": page_url(page, base.uid),
        "type_word": TYPE_WORDS[page.page_type],
        "kind": page.page_type or selectors.MANUAL,
        "state_word": "" if page.state == WikiPage.State.CURRENT else STATE_WORDS[WikiPage.State(page.state)],
        "where": page.folder.path if page.folder else "",
        "move_href": f"{reverse('wiki-move', args=[base.space_id, base.uid])}?ids={page.uid}",
        "aliases": page.alias_names,
    }


class WikiLevelView(WikiPageBase):
    """The folders in one, when its branch of the tree opens."""

    actions = {"GET": "wiki.read"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        parent = selectors.folder_get(actor=self.actor, base=base, folder_id=request.GET.get("folder", ""))
        return render(request, "components/tree_nodes.html", {"nodes": level_nodes(self.actor, base, parent)})


class WikiReadView(WikiPageBase):
    actions = {"GET": "wiki.read"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        page = self.wiki_page(base, wiki_page_id)
        frame = wiki_frame(self.actor, base, page=page)
        context = {**frame, **reading_context(self.actor, page, may_write=frame["may_write"]), "page_href": page_url(page)}
        return self.page("portal/wiki_page.html", context)


class WikiHistoryView(WikiPageBase):
    """Every version of a page, newest first."""

    actions = {"GET": "wiki.read"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        page = self.wiki_page(base, wiki_page_id)
        rows = selectors.revision_list(actor=self.actor, page=page).defer("content", "summary")
        versions = [_version(row.version, row.source, row.editor, row.note, row.edited_at) for row in rows[:VERSIONS]]
        now = _version(page.version, page.source, page.editor, page.edit_note, page.edited_at)
        context = {
            **wiki_frame(self.actor, base, page=page),
            "wiki_page": page,
            "page_href": page_url(page),
            "now": now,
            "versions": versions,
            "older": max(0, rows.count() - len(versions)),
        }
        return self.page("portal/wiki_history.html", context)


def _version(number: int, source: str, editor: Any, note: str, when: Any) -> dict[str, Any]:
    who = editor.username if editor is not None else ""
    return {"number": number, "source": SOURCE_WORDS[WikiPage.Source(source)], "who": who, "note": note, "when": when}


class WikiVersionView(WikiPageBase):
    """What turns an earlier version into the page of now; brings it back when asked to."""

    actions = {"GET": "wiki.read", "POST": "wiki.write"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID, version: int) -> HttpResponse:
        return self._show(self.base(wiki_kb_id), wiki_page_id, version)

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID, version: int) -> HttpResponse:
        base = self.base(wiki_kb_id)
        page = self.wiki_page(base, wiki_page_id)
        seen = request.POST.get("seen", "")
        expected = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else page.version
        note = _("Version %(number)d brought back") % {"number": version}
        try:
            page_revert(actor=self.actor, page=page, version=version, expected_version=expected, note=note)
        except DomainError as error:
            return self._show(base, wiki_page_id, version, str(error))
        return done(request, _("Version %(number)d is back, as a new version.") % {"number": version}, back=page_url(page))

    def _show(self, base: KnowledgeBase, page_id: uuid.UUID, version: int, error: str = "") -> HttpResponse:
        page = self.wiki_page(base, page_id)
        old = selectors.revision_get(actor=self.actor, page=page, version=version)
        names = {"title": _("Title"), "aliases": _("Other names"), "summary": _("Summary"), "type": _("Type"), "status": _("Status")}
        before, after = _fields(old, old.aliases), _fields(page, page.alias_names)
        context = {
            **wiki_frame(self.actor, base, page=page),
            "wiki_page": page,
            "page_href": page_url(page),
            "old": _version(old.version, old.source, old.editor, old.note, old.edited_at),
            "fields": fields_diff(before, after, names),
            "lines": line_diff(old.content, page.content),
            "error": error,
        }
        return self.page("portal/wiki_version.html", context, status=409 if error else 200)


def _fields(of: Any, aliases: list[str]) -> dict[str, str]:
    kind, status = str(TYPE_WORDS[of.page_type]), str(WikiPage.Status(of.status).label)
    return {"title": of.title, "aliases": "\n".join(aliases), "summary": of.summary, "type": kind, "status": status}
