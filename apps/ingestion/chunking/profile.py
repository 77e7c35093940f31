"""What kind of text this is: counts that the strategies decide by and the preview shows."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from apps.ingestion.chunking import headings as marks
from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.plugins.protocol import Block

_BLANK_BREAK = re.compile(r"\n[^\S\n]*\n\s*")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_KANA = re.compile(r"[\u3040-\u30ff]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]+")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]+")
_LATIN = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿ]+")
_GERMAN = frozenset("der die das und ist nicht ein eine mit für von auf dem den des wird werden sich auch oder nach bei zu im".split())
_ENGLISH = frozenset("the and of to in is that for with are be this on as by or from at it not an".split())
_NUMBERS = re.compile(r"\d+")
_PAGE_LINE = re.compile(r"(?:第\s*#\s*页|page\s*#|seite\s*#|#\s*/\s*#|-\s*#\s*-)", re.IGNORECASE)
_SAMPLE = 200_000


def detect_languages(text: str) -> list[str]:
    """Language codes present in the text, the most used first (zh, en, de, ja, ko, ru); a tenth of the letters counts as present."""
    sample = text[:_SAMPLE]
    sizes: dict[str, float] = {
        "zh": sum(map(len, _HAN.findall(sample))),
        "ja": sum(map(len, _KANA.findall(sample))),
        "ko": sum(map(len, _HANGUL.findall(sample))),
        "ru": sum(map(len, _CYRILLIC.findall(sample))),
    }
    if sizes["ja"] > sizes["zh"] * 0.1:
        sizes["ja"] += sizes["zh"]
        sizes["zh"] = 0
    words = _LATIN.findall(sample)
    latin = sum(map(len, words)) / 2  # a CJK character says about as much as two Latin letters
    lowered = Counter(word.lower() for word in words)
    german = sum(lowered[word] for word in _GERMAN)
    english = sum(lowered[word] for word in _ENGLISH)
    share = german / (german + english) if german + english else 0.0
    sizes["de"] = latin * share if share >= 0.2 else 0
    sizes["en"] = latin * (1 - share) if share <= 0.8 else 0
    total = sum(sizes.values())
    return [code for code, size in sorted(sizes.items(), key=lambda kv: -kv[1]) if total and size / total >= 0.1]


def _repeated_footers(text: str, lines: Sequence[str]) -> int:
    """How many different lines stand at the edges of pages three times or more, page numbers aside."""
    edges: list[str] = []
    if "\f" in text:
        for page in text.split("\f"):
            inner = [line.strip() for line in page.splitlines() if line.strip()]
            edges.extend({inner[0], inner[-1]} if inner else ())
    else:
        edges = [line.strip() for line in lines if len(line) <= 60 and _PAGE_LINE.search(_NUMBERS.sub("#", line))]
    counts = Counter(_NUMBERS.sub("#", line) for line in edges if len(line) <= 100)
    return sum(1 for times in counts.values() if times >= 3)


def document_profile(text: str, blocks: Sequence[Block] | None = None) -> dict[str, Any]:
    """The profile of contract section 11, every field present.

    Units: lengths in characters; `code_ratio` 0..1 of all characters; `md_heading_counts` maps the level as a string to a count.
    """
    blocks = markdown_blocks(text) if blocks is None else blocks
    lines = text.split("\n")
    lengths = [len(line) for line in lines]
    levels = Counter(str(block.level or 1) for block in blocks if block.kind == "heading")
    found = Counter(mark.kind for mark in marks.text_marks(text, blocks))
    code = sum(block.end - block.start for block in blocks if block.kind == "code")
    return {
        "total_chars": len(text),
        "total_lines": len(lines) if text else 0,
        "avg_line_len": round(statistics.fmean(lengths), 2),
        "std_line_len": round(statistics.pstdev(lengths), 2),
        "md_heading_counts": dict(sorted(levels.items())),
        "md_heading_total": sum(levels.values()),
        "numbered_section_count": found["numbered"],
        "all_caps_short_line_count": found["caps"],
        "blank_paragraph_breaks": len(_BLANK_BREAK.findall(text.strip())),
        "form_feed_count": text.count("\f"),
        "visual_sep_count": found["rule"],
        "german_chapter_count": found["de"],
        "english_chapter_count": found["en"],
        "chinese_chapter_count": found["zh"],
        "repeated_footer_count": _repeated_footers(text, lines),
        "has_tables": any(block.kind == "table" for block in blocks),
        "has_code": code > 0,
        "code_ratio": round(code / len(text), 4) if text else 0.0,
        "detected_langs": detect_languages(text),
    }
