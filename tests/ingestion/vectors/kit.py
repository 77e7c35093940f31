"""What the tests of endpoints and re-indexes share."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from apps.common.jobs.models import RunState
from apps.common.scope import space_scope, unscoped
from apps.ingestion.models import IngestionRun, ReindexRun
from apps.knowledge.models import Document, KnowledgeBase
from apps.llm.models import Model
from apps.llm.services import embedders, model_create, model_test
from apps.retrieval.models import BaseIndex
from apps.retrieval.search import Options, Results, Scope, search
from tests.support.endpoint import Endpoint, answer
from tests.support.kit import Kit

TEXT = "# Pump\n\nThe pump is primed before use.\n\n# Valve\n\nThe valve closes at 4 bar. Code ERR-4021.\n"


def status(code: int, **headers: str) -> Callable[..., None]:
    return lambda body, handler: answer(handler, code, {"error": {"message": "no"}}, {k.replace("_", "-"): v for k, v in headers.items()})


def model_of(kit: Kit, endpoint: Endpoint, **values: Any) -> str:
    """The id of a model of the space at this endpoint."""
    with space_scope(kit.space.pk):
        given = {"name": "letters", "base_url": endpoint.url, "read_timeout_s": 5.0, **values}
        return str(model_create(actor=kit.actor, values=given).uid)


def asked_once(kit: Kit, endpoint: Endpoint, *, hangs: bool) -> str:
    """The id of a model whose endpoint has answered before; `hangs`: from now on it has little time."""
    model_id = model_of(kit, endpoint)
    with space_scope(kit.space.pk):
        assert model_test(actor=kit.actor, model=Model.objects.get(uid=model_id)).ok
        if hangs:
            Model.objects.filter(uid=model_id).update(read_timeout_s=0.4)
    return model_id


def use(kit: Kit, model_id: str) -> None:
    with space_scope(kit.space.pk):
        KnowledgeBase.objects.filter(pk=kit.base.pk).update(embedding_model_id=model_id)


def hurry() -> None:
    """Waiting is over: what was to be tried later may be tried now, and no endpoint rests."""
    embedders._made.clear()
    embedders._ask_breakers.clear()
    with unscoped("tests look at every space"):
        for model in (IngestionRun, ReindexRun):
            model.objects.filter(state=RunState.QUEUED).update(not_before=None)


def find(kit: Kit, query: str, **options: Any) -> Results:
    with space_scope(kit.space.pk):
        return search(actor=kit.actor, query=query, scope=Scope(kb_uids=(kit.base.uid,)), options=Options(**options))


def run_of(document: Document) -> IngestionRun:
    with unscoped("tests look at every space"):
        return IngestionRun.objects.filter(document=document, kind="embed_remote").latest("pk")


def make_base(kit: Kit, model_id: str) -> KnowledgeBase:
    from apps.knowledge.services import base_create

    with space_scope(kit.space.pk):
        return base_create(actor=kit.actor, values={"name": "Second", "embedding_model_id": model_id})


def spaces(kit: Kit) -> tuple[str, str]:
    with space_scope(kit.space.pk):
        row = BaseIndex.objects.get(kb=kit.base)
        return row.model_id, row.previous_space


def shifted(body: Any, handler: BaseHTTPRequestHandler) -> Any:
    """Another model: its vectors are longer."""
    rows = [{**row, "embedding": [1.0, *row["embedding"]]} for row in body["data"]]
    return {**body, "data": rows}


def reloaded(run: ReindexRun) -> ReindexRun:
    with unscoped("tests look at every space"):
        return ReindexRun.objects.get(pk=run.pk)
