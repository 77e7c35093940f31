"""The document reader: content beside its passages, what happened to it, facts about it."""

from __future__ import annotations

import json
import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from apps.common.errors import DomainError, NotFound
from apps.common.web.views import PageView
from apps.knowledge.models import IN_FLIGHT, Chunk, Document
from apps.knowledge.selectors import chunk_get, document_deleted_at, document_get
from apps.knowledge.selectors.passages import passage_at, passage_numbered
from apps.knowledge.services import base_visit
from apps.portal import links
from apps.portal.reader.details import details_context
from apps.portal.reader.frame import reader_frame
from apps.portal.reader.original import original_context, part_context
from apps.portal.reader.passages import Asked, passages_context, reader_address
from apps.portal.reader.pipeline import pipeline_context, warnings_of
from apps.portal.reader.source import Source, source_of
from apps.portal.reader.summary import summary_context
from apps.portal.wiki.frame import page_url
from apps.wiki.selectors import page_of_document


class ReaderView(PageView):
    """Content: `?chunk=` opens at a passage, `&q=` marks the words that found it, `part`, `page`, `find`, `state`, `view` say the rest.

    `index=` (number of a passage) and `at=page:x:y` (a point of a PDF page) lead to the passage there.
    """

    actions = {"GET": "chunk.read"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        try:
            document = document_get(actor=self.actor, document_id=document_id)
        except NotFound:
            if when := document_deleted_at(actor=self.actor, document_id=document_id):
                raise NotFound(_("This document was deleted on %(date)s.") % {"date": date_format(localtime(when))}) from None
            raise
        if document.type in (Document.Type.PAIR, Document.Type.FAQ):
            return redirect(links.document_url(document) if document.type == Document.Type.PAIR else links.base_url(document.kb))
        if document.type == Document.Type.PAGE and (page := page_of_document(actor=self.actor, document=document)) is not None:
            return redirect(page_url(page, document.kb.uid))
        asked = Asked.read(request.GET)
        source = source_of(document)
        if "index" in request.GET or "at" in request.GET:
            return self._lead(document, source, asked)
        chosen = self._chosen(document, asked)
        if request.GET.get("more") in ("before", "after") and source is not None:
            return self._more(document, source, asked, request.GET["more"])
        if not request.headers.get("HX-Request"):
            base_visit(actor=self.actor, base=document.kb)
        context = {
            **reader_frame(self.actor, document, "content"),
            **original_context(self.actor, document, source, asked, chosen),
            **passages_context(self.actor, document, source, asked, chosen),
            **summary_context(self.actor, document),
            "asked": asked,
            "chosen": chosen,
            "here": f"{reader_address(document)}?{asked.query()}",
            "passage_gone": bool(asked.chunk) and chosen is None,
        }
        response = self.fragment_or_page(
            "portal/reader.html", {"original": "portal/_original.html", "passages": "portal/_passages.html"}, context
        )
        return response

    def _chosen(self, document: Document, asked: Asked) -> Chunk | None:
        if not asked.chunk:
            return None
        try:
            return chunk_get(actor=self.actor, chunk_id=asked.chunk, document=document)
        except DomainError:  # parsed again since, or of another document: the reader says so and opens all the same
            return None

    def _lead(self, document: Document, source: Source | None, asked: Asked) -> HttpResponse:
        """To the passage that stands at a number or at a point of a page."""
        index, point = self.request.GET.get("index", ""), self.request.GET.get("at", "").split(":")
        chunk: Chunk | None = None
        if index.isascii() and index.isdigit() and len(index) < 9:
            chunk = passage_numbered(actor=self.actor, document=document, index=int(index))
        elif len(point) == 3 and source is not None:
            try:
                page, x, y = int(point[0]), float(point[1]), float(point[2])
            except ValueError:
                page, x, y = 0, 0.0, 0.0
            offset = source.offset_on_page(page, x, y)
            chunk = passage_at(actor=self.actor, document=document, offset=offset) if offset is not None else None
        query = asked.query(chunk=chunk.uid if chunk else asked.chunk, find="", state="", page=0)
        return redirect(f"{reader_address(document)}?{query}")

    def _more(self, document: Document, source: Source, asked: Asked, side: str) -> HttpResponse:
        part = source.parts[min(max(asked.part, 1), len(source.parts)) - 1]
        context = part_context(self.actor, document, source, [part], asked, None)
        return self.page("portal/_part_more.html", {**context, "side": side})


class ReaderLiveView(PageView):
    """How far a document in flight is; tells the page to load itself again once it can show more."""

    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        response = self.page("portal/_reader_state.html", reader_frame(self.actor, document, "content"))
        if request.GET.get("was") != document.parse_status:
            response["HX-Trigger"] = json.dumps({"kb:changed": {}})
        return response


class PipelineView(PageView):
    actions = {"GET": "run.read"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        raw = request.GET.get("attempt", "")
        attempt = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 9 else 0
        context = {**reader_frame(self.actor, document, "pipeline"), **pipeline_context(self.actor, document, attempt)}
        context["poll_href"] = request.get_full_path() if document.parse_status in IN_FLIGHT and context["is_latest"] else ""
        return self.fragment_or_page("portal/reader_pipeline.html", {"pipeline": "portal/_pipeline.html"}, context)


class DetailsView(PageView):
    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, document_id: uuid.UUID) -> HttpResponse:
        document = document_get(actor=self.actor, document_id=document_id)
        context = {
            **reader_frame(self.actor, document, "details"),
            **details_context(self.actor, document),
            "warnings": warnings_of(document),
        }
        return self.page("portal/reader_details.html", context)
