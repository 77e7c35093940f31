"""The retrieval-test tab: what a question finds in a base, why, and why something is not found. The question lives in the address."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.errors import DomainError
from apps.common.web.views import PageView
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import base_get, document_get, document_list, folder_paths, tag_list
from apps.knowledge.selectors.documents import DocumentFilters
from apps.portal.base_frame import base_frame
from apps.portal.finding.test_page import TestQuery, answer_context, legs_of, whynot_context
from apps.retrieval.models import RetrievalLog
from apps.retrieval.selectors import Results, search_asked

TARGETS = 20


class RetrievalTestView(PageView):
    actions = {"GET": "search.explain"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        asked = TestQuery.read(request.GET)
        frame = base_frame(self.actor, base, "test")
        context: dict[str, Any] = {
            **frame,
            "crumbs": [*frame["crumbs"], {"label": _("Retrieval test")}],
            "asked": asked,
            "space_id": space_id,
            "address": reverse("base-test", args=[space_id, base.uid]),
            "folders": folder_paths(actor=self.actor, base=base),
            "tags": list(tag_list(actor=self.actor, base=base)),
        }
        if asked.q:
            context |= self._answer(base, asked)
        return self.fragment_or_page("portal/base_test.html", {"test-answer": "portal/_test_answer.html"}, context)

    def _answer(self, base: KnowledgeBase, asked: TestQuery) -> dict[str, Any]:
        try:
            results: Results = search_asked(
                actor=self.actor,
                door=RetrievalLog.Door.TEST,
                query=asked.q,
                scope=asked.scope(base),
                options=asked.options(),
                explain_dropped=True,
            )
        except DomainError as error:
            return {"test_error": error}
        context = {"results": results, "legs": legs_of(results, asked), **answer_context(self.actor, base, results, asked)}
        if asked.why:
            context |= whynot_context(self.actor, base, asked)
        if asked.document:
            context["scope_document"] = self._document(base, asked.document)
        return context

    def _document(self, base: KnowledgeBase, raw: str) -> Any:
        try:
            return document_get(actor=self.actor, document_id=raw, base=base)
        except DomainError:
            return None


class TargetsView(PageView):
    """Documents to ask about, as one types: the answer fills a list."""

    actions = {"GET": "document.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        typed = request.GET.get("why", "").strip()[:200]
        found = document_list(actor=self.actor, base=base, filters=DocumentFilters(keyword=typed))[:TARGETS]
        return self.page("portal/_test_targets.html", {"targets": list(found)})
