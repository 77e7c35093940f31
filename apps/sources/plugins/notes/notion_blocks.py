"""Notion's blocks as Markdown. Blocks nobody can read as text (embeds without an address, breadcrumbs) are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apps.sources.plugins.notes.marks import fenced, indented, quoted, styled, table

Block = dict[str, Any]
Children = Callable[[str], Iterable[Block]]

MAX_DEPTH = 12
_LISTS = ("bulleted_list_item", "numbered_list_item", "to_do")


def rich_text(parts: Any) -> str:
    """Notion's rich text with its marks."""
    found = []
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict):
            continue
        if part.get("type") == "equation":
            found.append(f"${(part.get('equation') or {}).get('expression', '')}$")
            continue
        marks = part.get("annotations") or {}
        found.append(
            styled(
                str(part.get("plain_text") or ""),
                bold=bool(marks.get("bold")),
                italic=bool(marks.get("italic")),
                strike=bool(marks.get("strikethrough")),
                code=bool(marks.get("code")),
                link=str(part.get("href") or ""),
            )
        )
    return "".join(found)


def plain_text(parts: Any) -> str:
    return "".join(str(part.get("plain_text") or "") for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ""


def to_markdown(blocks: Iterable[Block], children: Children, depth: int = 0) -> str:
    """Blocks with their children (`children(block id)` loads them)."""
    pieces: list[tuple[str, str]] = []
    number = 0
    for block in blocks:
        kind = str(block.get("type") or "")
        number = number + 1 if kind == "numbered_list_item" else 0
        text = _block(kind, block, children, depth, number)
        if text.strip():
            pieces.append((kind, text))
    out = ""
    for at, (kind, text) in enumerate(pieces):
        if at:
            before = pieces[at - 1][0]
            together = kind in _LISTS and before in _LISTS and (kind == "numbered_list_item") == (before == "numbered_list_item")
            out += "\n" if together else "\n\n"
        out += text
    return out


def _block(kind: str, block: Block, children: Children, depth: int, number: int) -> str:
    data = block.get(kind)
    data = data if isinstance(data, dict) else {}
    text = rich_text(data.get("rich_text"))
    if kind == "table":
        rows = children(str(block.get("id"))) if block.get("has_children") else ()
        return table([[rich_text(cell) for cell in (row.get("table_row") or {}).get("cells") or []] for row in rows])
    inner = ""
    if block.get("has_children") and depth < MAX_DEPTH and kind not in ("child_page", "child_database"):
        inner = to_markdown(children(str(block.get("id"))), children, depth + 1)
    return _with(kind, data, text, inner, number)


def _with(kind: str, data: Block, text: str, inner: str, number: int) -> str:
    if kind in ("heading_1", "heading_2", "heading_3", "heading_4"):
        return "\n\n".join(filter(None, [f"{'#' * (int(kind[-1]) + 1)} {text}" if text.strip() else "", inner]))
    if kind in _LISTS:
        lead = f"{number}. " if kind == "numbered_list_item" else "- "
        box = f"[{'x' if data.get('checked') else ' '}] " if kind == "to_do" else ""
        return f"{lead}{box}{text}" + (f"\n{indented(inner, len(lead))}" if inner else "")
    if kind in ("quote", "callout"):
        return quoted("\n\n".join(filter(None, [text, inner])))
    if kind == "code":
        language = str(data.get("language") or "")
        return fenced(plain_text(data.get("rich_text")), "" if language == "plain text" else language.split("/")[0].replace(" ", ""))
    if kind == "equation":
        return f"$$\n{data.get('expression') or ''}\n$$"
    if kind == "divider":
        return "---"
    if kind in ("child_page", "child_database"):
        return str(data.get("title") or "")
    if kind in ("image", "video", "file", "pdf", "audio", "bookmark", "embed", "link_preview"):
        caption = rich_text(data.get("caption")) or str(data.get("name") or "")
        outside = str((data.get("external") or {}).get("url") or data.get("url") or "")  # addresses of Notion's own files end after an hour
        return styled(caption or outside, link=outside) if outside or caption else ""
    return "\n\n".join(filter(None, [text, inner]))


def property_text(value: Any) -> str:
    """The value of one property of a database's page, as a person reads it; "" for what has no text."""
    if not isinstance(value, dict):
        return ""
    kind = str(value.get("type") or "")
    data = value.get(kind)
    if data in (None, "", [], {}):
        return ""
    if kind in ("title", "rich_text"):
        return plain_text(data)
    if kind in ("select", "status"):
        return str(data.get("name") or "") if isinstance(data, dict) else ""
    if kind in ("multi_select", "people", "files"):
        return ", ".join(str(entry.get("name") or "") for entry in data if isinstance(entry, dict) and entry.get("name"))
    if kind == "date" and isinstance(data, dict):
        return " – ".join(str(data[end]) for end in ("start", "end") if data.get(end))
    if kind == "checkbox":
        return "✓" if data else ""
    if kind in ("number", "url", "email", "phone_number"):
        return str(data)
    if kind in ("formula", "rollup", "unique_id") and isinstance(data, dict):
        if kind == "unique_id":
            return "-".join(str(data[part]) for part in ("prefix", "number") if data.get(part))
        inner = data.get(str(data.get("type")))
        return str(inner) if isinstance(inner, (str, int, float)) and not isinstance(inner, bool) else ""
    return ""
