"""Colours keep their contrast in both themes; the browser sources need nothing the content policy refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "static/src"
TOKENS = (SOURCES / "css/tokens.css").read_text("utf-8")
COLOURS = {name: pair for name, *pair in re.findall(r"--color-([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", TOKENS)}

GROUNDS = ("bg", "surface", "sunken", "raised")
MEANINGS = ("info", "success", "warning", "danger")
HUES = ("blue", "orange", "green", "purple", "pink", "slate")
TEXT = [
    *((text, ground) for text in ("text", "text-soft", "text-faint", "accent-text", *MEANINGS) for ground in GROUNDS),
    *((text, "hover") for text in ("text", "text-soft", "text-faint")),
    *((text, "accent-soft") for text in ("text", "text-soft", "text-faint", "accent-text")),
    *(("text", f"{meaning}-soft") for meaning in MEANINGS),
    *((meaning, f"{meaning}-soft") for meaning in MEANINGS),
    *((f"tag-{hue}", f"tag-{hue}-soft") for hue in HUES),
    *((f"code-{part}", ground) for part in ("keyword", "string", "number", "name") for ground in ("sunken", "surface")),
    *(("text", ground) for ground in ("mark", "added", "removed", "pressed")),
    ("on-accent", "accent"),
    ("on-accent", "accent-hover"),
    ("on-danger", "danger-solid"),
    ("on-inverse", "inverse"),
    ("danger", "hover"),
]
CONTROLS = [
    *((edge, ground) for edge in ("control", "focus", "accent", "danger") for ground in GROUNDS),
    *((f"tag-{hue}", ground) for hue in HUES for ground in GROUNDS),
    ("info", "pressed"),
    ("success", "pressed"),
    ("danger", "pressed"),
]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_follows_the_definition() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_and_controls_stand_out(theme: int) -> None:
    weak = [
        f"{front} on {ground}: {value:.2f} < {least}"
        for pairs, least in ((TEXT, 4.5), (CONTROLS, 3.0))
        for front, ground in pairs
        if (value := contrast(COLOURS[front][theme], COLOURS[ground][theme])) < least
    ]
    assert weak == []


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_tag_hues_are_six_different_ones(theme: int) -> None:
    assert len({COLOURS[f"tag-{hue}"][theme] for hue in HUES}) == 6


def test_colours_live_in_the_tokens_only() -> None:
    allowed = {"#ffffff"}  # a sheet of paper is white in both themes
    found = {}
    for path in (SOURCES / "css").rglob("*.css"):
        if path.name == "tokens.css":
            continue
        extra = set(re.findall(r"#[0-9a-fA-F]{3,8}\b", path.read_text("utf-8"))) - allowed
        if extra:
            found[path.name] = extra
    assert found == {}


def test_every_token_used_exists() -> None:
    sources = {path: path.read_text("utf-8") for path in (SOURCES / "css").rglob("*.css")}
    defined = set(re.findall(r"(--[\w-]+)\s*:", "\n".join(sources.values())))
    made_by_pdfjs = {"--total-scale-factor", "--font-height", "--scale-x", "--rotate", "--min-font-size"}
    missing = {(path.name, name) for path, text in sources.items() for name in re.findall(r"var\((--[\w-]+)", text) if name not in defined}
    assert {pair for pair in missing if pair[1] not in made_by_pdfjs | {"--table-height", "--reason"}} == set()


def test_motion_stops_for_people_who_ask_for_it() -> None:
    reduced = TOKENS[TOKENS.index("prefers-reduced-motion") :]
    assert re.findall(r"--motion[\w-]*: (\w+);", reduced) == ["0ms", "0ms", "0ms"]


def test_browser_code_neither_evaluates_text_nor_writes_markup() -> None:
    refused = re.compile(r"\beval\(|new Function|\.innerHTML\s*=|insertAdjacentHTML|document\.write\(|setAttribute\(\s*[\"']style")
    found = [path.name for path in (SOURCES / "js").rglob("*.js") if refused.search(path.read_text("utf-8"))]
    assert found == []


def test_both_languages_say_the_same_things() -> None:
    source = (SOURCES / "js/core/i18n.js").read_text("utf-8")
    english, chinese = (
        dict(re.findall(r'"([\w.]+)": "([^"]*)"', part))
        for part in re.findall(r"const (?:en|zh) = {(.*?)^};", source, re.DOTALL | re.MULTILINE)
    )
    assert english.keys() == chinese.keys()
    placeholders = {key: (set(re.findall(r"{\w+}", english[key])), set(re.findall(r"{\w+}", chinese[key]))) for key in english}
    assert {key: both for key, both in placeholders.items() if both[0] != both[1]} == {}
    used = set()
    for path in (SOURCES / "js").rglob("*.js"):
        used |= set(re.findall(r'"((?:ask|error|copy|draft|form|select|toast|upload|pdf|poll|keys)\.\w+)"', path.read_text("utf-8")))
    assert used == english.keys()


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (ROOT / "package-lock.json").read_text("utf-8")
