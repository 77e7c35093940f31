"""What must be true before the portal's processes start: the index is current and answers, nothing is left over from a crash."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from django.conf import settings

from apps.common import storage, temp
from apps.common.supervisor import StartupError, before_start
from apps.ingestion.reconcile import reconcile
from apps.retrieval.engine import index_is_current
from apps.retrieval.selftest import self_test
from apps.retrieval.services import rebuild_index

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


before_start.append(prepare)
