"""What must be true before the portal's processes start: the index is current and answers, nothing is left over from a crash."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from django.conf import settings

from apps.common import storage, temp
from apps.common.actor import Actor
from apps.common.scope import space_scope
from apps.common.supervisor import StartupError, before_start
from apps.ingestion.reconcile import reconcile
from apps.ingestion.vector_state import stale_bases
from apps.retrieval.engine import index_is_current
from apps.retrieval.selftest import self_test
from apps.retrieval.services import rebuild_index
from apps.spaces.models import Space

log = logging.getLogger(__name__)


def prepare() -> None:
    """Renew an index of another version, prove that words are found, repair what a crash left. Raises: StartupError."""
    temp.sweep(settings.TEMP_DIR)
    if not index_is_current():
        log.info("the search index is of another version: making it again")
        done = rebuild_index()
        log.info("search index made again: %s documents, %s passages", done["documents"], done["chunks"])
    with tempfile.TemporaryDirectory(prefix="selftest-", dir=storage.temp_folder()) as folder:
        if faults := self_test(Path(folder)):
            raise StartupError("search does not work on this machine: " + "; ".join(faults))
    reconcile(young_s=60.0)
    tell_stale_vectors()


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
