"""Cell values as a spreadsheet shows them: number formats, percent, currency, dates.

Source: ECMA-376 part 1, 18.8.30 and 18.8.31. Chinese-numeral formats ([DBNum1]) keep Arabic digits, so that a date is
found as people type it.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache

#: Format ids that need no entry in the file. 14 and 22 follow the reader's locale in Excel: the ISO form is the one nobody misreads.
BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "$#,##0;-$#,##0", 6: "$#,##0;-$#,##0", 7: "$#,##0.00;-$#,##0.00",
    8: "$#,##0.00;-$#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??", 14: "yyyy-mm-dd", 15: "d-mmm-yy",
    16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
    27: 'yyyy"年"m"月"', 28: 'm"月"d"日"', 29: 'm"月"d"日"', 30: "m-d-yy", 31: 'yyyy"年"m"月"d"日"', 32: 'h"时"mm"分"',
    33: 'h"时"mm"分"ss"秒"', 34: 'h"时"mm"分"', 35: 'h"时"mm"分"ss"秒"', 36: 'yyyy"年"m"月"', 37: "#,##0;-#,##0",
    38: "#,##0;-#,##0", 39: "#,##0.00;-#,##0.00", 40: "#,##0.00;-#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
    48: "##0.0E+0", 49: "@", 50: 'yyyy"年"m"月"', 51: 'm"月"d"日"', 52: 'yyyy"年"m"月"', 53: 'm"月"d"日"', 54: 'm"月"d"日"',
    55: 'h"时"mm"分"', 56: 'h"时"mm"分"ss"秒"', 57: 'yyyy"年"m"月"', 58: 'm"月"d"日"',
}  # fmt: skip
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_(?P<pad>.)|\*(?P<fill>.)|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|\[(?P<elapsed>h+|m+|s+)\]|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<ampm>AM/PM|A/P|上午/下午)|(?P<exponent>E[+-]0+)|(?P<fraction>[#?0]+/[#?0\d]+)|(?P<digits>[0#?]+)|(?P<general>General)"
    r"|(?P<date>y+|m+|d+|h+|s+|a{3,4}|e+|g+|b+)|(?P<other>.)",
    re.I | re.S,
)
Token = tuple[str, str]


def general(value: float) -> str:
    """A number as an unformatted cell shows it: whole numbers without a point, at most 15 digits."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.15g}"


@lru_cache(maxsize=512)
def _sections(code: str) -> tuple[tuple[Token, ...], ...]:
    sections: list[list[Token]] = [[]]
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup or "other"
        text = found.group(kind) or ""
        if kind == "other" and text == ";":
            sections.append([])
        else:
            sections[-1].append((kind, text))
    return tuple(tuple(s) for s in sections)


def is_date(code: str) -> bool:
    return any(kind in ("date", "elapsed", "ampm") for kind, _ in _sections(code)[0])


def show(value: float, code: str, *, date1904: bool = False) -> str:
    """The value as a cell with this format shows it."""
    sections = _sections(code)
    if not code or code == "@" or (len(sections[0]) == 1 and sections[0][0][0] == "general"):
        return general(value)
    if is_date(code):
        return _show_date(value, sections[0], date1904)
    section, negative = sections[0], value < 0
    if len(sections) > 1 and value < 0:
        section, negative = sections[1], False
    elif len(sections) > 2 and value == 0:
        section = sections[2]
    if not section:
        return ""
    return _show_number(abs(value), section, negative)


def _literal(kind: str, text: str) -> str:
    if kind in ("quoted", "escaped", "currency", "other"):
        return text
    return " " if kind == "pad" else ""


def _show_number(value: float, section: tuple[Token, ...], negative: bool) -> str:
    placeholders = [i for i, (kind, _) in enumerate(section) if kind in ("digits", "fraction", "general", "exponent")]
    if any(kind == "fraction" for kind, _ in section) or any(kind == "general" for kind, _ in section):
        body = general(value)
        return _around(section, placeholders, ("-" if negative else "") + body)
    if not placeholders:
        return "".join(_literal(k, t) for k, t in section).strip() or general(value)
    first, last = placeholders[0], placeholders[-1]
    percent = sum(1 for kind, text in section if kind == "other" and text == "%")
    whole, decimals, grouped, scale, point = "", "", False, 0, False
    tail = last
    for index in range(first, len(section)):
        kind, text = section[index]
        if kind == "digits":
            whole, decimals = (whole, decimals + text) if point else (whole + text, decimals)
        elif kind == "other" and text == ".":
            point = True
            tail = max(tail, index)
        elif kind == "other" and text == ",":
            if index > last or (index + 1 < len(section) and section[index + 1] == ("other", ".")):
                scale += 1
                tail = max(tail, index)
            else:
                grouped = True
    value = value * 100**percent / 1000**scale
    exponent = next((text for kind, text in section if kind == "exponent"), "")
    number = _scientific(value, whole, decimals, exponent) if exponent else _fixed(value, whole, decimals, grouped)
    spread = [i for i in range(first, last) if section[i][0] in ("quoted", "escaped") or section[i] == ("other", "-")]
    if spread and not exponent and not point:
        return ("-" if negative else "") + _spread(section, f"{value:.0f}")
    prefix = "".join(_literal(k, t) for k, t in section[:first])
    suffix = "".join(_literal(k, t) for k, t in section[tail + 1 :])
    sign = "-" if negative and re.search(r"[1-9]", number) else ""
    return f"{sign}{prefix}{number}{suffix}".strip()


def _around(section: tuple[Token, ...], placeholders: list[int], body: str) -> str:
    prefix = "".join(_literal(k, t) for k, t in section[: placeholders[0]])
    suffix = "".join(_literal(k, t) for k, t in section[placeholders[-1] + 1 :])
    return f"{prefix}{body}{suffix}".strip()


def _fixed(value: float, whole: str, decimals: str, grouped: bool) -> str:
    import decimal

    places = len(decimals)
    # Excel rounds halves away from zero, on the 15 digits it keeps.
    exact = decimal.Decimal(f"{value:.15g}")
    with decimal.localcontext() as context:
        context.prec = 400
        rounded = exact.quantize(decimal.Decimal(1).scaleb(-places), rounding=decimal.ROUND_HALF_UP)
    text = f"{rounded:,f}" if grouped else f"{rounded:f}"
    left, _, right = text.partition(".")
    least = decimals.count("0")
    while len(right) > least and right.endswith("0"):
        right = right[:-1]
    if left == "0" and "0" not in whole:
        left = ""
    left = left.rjust(whole.count("0"), "0") if not grouped else left
    return f"{left}.{right}" if right else left


def _scientific(value: float, whole: str, decimals: str, exponent: str) -> str:
    text = f"{value:.{len(decimals)}E}"
    mantissa, _, power = text.partition("E")
    digits = str(abs(int(power))).rjust(len(exponent) - 2, "0")
    sign = "-" if int(power) < 0 else "+" if exponent[1] == "+" else ""
    return f"{mantissa}E{sign}{digits}"


def _spread(section: tuple[Token, ...], digits: str) -> str:
    """Digits put between literals, as in 000-0000-0000: filled from the right."""
    out: list[str] = []
    for kind, text in reversed(section):
        if kind == "digits":
            for mark in reversed(text):
                if digits:
                    out.append(digits[-1])
                    digits = digits[:-1]
                elif mark == "0":
                    out.append("0")
        else:
            out.append(_literal(kind, text)[::-1])
    return (digits + "".join(reversed(out))).strip()


def _show_date(serial: float, section: tuple[Token, ...], date1904: bool) -> str:
    if date1904:
        serial += 1462
    if serial < 0 or serial >= 2_958_466:
        return general(serial)
    seconds = round((serial - int(serial)) * 86_400_000) / 1000
    has_second_fraction = any(k == "digits" for k, _ in section)
    moment = dt.datetime(1899, 12, 30) + dt.timedelta(
        days=int(serial) + (1 if serial < 60 else 0), seconds=seconds if has_second_fraction else round(seconds)
    )
    half = any(kind == "ampm" for kind, _ in section)
    parts: list[str] = []
    for index, (kind, text) in enumerate(section):
        if kind == "date":
            parts.append(_date_part(moment, text.lower(), half, _is_minute(section, index)))
        elif kind == "elapsed":
            unit = {"h": 3600, "m": 60, "s": 1}[text[0].lower()]
            parts.append(str(int(round(serial * 86400) // unit)).rjust(len(text), "0"))
        elif kind == "ampm":
            marks = ("上午", "下午") if text[0] == "上" else ("AM", "PM") if len(text) > 3 else ("A", "P")
            parts.append(marks[moment.hour >= 12])
        elif kind == "digits":
            parts.append(f"{moment.microsecond:06d}"[: len(text)])
        else:
            parts.append(_literal(kind, text))
    return "".join(parts).strip()


def _is_minute(section: tuple[Token, ...], index: int) -> bool:
    """`m` is minutes right after hours or right before seconds, months otherwise."""
    units = [(i, t[0].lower()) for i, (k, t) in enumerate(section) if k in ("date", "elapsed")]
    at = next(n for n, (i, _) in enumerate(units) if i == index)
    return units[at][1] == "m" and ((at > 0 and units[at - 1][1] == "h") or (at + 1 < len(units) and units[at + 1][1] == "s"))


_MONTHS = ("January February March April May June July August September October November December").split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def _date_part(moment: dt.datetime, token: str, half: bool, minute: bool) -> str:
    unit, length = token[0], len(token)
    if unit == "m" and minute:
        return f"{moment.minute:02d}" if length > 1 else str(moment.minute)
    if unit in "ye":
        return f"{moment.year % 100:02d}" if length <= 2 and unit == "y" else str(moment.year)
    if unit == "m":
        name = _MONTHS[moment.month - 1]
        return {1: str(moment.month), 2: f"{moment.month:02d}", 3: name[:3], 5: name[0]}.get(length, name)
    if unit == "d":
        name = _DAYS[moment.weekday()]
        return {1: str(moment.day), 2: f"{moment.day:02d}", 3: name[:3]}.get(length, name)
    if unit == "a":
        return ("星期" if length > 3 else "") + "一二三四五六日"[moment.weekday()]
    if unit == "h":
        hour = moment.hour % 12 or 12 if half else moment.hour
        return f"{hour:02d}" if length > 1 else str(hour)
    if unit == "s":
        return f"{moment.second:02d}" if length > 1 else str(moment.second)
    return ""
