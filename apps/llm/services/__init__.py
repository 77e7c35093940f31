"""What others do with models."""

from apps.llm.services.catalogue import (
    Tested,
    model_create,
    model_delete,
    model_key_set,
    model_probe,
    model_test,
    model_update,
    model_users,
)
from apps.llm.services.embedders import (
    ENDPOINT,
    PACKAGED,
    deployment_model_id,
    embedder,
    embedding_model_ids,
    embedding_model_known,
    is_local,
    known_space,
    pace_of,
    pace_seen,
    why_unavailable,
)

__all__ = [
    "ENDPOINT",
    "PACKAGED",
    "Tested",
    "deployment_model_id",
    "embedder",
    "embedding_model_ids",
    "embedding_model_known",
    "is_local",
    "known_space",
    "model_create",
    "model_delete",
    "model_key_set",
    "model_probe",
    "model_test",
    "model_update",
    "model_users",
    "pace_of",
    "pace_seen",
    "why_unavailable",
]
