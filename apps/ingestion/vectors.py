"""Making vectors of texts with one model: in batches, several at a time where an endpoint allows it, kept as they come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from apps.common.errors import InvalidInput
from apps.llm.plugins.protocol import Embedder, Matrix
from apps.llm.services import pace_seen
from apps.retrieval.services import store_vectors

REFUSED = "embedding_refused"


@dataclass(frozen=True, slots=True)
class Text:
    """What is embedded, under the hash it is kept by."""

    content_hash: str
    text: str


@dataclass(slots=True)
class Made:
    """`done`: texts that have a vector now; `refused`: texts the model does not take; `stopped`: the caller's `pause` said so."""

    done: int = 0
    refused: int = 0
    stopped: bool = False


def make_vectors(space_id: int, model_id: str, model: Embedder, todo: Sequence[Text], *, pause: Callable[[Made], bool]) -> Made:
    """Make and keep the vectors of `todo`; `pause` is called before each round of batches and may raise, or say True to stop there.

    Raises: as an Embedder, after what was made in the same round has been kept. A refused text is counted, not raised.
    """
    made = Made()
    window = model.at_once * model.concurrency
    started = time.monotonic()
    with ThreadPoolExecutor(model.concurrency) as pool:
        for at in range(0, len(todo), window):
            if pause(made):
                made.stopped = True
                break
            _round(pool, space_id, model, todo[at : at + window], made)
    pace_seen(model_id, made.done, time.monotonic() - started)
    return made


def _round(pool: ThreadPoolExecutor, space_id: int, model: Embedder, texts: Sequence[Text], made: Made) -> None:
    parts = [texts[at : at + model.at_once] for at in range(0, len(texts), model.at_once)]
    if len(parts) == 1:  # the packaged model stays on the thread of the worker
        _keep(space_id, model, *_embedded(model, parts[0]), made)
        return
    failure: Exception | None = None
    for future in [pool.submit(_embedded, model, part) for part in parts]:
        error = future.exception()
        if isinstance(error, Exception):
            failure = failure or error
        else:
            _keep(space_id, model, *future.result(), made)
    if failure is not None:
        raise failure


def _keep(space_id: int, model: Embedder, texts: Sequence[Text], vectors: Matrix, refused: int, made: Made) -> None:
    store_vectors(space_id, model.space, [text.content_hash for text in texts], vectors)
    made.done += len(texts)
    made.refused += refused


def _embedded(model: Embedder, part: Sequence[Text]) -> tuple[Sequence[Text], Matrix, int]:
    """(texts that were taken, their vectors, how many were not); a batch that is refused is halved until the text at fault is alone."""
    try:
        return part, model.passages([text.text for text in part]), 0
    except InvalidInput as error:
        if error.code != REFUSED:
            raise
    if len(part) == 1:
        return [], np.empty((0, model.dimension), dtype=np.float32), 1
    half = len(part) // 2
    first, second = _embedded(model, part[:half]), _embedded(model, part[half:])
    return [*first[0], *second[0]], np.concatenate([first[1], second[1]]), first[2] + second[2]
