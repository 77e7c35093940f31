"""API keys (contract platform 1.7) and what this server is (2.8)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone
from rest_framework.response import Response

from apps.common.api.views import ApiView, Op
from apps.spaces import selectors
from apps.spaces.api import serializers as s
from apps.spaces.api.views import WorkspaceView
from apps.spaces.services import keys as key_services

KEYS, SYSTEM = ("api keys",), ("system",)
STARTED_AT = timezone.now()
EDITION = "standard"


class KeysView(WorkspaceView):
    operations = {
        "GET": Op("key.list", "API keys", reply=s.KeyOut, shape="list", errors=(401, 403), tags=KEYS),
        "POST": Op(
            "key.write",
            "Make an API key",
            s.KeyIn,
            reply=s.KeyOut,
            status=201,
            errors=(400, 401, 403),
            tags=KEYS,
            description="The key is stored hashed: `api_key` and `token` hold it in this answer only, lists show a hint. Without "
            "`full_access` at least one capability is needed; an empty `knowledge_base_ids` means every base.",
        ),
    }

    def get(self, request: Any, workspace_id: int) -> Response:
        return self.render(selectors.key_list(actor=self.actor))

    def post(self, request: Any, workspace_id: int) -> Response:
        key, plain = key_services.key_create(actor=self.actor, space=self.space, **self.read())
        self.render_context = {"plain": plain}
        return self.render(key)


class KeyView(WorkspaceView):
    operations = {
        "PUT": Op("key.write", "Change what a key may do", s.KeyIn, reply=s.KeyOut, tags=KEYS),
        "DELETE": Op("key.write", "Revoke a key", shape="message", errors=(401, 403, 404), tags=KEYS),
    }

    def put(self, request: Any, workspace_id: int, key_id: int) -> Response:
        key = selectors.key_get(actor=self.actor, key_id=key_id)
        return self.render(key_services.key_update(actor=self.actor, key=key, **self.read()))

    def delete(self, request: Any, workspace_id: int, key_id: int) -> Response:
        key_services.key_revoke(actor=self.actor, key=selectors.key_get(actor=self.actor, key_id=key_id))
        return self.render(None, message="API key deleted successfully")


class SystemInfoView(ApiView):
    operations = {"GET": Op("system.read", "Version and engines", reply=s.SystemInfoOut, errors=(401,), tags=SYSTEM)}

    def get(self, request: Any) -> Response:
        return self.render(
            {
                "version": settings.VERSION,
                "edition": EDITION,
                "keyword_index_engine": settings.SEARCH_BACKEND,
                "vector_store_engine": settings.SEARCH_BACKEND,
                "graph_database_engine": "none",
                "minio_enabled": False,
                "db_version": connection.vendor,
                "started_at": STARTED_AT,
                "uptime_seconds": int((timezone.now() - STARTED_AT).total_seconds()),
            }
        )


class SystemCapabilitiesView(ApiView):
    operations = {
        "GET": Op(
            "system.read",
            "What this server cannot do",
            reply=s.SystemCapabilitiesOut,
            errors=(401,),
            tags=SYSTEM,
            description="Clients take what is not listed as supported.",
        )
    }

    def get(self, request: Any) -> Response:
        return self.render({"edition": EDITION, "capabilities": UNSUPPORTED})


#: features of upstream this portal does not have, in the words its clients look for
UNSUPPORTED = {
    name: {"supported": False, "reason": "not part of this portal"}
    for name in ("web_search", "mcp_services", "im_channels", "embed_channels", "sandbox", "sso", "minio")
}
