"""The trash of a space and of one base: bring back, or remove for good."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.errors import Conflict
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import base_get, trash_base_get, trash_days, trash_documents, trash_documents_get, trash_list
from apps.knowledge.services import base_purge, base_restore, documents_purge, documents_restore
from apps.portal import links
from apps.portal.trash import documents_text
from apps.portal.web import PageView, done, is_htmx

PAGE_SIZE = 50
MOST = 200


class TrashView(PageView):
    actions = {"GET": "trash.read"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        rows = trash_list(actor=self.actor)
        context = {
            "bases": [row for row in rows if row.is_base],
            "lists": [row for row in rows if not row.is_base],
            "days": trash_days(),
            "space_id": space_id,
            "crumbs": [{"label": _("Trash")}],
        }
        return self.page("portal/trash.html", context)


class TrashBaseRestoreView(PageView):
    actions = {"POST": "trash.restore"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = trash_base_get(actor=self.actor, kb_id=kb_id)
        try:
            base = base_restore(actor=self.actor, base=base)
        except Conflict as error:
            return done(request, str(error), back=reverse("trash", args=[space_id]), kind="warning")
        return done(request, _("“%(name)s” is back.") % {"name": base.name}, back=links.base_url(base))


class TrashBasePurgeView(PageView):
    actions = {"POST": "trash.purge"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = trash_base_get(actor=self.actor, kb_id=kb_id)
        base_purge(actor=self.actor, base=base)
        return done(request, _("“%(name)s” is being removed for good.") % {"name": base.name}, back=reverse("trash", args=[space_id]))


class BaseTrashView(PageView):
    """Deleted documents of a base, a page at a time."""

    actions = {"GET": "trash.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        found = Paginator(trash_documents(actor=self.actor, base=base), PAGE_SIZE)
        context = {
            "base": base,
            "trash_page": found.get_page(request.GET.get("page", "1")),
            "days": trash_days(),
            "space_id": space_id,
            "crumbs": [
                {"label": _("Trash"), "href": reverse("trash", args=[space_id])},
                {"label": base.name, "href": links.base_url(base)},
                {"label": _("Deleted documents")},
            ],
        }
        return self.page("portal/base_trash.html", context)


def chosen(view: PageView, base: KnowledgeBase) -> list[Document]:
    """The documents a form or an undo names by `ids`, or with `all=1` every one of them. Raises: NotFound when none is in the trash."""
    values = view.request.POST
    ids = [*values.getlist("ids"), *view.request.GET.get("ids", "").split(",")]
    if values.get("all") == "1":
        return list(trash_documents(actor=view.actor, base=base))
    return trash_documents_get(actor=view.actor, base=base, ids=[each for each in ids if each][:MOST])


class BaseTrashRestoreView(PageView):
    actions = {"POST": "trash.restore"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        restored = documents_restore(actor=self.actor, base=base, documents=chosen(self, base))
        back = reverse("base-trash", args=[space_id, base.uid])
        text = _("%(documents)s brought back.") % {"documents": documents_text(restored.count)}
        if restored.failed:
            first, why = restored.failed[0]
            detail = _("“%(title)s”: %(why)s") % {"title": first.title, "why": why}
            more = len(restored.failed) - 1
            if more:
                detail += " " + ngettext("%(count)d more stays too.", "%(count)d more stay too.", more) % {"count": more}
            return done(request, text, back=back, kind="warning", detail=detail)
        return done(request, text, back=back)


class BaseTrashPurgeView(PageView):
    actions = {"POST": "trash.purge"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        count = documents_purge(actor=self.actor, base=base, documents=chosen(self, base))
        text = _("%(documents)s being removed for good.") % {"documents": documents_text(count)}
        back = reverse("base-trash", args=[space_id, base.uid])
        if is_htmx(request):
            return done(request, text, back=back)
        messages.success(request, text)
        return redirect(back)
