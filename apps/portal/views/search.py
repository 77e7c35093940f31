"""Search over a whole space: what the palette asks as one types, and a page of results."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from apps.common.web.views import PageView
from apps.portal.finding.space_search import SpaceQuery, palette_context, results_context


class SearchView(PageView):
    """`?q=`; htmx from the palette gets its list, everybody else the page: grouped by base, with filters and pages."""

    actions = {"GET": "search.run"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        asked = SpaceQuery.read(request.GET)
        if request.headers.get("HX-Target") == "palette-results":
            context = {**palette_context(self.actor, asked.q), "space_id": space_id}
        else:
            context = {**results_context(self.actor, asked), "space_id": space_id}
        return self.fragment_or_page(
            "portal/search.html",
            {"palette-results": "components/palette_results.html", "search-results": "portal/_search_results.html"},
            context,
        )
