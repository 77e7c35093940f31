"""One question to each leg of the running index, for health checks: it finds nothing and must not fail."""

from __future__ import annotations

import numpy as np

from apps.retrieval.engine import engine
from apps.retrieval.plugins.protocol import Query

NOWHERE = (0,)  # no tenant and no base has this id


def probe_words() -> None:
    """Raises: TransientError, Unavailable when words cannot be searched."""
    engine().text_leg(Query(tenant_id=0, kb_ids=NOWHERE, text="probe 探针", mode="text"))


def probe_vectors() -> None:
    """Raises: TransientError, Unavailable when vectors cannot be searched."""
    engine().vector_leg(Query(tenant_id=0, kb_ids=NOWHERE, vector=np.full(4, 0.5, dtype=np.float32), vector_space="probe:4", mode="vector"))
