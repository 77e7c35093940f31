"""The sources tab of a base: what there is, how it went, sync, stop, pause, history, decisions about what is gone."""

from __future__ import annotations

import uuid

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.errors import InvalidInput
from apps.common.policy import allowed
from apps.knowledge.selectors import base_get
from apps.portal import links
from apps.portal.base_frame import base_frame
from apps.portal.sources import row_of, run_of, sources_context, sources_url
from apps.portal.trash import kept_text
from apps.portal.web import DialogView, PageView, done
from apps.sources.models import SyncMode
from apps.sources.selectors import held_items, held_items_get, run_list, source_get, source_row
from apps.sources.services import (
    held_delete,
    held_keep,
    source_check,
    source_delete,
    source_pause,
    source_resume,
    sync_start,
    sync_stop,
)

RUNS = 20
HELD = 100


class SourcesView(PageView):
    actions = {"GET": "source.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        context = sources_context(self.actor, base)
        if request.headers.get("HX-Target") != "sources":
            context = {**base_frame(self.actor, base, "sources"), **context}
        return self.fragment_or_page("portal/base_sources.html", {"sources": "portal/_sources.html"}, context)


class SourceSyncView(PageView):
    actions = {"POST": "source.sync"}

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        full = request.POST.get("mode") == SyncMode.FULL
        sync_start(actor=self.actor, source=source, mode=SyncMode.FULL if full else "")
        text = _("“%(name)s” is being synced.") % {"name": source.name}
        return done(request, text, back=sources_url(source.kb))


class SourceStopView(PageView):
    actions = {"POST": "source.sync"}

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        stopped = sync_stop(actor=self.actor, source=source)
        text = _("The sync is being stopped. What was taken over stays.") if stopped else _("No sync is under way.")
        return done(request, text, back=sources_url(source.kb))


class SourcePauseView(PageView):
    actions = {"POST": "source.write"}

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        source_pause(actor=self.actor, source=source)
        return done(request, _("“%(name)s” is paused.") % {"name": source.name}, back=sources_url(source.kb))


class SourceResumeView(PageView):
    actions = {"POST": "source.write"}

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        source_resume(actor=self.actor, source=source)
        return done(request, _("“%(name)s” goes on.") % {"name": source.name}, back=sources_url(source.kb))


class SourceCheckView(PageView):
    actions = {"POST": "source.write"}

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        try:
            source_check(actor=self.actor, source=source)
        except InvalidInput as error:
            return done(request, _("“%(name)s” does not answer.") % {"name": source.name}, detail=str(error), kind="warning",
                        back=sources_url(source.kb))  # fmt: skip
        return done(request, _("“%(name)s” answers.") % {"name": source.name}, back=sources_url(source.kb))


class SourceHistoryView(DialogView):
    """Runs of a source, newest first, a slice at a time."""

    actions = {"GET": "source.read"}
    template = "portal/_source_history.html"
    kind = "drawer"

    def get(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        raw = request.GET.get("offset", "0")
        offset = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 8 else 0
        runs = run_list(actor=self.actor, source=source, limit=RUNS + 1, offset=offset)
        context = {
            "source": source,
            "runs": [run_of(run) for run in runs[:RUNS]],
            "next_offset": offset + RUNS if len(runs) > RUNS else None,
            "offset": offset,
            "space_id": space_id,
            "summary": row_of(source_row(actor=self.actor, source=source)),
        }
        if request.headers.get("HX-Target") == "source-runs-more":
            return self.page("portal/_source_runs.html", context)
        return self.show(_("History of “%(name)s”") % {"name": source.name}, context, back=sources_url(source.kb))


class SourceHeldView(PageView):
    """Documents whose source does not have them any more; an admin deletes or keeps them, one by one or all together."""

    actions = {"GET": "source.read", "POST": "source.write"}

    def get(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        found = Paginator(held_items(actor=self.actor, source=source), HELD).get_page(request.GET.get("page", "1"))
        context = {
            **base_frame(self.actor, source.kb, "sources"),
            "source": source,
            "held": [{"item": item, "href": links.document_url(item.document) if item.document else ""} for item in found],
            "held_page": found,
            "may_manage": allowed(self.actor, "source.write", source),
            "space_id": space_id,
        }
        return self.fragment_or_page("portal/source_held.html", {"held": "portal/_source_held.html"}, context)

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        everything = request.POST.get("all") == "1"
        items = held_items_get(actor=self.actor, source=source, ids=request.POST.getlist("ids"), everything=everything)
        back = reverse("source-held", args=[space_id, source.uid])
        if not items:
            return done(request, _("Nothing was chosen."), back=back, kind="warning")
        if request.POST.get("decision") == "keep":
            count = held_keep(actor=self.actor, source=source, items=items)
            text = ngettext("%(count)s document is kept.", "%(count)s documents are kept.", count)
            return done(request, text % {"count": f"{count:,}"}, back=back)
        decided = held_delete(actor=self.actor, source=source, items=items)
        text = ngettext("%(count)s document deleted.", "%(count)s documents deleted.", decided.count) % {"count": f"{decided.count:,}"}
        stays = f"{decided.stays[0][0]}: {decided.stays[0][1]}" if decided.stays else kept_text()
        return done(request, text, back=back, kind="warning" if decided.stays else "success", detail=stays)


class SourceDeleteView(DialogView):
    """Says how many documents stay before anything goes."""

    actions = {"GET": "source.write", "POST": "source.write"}
    template = "portal/_source_delete.html"

    def get(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        row = source_row(actor=self.actor, source=source)
        context = {"source": source, "retained": row.retained, "is_live": row.live is not None, "space_id": space_id}
        return self.show(_("Remove “%(name)s”?") % {"name": source.name}, context, back=sources_url(source.kb))

    def post(self, request: HttpRequest, space_id: int, source_id: uuid.UUID) -> HttpResponse:
        source = source_get(actor=self.actor, source_id=source_id)
        retained = source_row(actor=self.actor, source=source).retained
        source_delete(actor=self.actor, source=source, retained=retained)
        stays = ngettext("%(count)s document stays.", "%(count)s documents stay.", retained) % {"count": f"{retained:,}"}
        return self.done(_("“%(name)s” was removed.") % {"name": source.name}, detail=stays, back=sources_url(source.kb))
