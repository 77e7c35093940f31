"""The words of an answer as HTML: Markdown, with every `[n]` a mark that opens its passage."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from apps.chat.selectors import body_of
from apps.common import markdown
from apps.retrieval.selectors import Reference, pieces_of

_TAG = re.compile(r"(<[^>]+>)")
_MARK = re.compile(r"\[(\d{1,4})\]")
_JOINER = "\u2060"
WIDE = 0x2E80  # Chinese characters and punctuation stand above: nothing is put between them and a mark
_QUIET = re.compile(r"</?(code|pre|a|script)\b")


def answer_html(
    space_id: int,
    session_id: uuid.UUID,
    message_id: uuid.UUID,
    content: str,
    titles: Mapping[int, str],
    support: Sequence[Mapping[str, Any]] = (),
) -> SafeString:
    """Safe HTML of an answer's body; `titles`: {number: title of its source}. How well a sentence is backed shows at its marks."""
    html = str(markdown.render(body_of(content)))
    levels = [str(row.get("level", "")) for row in support]
    group, depth, apart = -1, 0, True
    out: list[str] = []
    for piece in _TAG.split(html):
        if piece.startswith("<"):
            if _QUIET.match(piece):
                depth += -1 if piece.startswith("</") else 1
            apart = True
            out.append(piece)
            continue
        if depth:
            out.append(piece)
            continue
        last = 0
        for match in _MARK.finditer(piece):
            between = piece[last : match.start()]
            if between.strip() or apart:
                group, apart = group + 1, False
            number = int(match.group(1))
            level = levels[group] if 0 <= group < len(levels) else ""
            mark = _mark(space_id, session_id, message_id, number, titles[number], level) if number in titles else ""
            out.append(_glued(between) if mark else between)
            out.append(mark)
            last = match.end()
        rest = piece[last:]
        apart = apart or bool(rest.strip())
        out.append(rest)
    # SECURITY: the Markdown was sanitised by `render`; what is put in between is made by format_html.
    return mark_safe("".join(out))  # noqa: S308


def _glued(text: str) -> str:
    """What stands before a mark, with an end no line may break at: a mark alone on a line belongs to nothing."""
    bare = text.rstrip()
    if not bare:
        return text if not text else _JOINER
    return bare + (_JOINER if ord(bare[-1]) > WIDE or len(bare) == len(text) else "\u00a0")


def _mark(space_id: int, session_id: uuid.UUID, message_id: uuid.UUID, number: int, title: str, level: str) -> SafeString:
    address = cite_url(space_id, session_id, message_id, number)
    said = {"weak": _("partly supported"), "none": _("no support found in the source")}.get(level, "")
    name = f"{title} · {said}" if said else title
    return format_html(
        '<a class="cite{}" href="{}" hx-get="{}" hx-target="#dock" hx-swap="innerHTML" aria-label="{}: {}" data-tooltip="{}">{}</a>',
        f" cite--{level}" if level in ("weak", "none") else "",
        address,
        address,
        number,
        name,
        name,
        number,
    )


def question_html(text: str) -> SafeString:
    """A question as it was typed; what it names in double brackets is shown by its label."""
    pieces = (
        format_html('<span class="talk__ref">{}</span>', piece.label)
        if isinstance(piece, Reference)
        else format_html_join(mark_safe("<br>"), "{}", ((line,) for line in piece.split("\n")))
        for piece in pieces_of(text)
    )
    return format_html_join("", "{}", ((piece,) for piece in pieces))


def cite_url(space_id: int, session_id: uuid.UUID, message_id: uuid.UUID, number: int) -> str:
    return reverse("ask-cite", args=[space_id, session_id, message_id, number])
