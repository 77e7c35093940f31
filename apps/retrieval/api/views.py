"""Search routes."""

from __future__ import annotations

import uuid
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.response import Response

from apps.common.api.views import ApiView, Op
from apps.common.errors import InvalidInput
from apps.knowledge.selectors import as_uuid, check_public_links, public_links
from apps.retrieval.api.serializers import HybridSearchIn, KnowledgeSearchIn, ResultOut, SearchQuery
from apps.retrieval.asking import search_asked
from apps.retrieval.context import context_of
from apps.retrieval.models import RetrievalLog
from apps.retrieval.search import Mode, Options, Scope

NO_SCOPE = "At least one knowledge_base_id, knowledge_base_ids, knowledge_ids, or scoped tag must be provided"
EXAMPLE = {"query_text": "ERR-4021", "match_count": 5}


NOBODY = uuid.UUID(int=0)


def uids(values: Any) -> tuple[uuid.UUID, ...]:
    """Ids as UUIDs; one that is no UUID cannot be any row's, so it becomes one that matches nothing."""
    return tuple(as_uuid(value) or NOBODY for value in values or [])


def _mode(body: dict[str, Any]) -> Mode | None:
    words, vectors = not body["disable_keywords_match"], not body["disable_vector_match"]
    if words and vectors:
        return "hybrid"
    return "text" if words else "vector" if vectors else None


class SearchApiView(ApiView):
    """Answers hits with references as handles or, where `resource_urls=public` asks for it, as signed links."""

    def wants_links(self) -> bool:
        """Raises: InvalidInput on another value; Forbidden for an API key that is limited to some bases."""
        if self.asked()["resource_urls"] == "handle":
            return False
        check_public_links(self.actor)
        return True

    def hits(self, found: list[Any] | None, links: bool, **extra: Any) -> Response:
        if links and found:
            texts = [text for hit in found for text in (hit.chunk.content, hit.chunk.image_info)]
            root = self.request.build_absolute_uri("/").rstrip("/")
            self.render_context = {"links": public_links(actor=self.actor, texts=texts), "root": root}
        return self.render(found, **extra)


class HybridSearchView(SearchApiView):
    """Contract knowledge 8.1; GET with a JSON body is accepted as well."""

    operations = {
        method: Op(
            "search.run",
            summary="Search one knowledge base by words and meaning",
            description="`data` is null when nothing matches. Passages around the hits follow them unless `skip_context_enrichment`. "
            "`legs` says what words and vectors did; a leg that could not run says why, and the other answers alone.",
            body=HybridSearchIn,
            query=SearchQuery,
            reply=ResultOut,
            shape="list",
            invalid_code=1000,
            examples={"an exact code": EXAMPLE},
            tags=["search"],
        )
        for method in ("GET", "POST")
    }

    def get(self, request: Any, kb_id: str) -> Response:
        return self.post(request, kb_id)

    def post(self, request: Any, kb_id: str) -> Response:
        links = self.wants_links()
        body = self.read()
        mode = _mode(body)
        base = as_uuid(kb_id) or NOBODY
        extra = uids(body.get("knowledge_base_ids"))
        if extra and base not in extra:
            raise InvalidInput(_("`knowledge_base_ids` must include the base of the address."), field="knowledge_base_ids", api_code=1000)
        tags = [*(body.get("tag_ids") or []), *(body.get("scope_tag_ids") or [])]
        scope = Scope(
            kb_uids=tuple(dict.fromkeys((base, *extra))),
            document_uids=uids(body["knowledge_ids"]) if body.get("knowledge_ids") else None,
            tag_uids=uids(tags) if tags else None,
            folder_path=body.get("folder_path"),
        )
        wanted = body["match_count"] if body["match_count"] > 0 else 50
        options = Options(
            limit=wanted,
            mode=mode or "hybrid",
            vector_threshold=body["vector_threshold"],
            keyword_threshold=body["keyword_threshold"],
            vector=tuple(body["query_embedding"]) if body.get("query_embedding") else None,
        )
        door = RetrievalLog.Door.REST_BASE
        results = search_asked(actor=self.actor, door=door, query=body["query_text"], scope=scope, options=options)
        hits = results.hits if mode is not None else []
        around = [] if body["skip_context_enrichment"] else context_of(actor=self.actor, hits=hits)
        return self.hits([*hits, *around] or None, links, legs=results.legs)


class KnowledgeSearchView(SearchApiView):
    """Contract knowledge 8.2 and platform 2.5."""

    operations = {
        "POST": Op(
            "search.run",
            summary="Search across knowledge bases",
            body=KnowledgeSearchIn,
            query=SearchQuery,
            reply=ResultOut,
            shape="list",
            invalid_code=1000,
            examples={"two bases": {"query": "how often is the sensor calibrated", "knowledge_base_ids": ["…"]}},
            tags=["search"],
        )
    }

    def post(self, request: Any) -> Response:
        links = self.wants_links()
        body = self.read()
        named = [*([body["knowledge_base_id"]] if body.get("knowledge_base_id") else []), *(body.get("knowledge_base_ids") or [])]
        documents, tags = list(body.get("knowledge_ids") or []), list(body.get("tag_ids") or [])
        for item in body.get("mentioned_items") or []:
            {"kb": named, "file": documents, "tag": tags}.get(str(item.get("type")), []).append(str(item.get("id", "")))
        if not (named or documents or tags) or (tags and not documents and len(set(named)) != 1):
            raise InvalidInput(NO_SCOPE, field="knowledge_base_ids", api_code=1000)
        if self.actor.kb_uids is not None and (documents or tags):
            raise InvalidInput(_("A key limited to some bases names bases, not documents or tags."), field="knowledge_ids", api_code=1000)
        scope = Scope(
            kb_uids=uids(dict.fromkeys(named)) if named else None,
            document_uids=uids(documents) if documents else None,
            tag_uids=uids(tags) if tags else None,
        )
        door = RetrievalLog.Door.REST_SPACE
        results = search_asked(actor=self.actor, door=door, query=body["query"], scope=scope, options=Options(limit=10))
        return self.hits(results.hits, links, legs=results.legs)
