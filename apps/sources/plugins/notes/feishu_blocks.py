"""The blocks of a Feishu document (docx) as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from apps.sources.plugins.notes.marks import fenced, indented, quoted, styled, table

Block = dict[str, Any]

MAX_DEPTH = 20
_HEADINGS = {number: number - 2 for number in range(3, 12)}
_BULLET, _ORDERED, _CODE, _QUOTE, _TODO = 12, 13, 14, 15, 17
_CALLOUT, _DIVIDER, _TABLE, _CELL, _QUOTES = 19, 22, 31, 32, 34
_NAMES = {1: "page", 2: "text", 12: "bullet", 13: "ordered", 14: "code", 15: "quote", 17: "todo"} | {
    number: f"heading{level}" for number, level in _HEADINGS.items()
}
_LANGUAGES = {
    7: "bash", 8: "csharp", 9: "cpp", 10: "c", 12: "css", 18: "dockerfile", 22: "go", 24: "html", 28: "json", 29: "java", 30: "javascript",
    32: "kotlin", 36: "lua", 39: "markdown", 43: "php", 46: "powershell", 49: "python", 52: "ruby", 53: "rust", 56: "sql", 60: "bash",
    61: "swift", 63: "typescript", 66: "xml", 67: "yaml",
}  # fmt: skip


def to_markdown(blocks: Iterable[Block], zone: ZoneInfo) -> str:
    """All blocks of a document, as the API lists them (a flat list with ids of children)."""
    known = {str(block.get("block_id")): block for block in blocks}
    root = next((block for block in known.values() if block.get("block_type") == 1), None)
    if root is None:
        return ""
    return _Writer(known, zone).children(root, 0).strip()


class _Writer:
    def __init__(self, known: dict[str, Block], zone: ZoneInfo) -> None:
        self.known, self.zone = known, zone
        self.done: set[str] = set()

    def children(self, block: Block, depth: int) -> str:
        if depth > MAX_DEPTH:
            return ""
        out, before, number = "", 0, 0
        for name in block.get("children") or []:
            child = self.known.get(str(name))
            if child is None or str(name) in self.done:
                continue
            self.done.add(str(name))
            kind = child.get("block_type")
            kind = kind if isinstance(kind, int) else 0
            number = number + 1 if kind == _ORDERED else 0
            text = self.block(kind, child, depth, number)
            if not text.strip():
                continue
            together = kind == before == _ORDERED or (kind in (_BULLET, _TODO) and before in (_BULLET, _TODO))
            out += ("\n" if together else "\n\n") if out else ""
            out += text
            before = kind
        return out

    def block(self, kind: int, block: Block, depth: int, number: int) -> str:
        if kind == _TABLE:
            return self.table(block, depth)
        data = block.get(_NAMES.get(kind, ""))
        data = data if isinstance(data, dict) else {}
        if kind == _CODE:
            style = data.get("style") if isinstance(data.get("style"), dict) else {}
            return fenced(
                "".join(_plain(part) for part in data.get("elements") or []), _LANGUAGES.get((style or {}).get("language") or 0, "")
            )
        text, inner = self.text(data.get("elements")), self.children(block, depth + 1)
        if kind in _HEADINGS:
            return "\n\n".join(filter(None, [f"{'#' * min(6, _HEADINGS[kind] + 1)} {text}" if text.strip() else "", inner]))
        if kind in (_BULLET, _ORDERED, _TODO):
            lead = f"{number}. " if kind == _ORDERED else "- "
            style = data.get("style") if isinstance(data.get("style"), dict) else {}
            box = f"[{'x' if (style or {}).get('done') else ' '}] " if kind == _TODO else ""
            return f"{lead}{box}{text}" + (f"\n{indented(inner, len(lead))}" if inner else "")
        if kind in (_QUOTE, _QUOTES, _CALLOUT):
            return quoted("\n\n".join(filter(None, [text, inner])))
        if kind == _DIVIDER:
            return "---"
        if kind == 23:
            return str((block.get("file") or {}).get("name") or "")
        return "\n\n".join(filter(None, [text, inner]))

    def table(self, block: Block, depth: int) -> str:
        data = block.get("table") if isinstance(block.get("table"), dict) else {}
        width = ((data or {}).get("property") or {}).get("column_size")
        cells = []
        for name in (data or {}).get("cells") or block.get("children") or []:
            cell = self.known.get(str(name))
            self.done.add(str(name))
            cells.append(self.children(cell, depth + 1) if cell else "")
        if not isinstance(width, int) or width < 1:
            return "\n\n".join(filter(None, cells))
        return table([cells[at : at + width] for at in range(0, len(cells), width)])

    def text(self, elements: Any) -> str:
        return "".join(self.element(part) for part in elements if isinstance(part, dict)) if isinstance(elements, list) else ""

    def element(self, part: dict[str, Any]) -> str:
        if isinstance(run := part.get("text_run"), dict):
            style = run.get("text_element_style") if isinstance(run.get("text_element_style"), dict) else {}
            style = style or {}
            return styled(
                str(run.get("content") or ""),
                bold=bool(style.get("bold")),
                italic=bool(style.get("italic")),
                strike=bool(style.get("strikethrough")),
                code=bool(style.get("inline_code")),
                link=unquote(str((style.get("link") or {}).get("url") or "")),
            )
        if isinstance(equation := part.get("equation"), dict):
            return f"${str(equation.get('content') or '').strip()}$"
        if isinstance(document := part.get("mention_doc"), dict):
            return styled(str(document.get("title") or ""), link=unquote(str(document.get("url") or "")))
        if isinstance(reminder := part.get("reminder"), dict):
            return self.time(reminder)
        return ""

    def time(self, reminder: dict[str, Any]) -> str:
        raw = str(reminder.get("expire_time") or "")
        if not raw.isdigit() or len(raw) > 13:
            return ""
        when = datetime.fromtimestamp(int(raw) / 1000, UTC).astimezone(self.zone)
        return f"{when:%Y-%m-%d}" if reminder.get("is_whole_day") else f"{when:%Y-%m-%d %H:%M}"


def _plain(part: Any) -> str:
    run = part.get("text_run") if isinstance(part, dict) else None
    return str(run.get("content") or "") if isinstance(run, dict) else ""
