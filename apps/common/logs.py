"""One log line per event, for people or for collectors, each with the request, person, space and run it belongs to (`common.context`)."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any

from apps.common import context

HIDDEN = "[hidden]"
CHATTY = (
    *("kombu", "amqp", "asyncio", "urllib3", "httpx2", "httpcore2", "openai", "PIL", "pdfminer", "RapidOCR", "trafilatura"),
    *("celery.worker.strategy", "celery.app.trace"),  # a line per bell says nothing: the runs say what was worked
)
CONTEXT = {"request_id": context.request_id, "user": context.actor_name, "space": context.space_id, "run": context.run_id}

_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", None, None).__dict__) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
    *CONTEXT,
}
_SECRET_NAME = re.compile(r"password|passwd|secret|token|api_?key|authorization|cookie|credential", re.IGNORECASE)
_SECRETS = [
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), r"\1 " + HIDDEN),
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s@/]+@"), r"\1" + HIDDEN + "@"),
    (
        re.compile(
            r"(?i)([\w-]*(?:api[_-]?key|secret(?:[_-]\w*key)?|password|passwd|token|credential|kb_session)"  # a name that ends like this
            r"[\"']?\s*[=:]\s*(?:bytes\()?b?[\"']?)(?!(?:bearer|basic)\s)[^\s\"'&,;)}\]]+"
        ),
        r"\1" + HIDDEN,
    ),
    (re.compile(r"\bsk-[\w-]{8,}"), HIDDEN),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"), HIDDEN),
]


def without_secrets(text: str) -> str:
    """The text with passwords, keys and tokens replaced; a net under code that should not log them in the first place."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


class ContextFilter(logging.Filter):
    """Copies the context onto the record on the thread that logged it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if (request := getattr(record, "request", None)) is not None:  # Django logs refusals when the request's own context is over
            actor = getattr(request, "actor", None)
            known = {"request_id": getattr(request, "id", ""), "user": getattr(actor, "who", ""), "space": getattr(actor, "space_id", None)}
            record.__dict__.update({key: value for key, value in known.items() if value and not hasattr(record, key)})
        for key, variable in CONTEXT.items():
            if not hasattr(record, key) and (value := variable.get()):
                setattr(record, key, value)
        return True


def _context_of(record: logging.LogRecord) -> dict[str, str]:
    return {key: str(getattr(record, key)) for key in CONTEXT if getattr(record, key, None) is not None}


def _extras_of(record: logging.LogRecord) -> dict[str, Any]:
    extras = {key: value for key, value in record.__dict__.items() if key not in _STANDARD and not key.startswith("_")}
    extras.pop("request", None)  # Django's own extra: an object whose text adds nothing
    return {key: HIDDEN if _SECRET_NAME.search(key) else value for key, value in extras.items()}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC, RFC 3339), level, logger, process, message, context, extras, traceback."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self.process = process

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "process": self.process,
            "pid": record.process,
            "message": without_secrets(record.getMessage()),
            **_context_of(record),
        }
        for key, value in _extras_of(record).items():
            line.setdefault(key, value if isinstance(value, (int, float, bool, type(None))) else without_secrets(str(value)))
        if record.exc_info:
            line["traceback"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class ConsoleFormatter(logging.Formatter):
    """`12:00:01 web      INFO  logger: message  [request_id=... space=7]` in the machine's own time."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self.process = process

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        text = f"{clock} {self.process:<8} {record.levelname:<7} {record.name}: {record.getMessage()}"
        facts = _context_of(record) | {key: value for key, value in _extras_of(record).items() if isinstance(value, (str, int, float))}
        if facts:
            text += "  [" + " ".join(f"{key}={value}" for key, value in facts.items()) + "]"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return without_secrets(text)


def process_name(argv: list[str]) -> str:
    """Which part of the portal a command line starts: web, worker, schedule, serve, or the management command's name."""
    words = [word.rpartition("/")[2] for word in argv]
    if words[:1] == ["supervised.py"]:
        return "serve"
    if any(word.startswith(("webserver", "uvicorn", "gunicorn")) for word in words[:1]):
        return "web"
    for word, name in (("worker", "worker"), ("beat", "schedule")):
        if word in words[1:] and any(part in ("celery", "__main__.py") for part in words[:1]):
            return name
    return words[1] if len(words) > 1 and not words[1].startswith("-") else "python"


def logging_config(form: str, level: str) -> dict[str, Any]:
    """Django's LOGGING: everything to standard error in one format, third-party chatter from WARNING up.

    `form` is "json" or "console".
    """
    formatter = JsonFormatter if form == "json" else ConsoleFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"context": {"()": ContextFilter}},
        "formatters": {"line": {"()": formatter, "process": process_name(sys.argv)}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["context"]}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"level": level, "handlers": [], "propagate": True},
            "django.server": {"level": level, "handlers": [], "propagate": True},
            **{name: {"level": "WARNING"} for name in CHATTY},
        },
    }
