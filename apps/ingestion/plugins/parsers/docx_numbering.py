"""Automatic numbers of Word paragraphs, worked out as Word shows them (`第3.2条`, `Article IV`, `（一）`).

Source: ECMA-376 part 1, 17.9 (numbering) and 17.18.59 (number formats).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DIGITS = "零一二三四五六七八九"
_ROMAN = tuple(zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "M CM D CD C XC L XL X IX V IV I".split(), strict=True))
_CHINESE = frozenset(
    "chineseCounting chineseCountingThousand japaneseCounting taiwaneseCounting taiwaneseCountingThousand ideographDigital".split()
)


def chinese(number: int, *, leading: bool = True) -> str:
    """1 -> 一, 12 -> 十二, 105 -> 一百零五."""
    if number < 0 or number >= 100_000_000:
        return str(number)
    if number < 10:
        return _DIGITS[number]
    if number >= 10_000:
        high, low = divmod(number, 10_000)
        return chinese(high) + "万" + (("零" if low < 1000 else "") + chinese(low, leading=False) if low else "")
    out, pending = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, number = divmod(number, unit)
        if digit:
            out += ("零" if pending and out else "") + _DIGITS[digit] + name
            pending = False
        elif out:
            pending = True
    return out.removeprefix("一") if leading and out.startswith("一十") else out


def roman(number: int) -> str:
    if not 0 < number < 4000:
        return str(number)
    out = ""
    for value, mark in _ROMAN:
        count, number = divmod(number, value)
        out += mark * count
    return out


def letters(number: int) -> str:
    """1 -> A, 27 -> AA, 28 -> BB: Word repeats the letter."""
    return chr(64 + (number - 1) % 26 + 1) * ((number - 1) // 26 + 1) if 0 < number <= 26 * 20 else str(number)


def show_number(number: int, style: str) -> str:
    """A counter in one of Word's number formats; unknown formats give the plain number."""
    if style in (
        "chineseCounting",
        "chineseCountingThousand",
        "japaneseCounting",
        "taiwaneseCounting",
        "taiwaneseCountingThousand",
        "ideographDigital",
    ):
        return chinese(number)
    if style == "chineseLegalSimplified":
        return chinese(number).translate(str.maketrans("一二三四五六七八九十百千", "壹贰叁肆伍陆柒捌玖拾佰仟"))
    if style in ("upperRoman", "lowerRoman"):
        return roman(number) if style[0] == "u" else roman(number).lower()
    if style in ("upperLetter", "lowerLetter"):
        return letters(number) if style[0] == "u" else letters(number).lower()
    if style == "decimalZero":
        return f"{number:02d}"
    if style.startswith("decimalEnclosedCircle") and 0 < number <= 20:
        return chr(0x2460 + number - 1)
    if style == "ideographTraditional" and 0 < number <= 10:
        return "甲乙丙丁戊己庚辛壬癸"[number - 1]
    if style == "ideographZodiac" and 0 < number <= 12:
        return "子丑寅卯辰巳午未申酉戌亥"[number - 1]
    return "" if style in ("none", "bullet") else str(number)


@dataclass(slots=True)
class Level:
    start: int = 1
    style: str = "decimal"
    text: str = ""
    paragraph_style: str = ""
    suffix: str = "tab"
    legal: bool = False
    restart: int | None = None


@dataclass(slots=True)
class Numbering:
    """The numbering definitions of a document and the counters of those met so far."""

    levels: dict[str, dict[int, Level]] = field(default_factory=dict)  # abstract id -> level -> Level
    instances: dict[str, tuple[str, dict[int, int]]] = field(default_factory=dict)  # numId -> (abstract id, start overrides)
    overridden: dict[str, dict[int, Level]] = field(default_factory=dict)  # numId -> level definitions of its own
    links: dict[str, str] = field(default_factory=dict)  # abstract id -> style it takes its levels from
    defines: dict[str, str] = field(default_factory=dict)  # style -> abstract id that defines it
    counters: dict[str, dict[int, int]] = field(default_factory=dict)
    started: set[tuple[str, int]] = field(default_factory=set)

    @classmethod
    def read(cls, root: Any | None) -> Numbering:
        """The definitions of a parsed numbering.xml (None: no numbering)."""
        numbering = cls()
        if root is None:
            return numbering
        for abstract in root.iter(f"{W}abstractNum"):
            key = abstract.get(f"{W}abstractNumId") or ""
            numbering.levels[key] = dict(map(_level, abstract.findall(f"{W}lvl")))
            if (link := _value(abstract, "numStyleLink")) is not None:
                numbering.links[key] = link
            if (link := _value(abstract, "styleLink")) is not None:
                numbering.defines[link] = key
        for num in root.iter(f"{W}num"):
            starts, own = {}, {}
            for override in num.findall(f"{W}lvlOverride"):
                number = _int(override.get(f"{W}ilvl"), 0)
                if (start := _value(override, "startOverride")) is not None:
                    starts[number] = _int(start, 1)
                if (definition := override.find(f"{W}lvl")) is not None:
                    own[number] = _level(definition)[1]
            key = num.get(f"{W}numId") or ""
            numbering.instances[key] = (_value(num, "abstractNumId") or "", starts)
            numbering.overridden[key] = own
        return numbering

    def _abstract(self, num_id: str) -> str:
        abstract = self.instances.get(num_id, ("", {}))[0]
        return self.defines.get(self.links.get(abstract, ""), abstract)

    def level(self, num_id: str, number: int) -> Level | None:
        own = self.overridden.get(num_id, {}).get(number)
        return own or self.levels.get(self._abstract(num_id), {}).get(number)

    def level_of_style(self, num_id: str, style: str) -> int:
        """The level that names this paragraph style; 0 when none does."""
        levels = self.levels.get(self._abstract(num_id), {})
        return next((n for n, level in levels.items() if level.paragraph_style == style), 0)

    def label(self, num_id: str, number: int) -> str | None:
        """Counts one paragraph and gives its label ("" for an empty one); None for bullets and unknown numbering."""
        level = self.level(num_id, number)
        if level is None or level.style == "bullet":
            return None
        key = self._abstract(num_id)
        counters = self.counters.setdefault(key, {})
        starts = self.instances[num_id][1]
        if number in starts and (num_id, number) not in self.started:
            counters[number] = starts[number]
        else:
            counters[number] = counters[number] + 1 if number in counters else level.start
        self.started.add((num_id, number))
        for deeper in [n for n in counters if n > number]:
            definition = self.level(num_id, deeper)
            if definition is None or definition.restart is None or number < definition.restart:
                del counters[deeper]
        text = level.text
        for above in range(number, -1, -1):
            mark = f"%{above + 1}"
            if mark not in text:
                continue
            definition = self.level(num_id, above) or Level()
            value = counters.setdefault(above, definition.start)
            text = text.replace(mark, show_number(value, "decimal" if level.legal else definition.style))
        gap = "" if level.suffix == "nothing" else " "
        return text + gap if text.strip() else ""


def _value(element: Any, name: str) -> str | None:
    child = element.find(f"{W}{name}")
    return None if child is None else child.get(f"{W}val")


def _int(value: str | None, default: int) -> int:
    try:
        return int(value) if value is not None else default
    except ValueError:
        return default


def _level(element: Any) -> tuple[int, Level]:
    restart = _value(element, "lvlRestart")
    return _int(element.get(f"{W}ilvl"), 0), Level(
        start=_int(_value(element, "start"), 1),
        style=_value(element, "numFmt") or "decimal",
        text=_value(element, "lvlText") or "",
        paragraph_style=_value(element, "pStyle") or "",
        suffix=_value(element, "suff") or "tab",
        legal=element.find(f"{W}isLgl") is not None,
        restart=_int(restart, 0) if restart is not None else None,
    )
