from apps.evaluation.files import MAX_BYTES, Draft, questions_of, questions_read
from apps.evaluation.services.defaults import evaluation_ask
from apps.evaluation.services.runs import EVALUATE, run_cancel, run_delete, run_retry, run_start
from apps.evaluation.services.sets import set_create, set_delete, set_draw

__all__ = [
    "EVALUATE",
    "MAX_BYTES",
    "Draft",
    "evaluation_ask",
    "questions_of",
    "questions_read",
    "run_cancel",
    "run_delete",
    "run_retry",
    "run_start",
    "set_create",
    "set_delete",
    "set_draw",
]
