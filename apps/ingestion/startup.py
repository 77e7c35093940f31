"""What must be true before the portal's processes start: the index is current and answers, files can be kept, nothing is left over."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection

from apps.common import storage, temp
from apps.common.actor import Actor
from apps.common.errors import StoreUnavailable
from apps.common.scope import space_scope
from apps.common.stores import HINTS
from apps.common.supervisor import StartupError, before_start
from apps.ingestion.reconcile import YOUNG_S, reconcile
from apps.ingestion.vector_state import stale_bases
from apps.retrieval.engine import index_is_current
from apps.retrieval.selftest import self_test
from apps.retrieval.services import rebuild_index
from apps.spaces.models import Space

log = logging.getLogger(__name__)

YOUNG_ALONE_S = 60.0
MISTAKES = ("bucket_missing", "access_denied", "no_credentials")  # of the settings; everything else may pass by itself


def prepare(parts: Sequence[str]) -> None:
    """Renew an index of another version, prove that words are found and files can be kept, repair what a crash left.

    Of several processes of one deployment that start at once, one renews the index and the others wait for it; the one with the schedule
    repairs.

    Raises: StartupError.
    """
    temp.sweep(settings.TEMP_DIR)
    with _one_at_a_time():
        if not index_is_current():
            log.info("the search index is of another version: making it again")
            done = rebuild_index()
            log.info("search index made again: %s documents, %s passages", done["documents"], done["chunks"])
    with tempfile.TemporaryDirectory(prefix="selftest-", dir=storage.temp_folder()) as folder:
        if faults := self_test(Path(folder)):
            raise StartupError("search does not work on this machine: " + "; ".join(faults))
    alone = connection.vendor == "sqlite"
    try:
        storage.probe()
        if alone or "schedule" in parts:
            reconcile(young_s=YOUNG_ALONE_S if alone else YOUNG_S)
    except StoreUnavailable as error:
        if error.why in MISTAKES:
            raise StartupError(f"the file store {storage.store().place} cannot be used: {HINTS[error.why]}") from error
        log.warning("the portal starts although its file store cannot be used now; uploads are refused until it answers")
    tell_stale_vectors()


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """On a database server, wait for other processes that are in this block."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('kbportal.prepare'))")
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(hashtext('kbportal.prepare'))")


def tell_stale_vectors() -> int:
    """Say how many bases are served by vectors of another model than they should have, as after a change of KB_EMBEDDER; how many."""
    found = 0
    for space_id in Space.objects.filter(deleted_at__isnull=True).values_list("pk", flat=True):
        with space_scope(space_id, "vectors at the start"):
            found += len(stale_bases(actor=Actor.system(space_id, "vectors at the start")))
    if found:
        log.warning("%s knowledge bases are served by vectors of an older model: manage.py reindex_vectors lists them", found)
    return found


before_start.append(prepare)
