"""The index follows the database: after commit, synchronously; what fails here is found by `reconcile`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from django.db import transaction

from apps.common.events import listen
from apps.common.scope import space_scope
from apps.knowledge.events import (
    BaseChanged,
    BaseDeleted,
    BaseFilled,
    ChunksChanged,
    CopyStarted,
    DocumentsCopied,
    DocumentsDeleted,
    DocumentsRefiled,
    DocumentsRestored,
    DocumentStored,
)
from apps.retrieval import services
from apps.retrieval.engine import engine
from apps.retrieval.journal import forget_texts
from apps.retrieval.plugins.protocol import INDEX_FAILURES
from apps.spaces.events import SpaceDeleted

log = logging.getLogger(__name__)
AT_ONCE = 100  # documents a request has time to index


def _after_commit(space_id: int, change: Callable[[], object]) -> None:
    def run() -> None:
        try:
            with space_scope(space_id, "index follows a change"):
                change()
        except INDEX_FAILURES:
            log.exception("the index could not follow a change in space %s; reconcile will repair it", space_id)

    transaction.on_commit(run, robust=True)


@listen(DocumentsDeleted)
def _documents_deleted(event: DocumentsDeleted) -> None:
    _after_commit(event.space_id, lambda: engine().delete(event.space_id, doc_ids=event.document_ids))


@listen(BaseDeleted)
def _base_deleted(event: BaseDeleted) -> None:
    _after_commit(event.space_id, lambda: engine().delete(event.space_id, kb_ids=[event.kb_id]))


@listen(DocumentsRefiled)
def _documents_refiled(event: DocumentsRefiled) -> None:
    """A folder or tags alone touch little of the index: their new state is read now, in the transaction that made it."""
    if event.only:
        filings = services.filings_of(event.document_ids, words=event.only == "tags")
        _after_commit(event.space_id, partial(services.refile_documents, event.space_id, filings))
        return
    _after_commit(event.space_id, partial(services.index_documents, event.space_id, event.document_ids))


@listen(CopyStarted)
def _copy_started(event: CopyStarted) -> None:
    """A base that has no vectors of its own is served by those of the base it is a copy of: they are kept by content."""
    services.share_serving_space(event.source_kb_id, event.target_kb_id)


@listen(DocumentsCopied)
def _documents_copied(event: DocumentsCopied) -> None:
    _after_commit(event.space_id, partial(services.index_documents, event.space_id, [copy for _source, copy in event.pairs]))


@listen(BaseFilled)
def _base_filled(event: BaseFilled) -> None:
    """A worker killed between its commit and the index left documents the index does not hold."""
    _after_commit(event.space_id, partial(services.reconcile_base, event.space_id, event.kb_id))


@listen(DocumentsRestored)
def _documents_restored(event: DocumentsRestored) -> None:
    """A few are found again at once; of many, each is when its turn to be checked for vectors comes."""
    if len(event.document_ids) <= AT_ONCE:
        _after_commit(event.space_id, partial(services.index_documents, event.space_id, event.document_ids))


@listen(ChunksChanged)
def _chunks_changed(event: ChunksChanged) -> None:
    _after_commit(event.space_id, partial(services.index_edited, event.space_id, event.document_id))


@listen(DocumentStored)
def _document_stored(event: DocumentStored) -> None:
    """A document parsed anew leaves the index until its new passages are there. What is parsed again was said to be refiled as well."""
    if event.trigger == "reparse":
        return
    _after_commit(event.space_id, partial(services.index_documents, event.space_id, [event.document_id]))


@listen(BaseChanged)
def _base_changed(event: BaseChanged) -> None:
    """An empty base that chose another model starts afresh: the first document's vectors will serve."""
    if "embedding_model_id" in event.changed:
        services.forget_serving_space(event.kb_id)


@listen(SpaceDeleted)
def _space_deleted(event: SpaceDeleted) -> None:
    """What was asked in a space goes with it; that something was asked, and what it cost, stays."""
    forget_texts([event.space_id])
