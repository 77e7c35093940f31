"""What the portal asks of a model, in plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apps.common.registry import Registry

Matrix = NDArray[np.float32]


class Embedder(Protocol):
    """Texts in, unit vectors out; called by ingestion in batches and by retrieval once per query.

    Shapes: `passages` gives (len(texts), dimension) float32, each row of L2 norm 1; `query` gives (dimension,).
    Raises: TransientError if a retry may help, Unavailable or InvalidInput if it will not.
    """

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def space(self) -> str:
        """`<model>:<dimension>`: vectors of different spaces are never compared."""

    @property
    def at_once(self) -> int:
        """How many texts to hand to one call of `passages`."""

    @property
    def concurrency(self) -> int:
        """How many calls of `passages` may run at the same time."""

    def passages(self, texts: Sequence[str]) -> Matrix: ...

    def query(self, text: str) -> NDArray[np.float32]: ...

    def token_count(self, text: str) -> int: ...


EmbedderFactory = Callable[[Mapping[str, str]], Embedder]
"""From options (for `openai`: `base_url`, `model`, `dimension` ...) to an embedder.

Raises: InvalidInput naming the option that is missing or wrong; Unavailable when this machine cannot run it.
"""

embedders: Registry[EmbedderFactory] = Registry("embedder")
