"""Folders of the wiki, links that lead nowhere, pages nobody links to, proposals, issues."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.common.errors import DomainError, InvalidInput
from apps.knowledge.models import KnowledgeBase
from apps.portal.views.forms import put_error
from apps.portal.views.wiki import WikiPageBase
from apps.portal.views.wiki_writing import WikiDialog
from apps.portal.web import done, go
from apps.portal.wiki.changes import fields_diff, line_diff
from apps.portal.wiki.frame import TYPE_WORDS, WikiQuery, page_url, wiki_frame, wiki_url
from apps.wiki import selectors
from apps.wiki.models import WikiFolder, WikiProposal
from apps.wiki.services import (
    MAX_ARCHIVE,
    archive_read,
    folder_create,
    folder_delete,
    folder_update,
    issue_status_set,
    links_repair,
    proposal_accept,
    proposal_reject,
    wiki_import_start,
)

SHOWN = 200


class FolderForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), required=False)
    parent = forms.CharField(required=False, label=gettext_lazy("In the folder"))


class FolderDialog(WikiDialog):
    template = "portal/_wiki_folder.html"

    def form(self, base: KnowledgeBase, form: FolderForm, folder: WikiFolder | None = None, status: int = 200) -> HttpResponse:
        inside = f"{folder.path}/" if folder else ""
        others = [
            each
            for each in selectors.folders_by_path(actor=self.actor, base=base)
            if folder is None or not f"{each.path}/".startswith(inside)
        ]
        options = [{"value": "", "label": _("At the top")}]
        options += [{"value": str(each.uid), "label": each.path.replace("/", " / ")} for each in others]
        context = {"base": base, "form": form, "folder": folder, "options": options, "space_id": base.space_id}
        title = _("Rename or move the folder") if folder else _("New folder")
        return self.show(title, context, status=status, back=wiki_url(base))

    def parent(self, base: KnowledgeBase, form: FolderForm) -> WikiFolder | None:
        raw = form.cleaned_data["parent"]
        return selectors.folder_get(actor=self.actor, base=base, folder_id=raw, field="parent") if raw else None


class WikiFolderNewView(FolderDialog):
    actions = {"GET": "wiki.write", "POST": "wiki.write"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        return self.form(self.base(wiki_kb_id), FolderForm(initial={"parent": request.GET.get("folder", "")}))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base, form = self.base(wiki_kb_id), FolderForm(request.POST)
        if not form.is_valid():
            return self.form(base, form, status=422)
        try:
            folder = folder_create(actor=self.actor, base=base, name=form.cleaned_data["name"], parent=self.parent(base, form))
        except DomainError as error:
            put_error(form, error, {"parent_id": "parent"})
            return self.form(base, form, status=422)
        return go(request, WikiQuery(folder=str(folder.uid)).href(wiki_url(base)))


class WikiFolderEditView(FolderDialog):
    actions = {"GET": "wiki.write", "POST": "wiki.write"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_folder_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        folder = selectors.folder_get(actor=self.actor, base=base, folder_id=wiki_folder_id)
        parent = request.GET.get("into")
        now = str(folder.parent.uid) if folder.parent else ""
        return self.form(base, FolderForm(initial={"name": folder.name, "parent": now if parent is None else parent}), folder)

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_folder_id: uuid.UUID) -> HttpResponse:
        base, form = self.base(wiki_kb_id), FolderForm(request.POST)
        folder = selectors.folder_get(actor=self.actor, base=base, folder_id=wiki_folder_id)
        if not form.is_valid():
            return self.form(base, form, folder, status=422)
        try:
            parent = self.parent(base, form)
            folder_update(actor=self.actor, folder=folder, name=form.cleaned_data["name"], parent=parent, move_parent=True)
        except DomainError as error:
            put_error(form, error, {"parent_id": "parent"})
            return self.form(base, form, folder, status=422)
        return go(request, WikiQuery(folder=str(folder.uid)).href(wiki_url(base)))


class WikiFolderDeleteView(WikiDialog):
    """Refused while it holds pages or folders."""

    actions = {"GET": "wiki.write", "POST": "wiki.write"}
    template = "portal/_wiki_folder_delete.html"

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_folder_id: uuid.UUID) -> HttpResponse:
        return self._ask(self.base(wiki_kb_id), wiki_folder_id)

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_folder_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        folder = selectors.folder_get(actor=self.actor, base=base, folder_id=wiki_folder_id)
        try:
            folder_delete(actor=self.actor, folder=folder)
        except DomainError as error:
            return self._ask(base, wiki_folder_id, str(error), status=409)
        above = folder.parent
        return go(request, WikiQuery(folder=str(above.uid) if above else None).href(wiki_url(base)))

    def _ask(self, base: KnowledgeBase, folder_id: uuid.UUID, error: str = "", status: int = 200) -> HttpResponse:
        folder = selectors.folder_get(actor=self.actor, base=base, folder_id=folder_id)
        row = selectors.folder_row(actor=self.actor, folder=folder)
        context = {"base": base, "folder": folder, "row": row, "error": error, "space_id": base.space_id}
        title = _("Delete the folder “%(name)s”?") % {"name": folder.name}
        return self.show(title, context, status=status, back=wiki_url(base))


class WikiLinksView(WikiPageBase):
    """Addresses that lead nowhere, to be put right in every page that names them; pages nobody links to."""

    actions = {"GET": "wiki.read", "POST": "wiki.write"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        return self._show(self.base(wiki_kb_id))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        try:
            keys = request.POST.getlist("keys")[:1000]
            if not keys:
                raise InvalidInput(_("Choose at least one link."), field="keys")
            name = request.POST.get("target", "").strip()
            if request.POST.get("do") == "link" and not name:
                raise InvalidInput(_("Say which page they should lead to."), field="target")
            target = self._page_named(base, name) if request.POST.get("do") == "link" else None
            count = links_repair(actor=self.actor, base=base, keys=keys, target=target)
        except DomainError as error:
            return self._show(base, str(error))
        text = ngettext("%(count)d page put right.", "%(count)d pages put right.", count) % {"count": count}
        return done(request, text, back=request.path)

    def _page_named(self, base: KnowledgeBase, name: str) -> Any:
        """The page of this address, or the only one of this title. Raises: NotFound."""
        exact = selectors.page_list(actor=self.actor, base=base).filter(title=name)[:2]
        return exact[0] if len(exact) == 1 else selectors.page_at(actor=self.actor, base=base, slug=name)

    def _show(self, base: KnowledgeBase, error: str = "") -> HttpResponse:
        broken = selectors.broken_links(actor=self.actor, base=base)
        lonely = selectors.orphans(actor=self.actor, base=base).defer("content")
        titles = selectors.page_list(actor=self.actor, base=base).order_by("title").values_list("title", flat=True)[:2000]
        context = {
            **wiki_frame(self.actor, base),
            "broken": [(link, [(page, page_url(page, base.uid)) for page in link.pages[:6]]) for link in broken[:SHOWN]],
            "broken_more": max(0, len(broken) - SHOWN),
            "orphans": [(page, page_url(page, base.uid), TYPE_WORDS[page.page_type]) for page in lonely[:SHOWN]],
            "orphan_count": lonely.count(),
            "titles": list(titles),
            "error": error,
        }
        return self.page("portal/wiki_links.html", context, status=422 if error else 200)


class WikiImportView(WikiDialog):
    """Chooses an archive, starts the import and follows it."""

    actions = {"GET": "wiki.import", "POST": "wiki.import"}
    template = "portal/_wiki_import.html"

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        return self._show(self.base(wiki_kb_id))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        upload: Any = request.FILES.get("file")
        try:
            if upload is None:
                raise InvalidInput(_("Choose a file."), field="file")
            if upload.size > MAX_ARCHIVE:
                raise InvalidInput(_("The archive is larger than 100 MB."), field="file")
            wiki_import_start(actor=self.actor, base=base, items=archive_read(upload), file_name=upload.name)
        except DomainError as error:
            return self._show(base, str(error), status=422)
        return self._show(base)

    def _show(self, base: KnowledgeBase, error: str = "", status: int = 200) -> HttpResponse:
        state = selectors.import_state(actor=self.actor, base=base)
        context = {"base": base, "state": state, "is_live": state.state in ("queued", "running"), "error": error, "space_id": base.space_id}
        return self.show(_("Import pages"), context, status=status, back=wiki_url(base))


class WikiProposalsView(WikiPageBase):
    """Changes that runs and agents would make to pages people keep."""

    actions = {"GET": "wiki.read"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        rows = selectors.proposal_list(actor=self.actor, base=base)
        context = {**wiki_frame(self.actor, base), "proposals": list(rows[:SHOWN]), "total": rows.count()}
        return self.page("portal/wiki_proposals.html", context)


class WikiProposalView(WikiPageBase):
    """What would change, and the two answers to it."""

    actions = {"GET": "wiki.read", "POST": "wiki.write"}

    def get(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_proposal_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        return self._show(base, selectors.proposal_get(actor=self.actor, base=base, proposal_id=wiki_proposal_id))

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_proposal_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        proposal = selectors.proposal_get(actor=self.actor, base=base, proposal_id=wiki_proposal_id)
        seen = request.POST.get("seen", "")
        expected = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else None
        try:
            if request.POST.get("do") == "accept":
                page = proposal_accept(actor=self.actor, proposal=proposal, expected_version=expected)
                return redirect(page_url(page, base.uid) if page is not None else wiki_url(base))
            proposal_reject(actor=self.actor, proposal=proposal)
        except DomainError as error:
            return self._show(base, selectors.proposal_get(actor=self.actor, base=base, proposal_id=wiki_proposal_id), str(error))
        return done(request, _("The proposal was put aside."), back=_proposals_url(base))

    def _show(self, base: KnowledgeBase, proposal: WikiProposal, error: str = "") -> HttpResponse:
        page, draft = proposal.page, proposal.draft
        names = {"title": _("Title"), "aliases": _("Other names"), "summary": _("Summary"), "page_type": _("Type")}
        now = {"title": page.title, "aliases": "\n".join(page.alias_names), "summary": page.summary, "page_type": page.page_type}
        then = {**now, **{name: "\n".join(value) if name == "aliases" else value for name, value in draft.items() if name in now}}
        text = selectors.shown_content(page)
        context = {
            **wiki_frame(self.actor, base, page=page),
            "proposal": proposal,
            "wiki_page": page,
            "page_href": page_url(page, base.uid),
            "changed_since": page.version != proposal.base_version,
            "fields": fields_diff(now, then, names),
            "lines": line_diff(text, draft.get("content", text)),
            "error": error,
        }
        return self.page("portal/wiki_proposal.html", context, status=409 if error else 200)


def _proposals_url(base: KnowledgeBase) -> str:
    return reverse("wiki-proposals-page", args=[base.space_id, base.uid])


class WikiIssueView(WikiPageBase):
    """Settle an issue of a page: `status` resolved or ignored."""

    actions = {"POST": "wiki.write"}

    def post(self, request: HttpRequest, space_id: int, wiki_kb_id: uuid.UUID, wiki_issue_id: uuid.UUID) -> HttpResponse:
        base = self.base(wiki_kb_id)
        issue = selectors.issue_get(actor=self.actor, base=base, issue_id=wiki_issue_id)
        issue_status_set(actor=self.actor, issue=issue, status=request.POST.get("status", ""))
        return done(request, _("The issue is settled."), back=page_url(issue.page, base.uid))
