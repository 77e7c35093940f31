"""JSON and JSON Lines: one block per top-level entry, every value with the path of keys that leads to it."""

from __future__ import annotations

import json
from typing import Any

from apps.ingestion.plugins.builder import DocumentBuilder, one_line
from apps.ingestion.plugins.encodings import decode
from apps.ingestion.plugins.parsers.plain import add_plain
from apps.ingestion.plugins.protocol import ParsedDocument, ParseFailure, ParseRequest, Position, Progress, parsers

MAX_DEPTH = 60


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _label(path: tuple[str, ...]) -> str:
    label = ""
    for key in path:
        label += key if key.startswith("[") or not label else f".{key}"
    return label


def flatten(value: Any, path: tuple[str, ...] = ()) -> list[str]:
    """Lines `path: value`, one per leaf; lists of plain values stay on one line."""
    lines: list[str] = []
    stack: list[tuple[Any, tuple[str, ...]]] = [(value, path)]
    while stack:
        item, here = stack.pop()
        label = _label(here)
        if len(here) > MAX_DEPTH:
            lines.append(f"{label}: …")
        elif isinstance(item, dict) and item:
            stack.extend((child, (*here, one_line(str(key)) or '""')) for key, child in reversed(list(item.items())))
        elif isinstance(item, list) and item and any(isinstance(child, dict | list) for child in item):
            stack.extend((child, (*here, f"[{index}]")) for index, child in reversed(list(enumerate(item))))
        else:
            text = ", ".join(map(_scalar, item)) if isinstance(item, list) else "" if item == {} else _scalar(item)
            lines.append(f"{label}: {text}".rstrip() if label else text)
    return lines


def _is_table(value: Any) -> bool:
    """A list of flat records with the same keys reads best as a table."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(row, dict) and row for row in value):
        return False
    keys = set().union(*value)
    if len(keys) > 30 or any(len(row) < 0.5 * len(keys) for row in value):
        return False
    return all(not isinstance(cell, dict | list) and len(str(cell)) < 500 for row in value for cell in row.values())


def add_json(builder: DocumentBuilder, value: Any) -> None:
    """Append a JSON value: lists of records as a table, else one block per top-level entry."""
    if _is_table(value):
        keys = list(dict.fromkeys(key for row in value for key in row))
        rows = [(["" if row.get(k) is None else _scalar(row[k]) for k in keys], Position(part=f"[{i}]")) for i, row in enumerate(value)]
        builder.table(keys, rows, Position())
    elif isinstance(value, dict):
        for key, child in value.items():
            if _is_table(child):
                builder.heading(str(key), 2, Position(part=str(key)[:200]))
                add_json(builder, child)
            else:
                builder.add("paragraph", "\n".join(flatten(child, (str(key),))), Position(part=str(key)[:200]))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            builder.add("paragraph", "\n".join(flatten(child, (f"[{index}]",))), Position(part=f"[{index}]"))
    else:
        builder.add("paragraph", _scalar(value), Position())


@parsers.register("json")
class JsonParser:
    media_types = ("application/json",)
    extensions = ("json", "jsonl", "ndjson")

    def parse(self, request: ParseRequest, progress: Progress) -> ParsedDocument:
        decoded = decode(request.path.read_bytes(), request.encoding)
        builder = DocumentBuilder(request.max_chars)
        text = decoded.text.lstrip("\ufeff").strip()
        title = ""
        try:
            value = json.loads(text) if text else None
            if text:
                add_json(builder, value)
            if isinstance(value, dict) and isinstance(value.get("title"), str):
                title = value["title"]
        except RecursionError as error:
            raise ParseFailure("too_large", "the JSON is nested too deep, over the limit") from error
        except ValueError as error:
            self._lines(builder, text, error)
        progress(1, 1, "files")
        return builder.finish(encoding=decoded.encoding, title=title)

    def _lines(self, builder: DocumentBuilder, text: str, error: ValueError) -> None:
        """JSON Lines, or a file that is no JSON at all: then its text, with a warning that names the place."""
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        try:
            values = [(number, json.loads(line)) for number, line in lines] if len(lines) > 1 else []
        except (ValueError, RecursionError):
            values = []
        if not values:
            builder.warn("invalid_json", f"not valid JSON, read as text: {error}")
            add_plain(builder, text)
            return
        for number, value in values:
            body = "\n".join(flatten(value))
            builder.add("paragraph", body, Position(line=number, line_end=number))
