"""PDFium is not thread-safe (four threads killed the whole process): every call to it in this process holds this one lock."""

from __future__ import annotations

import threading

LOCK = threading.RLock()
