"""The start-up self-test: a Chinese, an English and a code probe must be found by words, and by meaning where there is an embedder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from apps.retrieval.engine import scratch_engine
from apps.retrieval.plugins.protocol import IndexChunk, IndexDocument, Query, SearchBackend

PROBES = {
    "zh": ("设备每季度校准一次", "校准"),
    "en": ("Calibrate the device every quarter", "calibrate"),
    "code": ("Error ERR-4021 means overheating", "err-4021"),
}
SPACE = "self-test:4"


def self_test(folder: Path) -> list[str]:
    """What does not work, in a store of its own (`folder` is a temporary one); empty when all is well. Costs little, loads no model."""
    with scratch_engine(folder) as backend:
        return _faults(backend)


def _faults(backend: SearchBackend) -> list[str]:
    vectors = np.eye(len(PROBES), 4, dtype=np.float32)
    backend.put(
        IndexDocument(id=n, tenant_id=1, kb_id=1, rev=1, folder_id=0, vector_space=SPACE, chunks=(IndexChunk(n, text, vectors[n - 1]),))
        for n, (text, _question) in enumerate(PROBES.values(), 1)
    )
    faults = []
    for n, (name, (_text, question)) in enumerate(PROBES.items(), 1):
        if [hit.chunk_id for hit in backend.text_leg(Query(1, (1,), question))][:1] != [n]:
            faults.append(f"the {name} probe is not found by its words")
        asked = Query(1, (1,), vector=vectors[n - 1], vector_space=SPACE, mode="vector")
        if [hit.chunk_id for hit in backend.vector_leg(asked)][:1] != [n]:
            faults.append(f"the {name} probe is not found by its vector")
    return faults
