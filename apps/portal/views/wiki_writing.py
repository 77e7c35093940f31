"""Writing pages of the wiki, giving them other addresses and folders, deleting them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext_lazy

from apps.common.errors import Conflict, DomainError, InvalidInput
from apps.knowledge.models import KnowledgeBase
from apps.portal.forms.wiki import MAX_CONTENT, PageForm, status_options, type_options
from apps.portal.reader.diffing import word_diff
from apps.portal.trash import kept_text
from apps.portal.views.forms import put_error, sent_before
from apps.portal.views.wiki import WikiPageBase
from apps.portal.web import DialogView, go
from apps.portal.wiki.frame import WikiQuery, page_url, wiki_frame, wiki_url
from apps.wiki import selectors
from apps.wiki.models import WikiFolder, WikiPage
from apps.wiki.selectors import MANUAL, shown_content
from apps.wiki.services import PageDraft, page_change, page_create, page_rename, pages_delete, pages_move


class EditorPage(WikiPageBase):
    def editor(self, base: KnowledgeBase, form: PageForm, page: WikiPage | None = None, *, status: int = 200, **more: Any) -> HttpResponse:
        frame = wiki_frame(self.actor, base, page=page)
        title = _("Edit “%(title)s”") % {"title": page.title} if page else _("New page")
        context = {
            **frame,
            "crumbs": [frame["crumbs"][0], {"label": base.name, "href": wiki_url(base)}, {"label": title}],
            "page_title": title,
            "form": form,
            "wiki_page": page,
            "back": page_url(page) if page else wiki_url(base),
            "folders": [folder.path for folder in selectors.folders_by_path(actor=self.actor, base=base)],
            "types": type_options(),
            "statuses": status_options(),
            "max_content": MAX_CONTENT,
            "guard": f"wiki-{page.uid}" if page else f"wiki-new-{base.uid}",
            **more,
        }
        return self.page("portal/wiki_edit.html", context, status=status)


class WikiNewView(EditorPage):
    actions = {"GET": "wiki.write", "POST": "wiki.write"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        asked = {name: request.GET.get(name, "")[:512] for name in ("title", "slug")}
        folder = WikiQuery.read(request.GET).folder
        path = selectors.folder_get(actor=self.actor, base=base, folder_id=folder).path if folder else ""
        return self.editor(base, PageForm(initial={**asked, "folder": path, "page_type": MANUAL, "status": "published"}))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        form = PageForm(request.POST)
        if not form.is_valid():
            return self.editor(base, form, status=422)
        values = form.cleaned_data
        if not values["title"].strip():
            form.add_error("title", _("Give the page a title."))
            return self.editor(base, form, status=422)
        if sent_before(request):
            return go(request, wiki_url(base))
        try:
            draft = PageDraft(
                title=values["title"],
                content=values["content"],
                summary=values["summary"],
                page_type=form.kind,
                slug=values["slug"],
                aliases=form.names,
                folder=_folder_of(self.actor, base, values["folder"]),
                status=values["status"] or WikiPage.Status.PUBLISHED,
            )
            page = page_create(actor=self.actor, base=base, draft=draft, note=values["note"])
        except DomainError as error:
            put_error(form, error, {"folder_id": "folder"})
            return self.editor(base, form, status=422)
        return go(request, page_url(page, base.uid))


def _folder_of(actor: Any, base: KnowledgeBase, path: str) -> WikiFolder | None:
    """The folder of this path. Raises: InvalidInput when there is none."""
    path = path.strip().strip("/")
    if not path:
        return None
    found = next((folder for folder in selectors.folders_by_path(actor=actor, base=base) if folder.path == path), None)
    if found is None:
        raise InvalidInput(_("There is no such folder yet. Make it first, or leave this empty."), field="folder")
    return found


class WikiEditView(EditorPage):
    """Somebody else's version is never written over unseen: theirs is shown, and what was typed stays in the form."""

    actions = {"GET": "wiki.write", "POST": "wiki.write"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        page = self.wiki_page(base, wiki_page_id)
        return self.editor(base, PageForm(initial=_initial(page)), page)

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        page = self.wiki_page(base, wiki_page_id)
        form = PageForm(request.POST)
        if not form.is_valid():
            return self.editor(base, form, page, status=422)
        values = form.cleaned_data
        if not values["title"].strip():
            form.add_error("title", _("Give the page a title."))
            return self.editor(base, form, page, status=422)
        try:
            page_change(actor=self.actor, page=page, change=form.change(), expected_version=values["version"], note=values["note"])
        except Conflict as error:
            if error.code != "version_conflict":
                put_error(form, error)
                return self.editor(base, form, page, status=409)
            return self._conflict(base, form, wiki_page_id)
        except DomainError as error:
            put_error(form, error)
            return self.editor(base, form, page, status=422)
        return go(request, page_url(page))

    def _conflict(self, base: KnowledgeBase, form: PageForm, page_id: uuid.UUID) -> HttpResponse:
        page = self.wiki_page(base, page_id)
        theirs = shown_content(page)
        data = {**form.cleaned_data, "version": str(page.version)}  # saving once more puts this on top of theirs
        again = PageForm(data)
        again.is_valid()
        return self.editor(
            base,
            again,
            page,
            status=409,
            theirs={"page": page, "content": theirs, "who": page.editor.username if page.editor else ""},
            diff=word_diff(theirs, form.cleaned_data["content"].replace("\r\n", "\n")),
        )


def _initial(page: WikiPage) -> dict[str, Any]:
    return {
        "title": page.title,
        "slug": page.slug,
        "page_type": page.page_type or MANUAL,
        "status": page.status,
        "aliases": "\n".join(page.alias_names),
        "summary": page.summary,
        "content": shown_content(page),
        "version": page.version,
    }


class WikiDialog(DialogView):
    def base(self, kb_id: uuid.UUID) -> KnowledgeBase:
        return selectors.wiki_base_get(actor=self.actor, kb_id=kb_id)


class RenameForm(forms.Form):
    slug = forms.CharField(label=pgettext_lazy("of a wiki page", "Address"), required=False)


class WikiRenameView(WikiDialog):
    """Another address for a page; the old one goes on leading to it."""

    actions = {"GET": "wiki.write", "POST": "wiki.write"}
    template = "portal/_wiki_rename.html"

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        page = selectors.page_get(actor=self.actor, base=self.base(wiki_kb_id), page_id=wiki_page_id)
        return self._form(page, RenameForm(initial={"slug": page.slug}))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        page = selectors.page_get(actor=self.actor, base=self.base(wiki_kb_id), page_id=wiki_page_id)
        form = RenameForm(request.POST)
        if not form.is_valid():
            return self._form(page, form, status=422)
        try:
            page_rename(actor=self.actor, page=page, slug=form.cleaned_data["slug"])
        except DomainError as error:
            put_error(form, error)
            return self._form(page, form, status=422)
        return self.done(_("The page has another address; links to it go on working."), back=page_url(page))

    def _form(self, page: WikiPage, form: RenameForm, status: int = 200) -> HttpResponse:
        return self.show(_("Change the address"), {"wiki_page": page, "form": form}, status=status, back=page_url(page))


class WikiMoveView(WikiDialog):
    """`ids`: the pages; `folder`: where to, asked before anything moves."""

    actions = {"GET": "wiki.write", "POST": "wiki.write"}
    template = "portal/_wiki_move.html"

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        return self._ask(base, self._chosen(base, request.GET.getlist("ids")), request.GET.get("folder"))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        pages = self._chosen(base, request.POST.getlist("ids"))
        raw = request.POST.get("folder", "")
        folder = selectors.folder_get(actor=self.actor, base=base, folder_id=raw) if raw else None
        count = pages_move(actor=self.actor, base=base, pages=pages, folder=folder)
        text = ngettext("%(count)d page moved.", "%(count)d pages moved.", count) % {"count": count}
        return self.done(text, back=WikiQuery(folder=raw).href(wiki_url(base)))

    def _chosen(self, base: KnowledgeBase, ids: Sequence[str]) -> list[WikiPage]:
        pages = selectors.pages_get(actor=self.actor, base=base, ids=ids[:1000])
        if not pages:
            raise InvalidInput(_("Choose at least one page."), field="ids")
        return pages

    def _ask(self, base: KnowledgeBase, pages: list[WikiPage], target: str | None) -> HttpResponse:
        folders = selectors.folders_by_path(actor=self.actor, base=base)
        options = [{"value": "", "label": _("Not in a folder")}]
        options += [{"value": str(folder.uid), "label": folder.path.replace("/", " / ")} for folder in folders]
        now = str(pages[0].folder.uid) if pages[0].folder else ""
        chosen = target if target is not None else now
        context = {
            "base": base,
            "pages": pages[:5],
            "more_count": max(0, len(pages) - 5),
            "ids": [page.uid for page in pages],
            "options": options,
            "target": chosen,
            "target_name": next((option["label"] for option in options if option["value"] == chosen), "") if target is not None else "",
            "space_id": base.space_id,
        }
        title = ngettext("Move %(count)d page", "Move %(count)d pages", len(pages)) % {"count": len(pages)}
        return self.show(title, context, back=wiki_url(base))


class WikiDeleteView(WikiDialog):
    actions = {"GET": "wiki.write", "POST": "wiki.write"}
    template = "portal/_wiki_delete.html"

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        page = selectors.page_get(actor=self.actor, base=self.base(wiki_kb_id), page_id=wiki_page_id)
        backlinks = selectors.page_backlinks(actor=self.actor, page=page)
        context = {"wiki_page": page, "backlinks": backlinks[:5], "backlink_count": len(backlinks), "kept": kept_text()}
        return self.show(_("Delete “%(title)s”?") % {"title": page.title}, context, back=page_url(page))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_page_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        page = selectors.page_get(actor=self.actor, base=base, page_id=wiki_page_id)
        pages_delete(actor=self.actor, base=base, pages=[page])
        folder = str(page.folder.uid) if page.folder else None
        return go(request, WikiQuery(folder=folder).href(wiki_url(base)))
