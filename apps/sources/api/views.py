"""Data sources over REST (contract content 7). Answers are bare; errors are flat, but for credentials, which speak as models do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.response import Response

from apps.common.api.errors import handle_flat
from apps.common.api.views import ApiView, Empty, Op
from apps.common.errors import InvalidInput
from apps.knowledge.selectors import base_get
from apps.sources import selectors, services
from apps.sources.api import serializers as s

TAGS = ("data sources",)
EXAMPLE = {
    "knowledge_base_id": "7f0c3d86-3b0e-4b7e-9d3a-0d8f5a3c1b2e",
    "name": "Product news",
    "type": "rss",
    "config": {"settings": {"feed_urls": "https://example.com/feed.xml"}},
    "sync_schedule": "0 0 */6 * * *",
    "deletion_policy": "hold",
}
SETTLED = (400, 401, 403, 404)


class SourceView(ApiView):
    """Refusals of the handlers are `{"error": "..."}`, with the field and the reason beside it."""

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response]:
        return handle_flat


class TypesView(SourceView):
    operations = {
        "GET": Op("source.read", "List the kinds of data sources", reply=s.MetaOut, shape="bare_list", errors=(401, 403), tags=TAGS)
    }

    def get(self, request: Any) -> Response:
        return self.render(selectors.connector_metas(actor=self.actor))


class CheckView(SourceView):
    operations = {
        "POST": Op(
            "source.write",
            "Try credentials before a source is made",
            body=s.CheckIn,
            reply=s.StatusOut,
            shape="bare",
            invalid_code=1000,
            examples={"feed": {"type": "rss", "credentials": {"feed_urls": "https://example.com/feed.xml"}}},
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        services.credentials_check(actor=self.actor, kind=body["type"], credentials=body["credentials"], settings=body.get("settings"))
        return self.render({"status": "connected"})


class SourcesView(SourceView):
    operations = {
        "GET": Op(
            "source.read",
            "List the data sources of a base",
            query=s.ListQuery,
            reply=s.SourceOut,
            shape="bare_list",
            tags=TAGS,
            description="Newest first, each with its latest run (`latest_sync_log`). `retainedKnowledgeCount` documents stay when it goes.",
        ),
        "POST": Op(
            "source.write",
            "Add a data source",
            body=s.SourceCreateIn,
            reply=s.SourceOut,
            shape="bare",
            status=201,
            invalid_code=1000,
            examples={"feed": EXAMPLE},
            description="The source is asked first; if it does not answer, nothing is stored. The first sync comes with its schedule or by "
            "hand.",
            tags=TAGS,
        ),
    }

    def get(self, request: Any) -> Response:
        base = base_get(actor=self.actor, kb_id=self.asked()["kb_id"])
        self.render_context = {"with_log": True}
        return self.render(selectors.source_list(actor=self.actor, base=base))

    def post(self, request: Any) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=body["knowledge_base_id"])
        made = services.source_create(actor=self.actor, base=base, values=s.values_of(body))
        return self.render(selectors.source_row(actor=self.actor, source=made))


class SourceDetailView(SourceView):
    operations = {
        "GET": Op("source.read", "Get a data source", reply=s.SourceOut, shape="bare", tags=TAGS),
        "PUT": Op(
            "source.write",
            "Change a data source",
            body=s.SourceIn,
            reply=s.SourceOut,
            shape="bare",
            invalid_code=1000,
            examples={"nightly": {"sync_schedule": "0 0 2 * * *", "time_zone": "Asia/Shanghai"}},
            description="What is left out stays. Credentials are changed by their own route; here they are ignored.",
            tags=TAGS,
        ),
        "DELETE": Op(
            "source.write", "Remove a data source; what it brought stays", status=204, shape="bare", errors=(401, 403, 404), tags=TAGS
        ),
    }

    def get(self, request: Any, source_id: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render(selectors.source_row(actor=self.actor, source=source))

    def put(self, request: Any, source_id: str) -> Response:
        body = self.read()
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        changed = services.source_update(actor=self.actor, source=source, values=s.values_of(body, policy=source.deletion_policy))
        return self.render(selectors.source_row(actor=self.actor, source=changed))

    def delete(self, request: Any, source_id: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        retained = selectors.source_row(actor=self.actor, source=source).retained
        services.source_delete(actor=self.actor, source=source, retained=retained)
        return self.render(None)


class SourceCredentialsView(ApiView):
    operations = {
        "PUT": Op(
            "source.write",
            "Replace all credentials of a data source",
            body=s.SourceCredentialsIn,
            invalid_code=1000,
            examples={"key": {"credentials": {"api_key": "secret"}}},
            tags=TAGS,
        )
    }

    def put(self, request: Any, source_id: str) -> Response:
        given = self.read()["credentials"]
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        changed = services.credentials_set(actor=self.actor, source=source, credentials=given)
        return self.render({"fields": {"credentials": {"configured": bool(changed.sealed)}}})


class SourceCredentialView(ApiView):
    operations = {
        "DELETE": Op("source.write", "Remove all credentials of a data source", status=204, shape="bare", errors=SETTLED, tags=TAGS)
    }

    def delete(self, request: Any, source_id: str, field: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        if field != "credentials":
            raise InvalidInput(f"unknown credential field: {field[:64]}", field="field", known=["credentials"], api_code=1000)
        services.credentials_clear(actor=self.actor, source=source)
        return self.render(None)


class SourceCheckView(SourceView):
    operations = {"POST": Op("source.write", "Ask whether a source answers", body=Empty, reply=s.StatusOut, shape="bare", tags=TAGS)}

    def post(self, request: Any, source_id: str) -> Response:
        services.source_check(actor=self.actor, source=selectors.source_get(actor=self.actor, source_id=source_id))
        return self.render({"status": "connected"})


class ResourcesView(SourceView):
    operations = {
        "GET": Op(
            "source.write",
            "List one level of what can be selected",
            query=s.ResourceQuery,
            reply=s.ResourceOut,
            shape="bare_list",
            tags=TAGS,
        )
    }

    def get(self, request: Any, source_id: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        found = services.source_resources(actor=self.actor, source=source, parent_id=self.asked()["parent_id"])
        return self.render(found)


class AncestorsView(SourceView):
    operations = {
        "POST": Op(
            "source.write",
            "What must be opened for these parts to be seen",
            body=s.AncestorsIn,
            reply=s.AncestorsOut,
            shape="bare",
            invalid_code=1000,
            examples={"one": {"resource_ids": ["page-7"]}},
            tags=TAGS,
        )
    }

    def post(self, request: Any, source_id: str) -> Response:
        wanted = self.read()["resource_ids"]
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render({"ancestors": services.source_ancestors(actor=self.actor, source=source, resource_ids=wanted)})


class SyncView(SourceView):
    operations = {
        "POST": Op(
            "source.sync",
            "Sync now",
            body=s.SyncIn,
            reply=s.RunOut,
            shape="bare",
            invalid_code=1000,
            description="Paused sources as well. While a run is under way, that one is answered.",
            tags=TAGS,
        ),
        "DELETE": Op("source.sync", "Stop the run under way", reply=s.StoppedOut, shape="bare", errors=(401, 403, 404), tags=TAGS),
    }

    def post(self, request: Any, source_id: str) -> Response:
        mode = self.read().get("mode") or ""
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render(services.sync_start(actor=self.actor, source=source, mode=mode))

    def delete(self, request: Any, source_id: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render({"stopped": services.sync_stop(actor=self.actor, source=source)})


class PauseView(SourceView):
    operations = {"POST": Op("source.write", "Pause the schedule of a data source", body=Empty, reply=s.StatusOut, shape="bare", tags=TAGS)}

    def post(self, request: Any, source_id: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render({"status": services.source_pause(actor=self.actor, source=source).status})


class ResumeView(SourceView):
    operations = {
        "POST": Op("source.write", "Take up the schedule of a data source again", body=Empty, reply=s.StatusOut, shape="bare", tags=TAGS)
    }

    def post(self, request: Any, source_id: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render({"status": services.source_resume(actor=self.actor, source=source).status})


class LogsView(SourceView):
    operations = {
        "GET": Op(
            "source.read", "List the runs of a data source, newest first", query=s.LogQuery, reply=s.RunOut, shape="bare_list", tags=TAGS
        )
    }

    def get(self, request: Any, source_id: str) -> Response:
        asked = self.asked()
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render(selectors.run_list(actor=self.actor, source=source, **asked))


class LogView(SourceView):
    operations = {"GET": Op("source.read", "Get a run", reply=s.RunOut, shape="bare", tags=TAGS)}

    def get(self, request: Any, log_id: str) -> Response:
        return self.render(selectors.run_get(actor=self.actor, run_id=log_id))


class HeldView(SourceView):
    operations = {
        "GET": Op(
            "source.read",
            "List documents that are gone at the source and wait for a decision",
            reply=s.HeldOut,
            shape="bare_list",
            tags=TAGS,
        ),
        "POST": Op(
            "source.write",
            "Delete or keep documents that are gone at the source",
            body=s.HeldIn,
            reply=s.DecidedOut,
            shape="bare",
            invalid_code=1000,
            examples={"all": {"decision": "keep"}},
            tags=TAGS,
        ),
    }

    def get(self, request: Any, source_id: str) -> Response:
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        return self.render(selectors.held_items(actor=self.actor, source=source)[:1000])

    def post(self, request: Any, source_id: str) -> Response:
        body = self.read()
        source = selectors.source_get(actor=self.actor, source_id=source_id)
        items = selectors.held_items_get(actor=self.actor, source=source, ids=body.get("ids") or [], everything="ids" not in body)
        if body["decision"] == "keep":
            kept = services.held_keep(actor=self.actor, source=source, items=items)
            return self.render({"deleted": 0, "kept": kept, "stays": []})
        decided = services.held_delete(actor=self.actor, source=source, items=items)
        stays = [{"title": title, "why": why} for title, why in decided.stays]
        return self.render({"deleted": decided.count, "kept": 0, "stays": stays})
