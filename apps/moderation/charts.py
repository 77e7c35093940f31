"""Bars as geometry that a template draws as SVG: no script, no style attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

HEIGHT = 120
STEP = 24
WIDTH = 16
LABEL = 18
OUTCOMES: tuple[tuple[str, Any, str], ...] = (
    ("hit", gettext_lazy("found"), "good"),
    ("near", gettext_lazy("by meaning only"), "wait"),
    ("miss", gettext_lazy("nothing found"), "warn"),
    ("error", gettext_lazy("failed"), "bad"),
)
DECISIONS: tuple[tuple[str, Any, str], ...] = (
    ("search", gettext_lazy("looked up"), "good"),
    ("skip", gettext_lazy("not looked up"), "wait"),
)


@dataclass(frozen=True, slots=True)
class Part:
    y: int
    height: int
    tone: str


@dataclass(frozen=True, slots=True)
class Bar:
    """`title` is read out and shown on hover; `label` stands below, empty for bars between the labelled ones."""

    x: int
    middle: int
    parts: tuple[Part, ...]
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Bars:
    """`rows` holds the same numbers as a table, for those who do not look at pictures."""

    width: int
    height: int
    base: int
    bars: tuple[Bar, ...]
    highest: int
    total: int
    legend: tuple[tuple[str, Any], ...] = ()
    bar_width: int = WIDTH

    @property
    def full_height(self) -> int:
        return self.height + LABEL


def bars_of_days(days: Sequence[Any], kinds: Sequence[tuple[str, Any, str]] = OUTCOMES) -> Bars:
    """Stacked bars: searches of each day by what came of them, or turns by what was decided (`DECISIONS`)."""
    highest = max((sum(day.counts.values()) for day in days), default=0)
    bars = []
    for at, day in enumerate(days):
        said = [f"{day.counts.get(name, 0)} {word}" for name, word, _tone in kinds if day.counts.get(name)]
        parts, y = [], HEIGHT
        for name, _word, tone in kinds:
            height = _height(day.counts.get(name, 0), highest)
            y -= height
            if height:
                parts.append(Part(y, height, tone))
        label = date_format(day.day, "n/j") if (len(days) - 1 - at) % 3 == 0 else ""
        title = f"{date_format(day.day, 'SHORT_DATE_FORMAT')}: {', '.join(said) or _('no searches')}"
        bars.append(Bar(at * STEP + (STEP - WIDTH) // 2, at * STEP + STEP // 2, tuple(parts), label, title))
    total = sum(sum(day.counts.values()) for day in days)
    legend = tuple((tone, word) for _name, word, tone in kinds)
    return Bars(len(days) * STEP, HEIGHT, HEIGHT, tuple(bars), highest, total, legend)


def bars_of_times(steps: Sequence[tuple[int | None, int]]) -> Bars:
    """One bar for each range of milliseconds."""
    step, width = 56, 40
    highest = max((count for _upper, count in steps), default=0)
    bars, lower = [], 0
    for at, (upper, count) in enumerate(steps):
        height = _height(count, highest)
        label = f"< {upper}" if upper is not None else f"≥ {lower}"
        tone = "good" if upper is not None and upper <= 200 else "warn" if upper is not None else "bad"
        parts = (Part(HEIGHT - height, height, tone),) if height else ()
        bars.append(Bar(at * step + (step - width) // 2, at * step + step // 2, parts, label, f"{label} ms: {count}"))
        lower = upper or lower
    return Bars(len(steps) * step, HEIGHT, HEIGHT, tuple(bars), highest, sum(count for _upper, count in steps), bar_width=width)


def _height(count: int, highest: int) -> int:
    """In whole units; what is there at all is at least two high, so that a single failure among thousands is seen."""
    return max(2, round(count * (HEIGHT - 8) / highest)) if count and highest else 0
