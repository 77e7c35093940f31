"""Heading paths, sections and their merging, section lines by wording, the profile."""

from __future__ import annotations

import pytest

from apps.ingestion.chunking.headings import Outline, text_marks
from apps.ingestion.chunking.markdown_blocks import markdown_blocks
from apps.ingestion.chunking.profile import detect_languages, document_profile
from apps.ingestion.chunking.service import chunk, config_from_dict
from apps.ingestion.plugins.protocol import ChunkResult, ParsedDocument


def run(text: str, **settings: object) -> ChunkResult:
    return chunk(ParsedDocument(text, markdown_blocks(text)), config_from_dict(settings))


def test_a_heading_path_names_every_level_and_keeps_numbers() -> None:
    text = (
        "# 合同\n\n## 第三章 付款\n\n### 第3.2条 期限\n\n"
        + "买方应在三十日内付款。" * 20
        + "\n\n### 第3.3条 违约\n\n"
        + "逾期按日计息。" * 20
    )
    pieces = run(text, strategy="heading", chunk_size=300, chunk_overlap=0).pieces
    assert [piece.heading_path for piece in pieces] == [
        ("合同", "第三章 付款", "第3.2条 期限"),
        ("合同", "第三章 付款", "第3.3条 违约"),
    ]


@pytest.mark.parametrize("strategy", ["heading", "heuristic", "legacy"])
def test_no_piece_ends_with_a_heading(strategy: str) -> None:
    text = "".join(f"{'#' * (n % 4 + 1)} Heading {n}\n\n{'Some words here. ' * (n % 9)}\n\n" for n in range(120)) + "End."
    for piece in run(text, strategy=strategy, chunk_size=200, chunk_overlap=40).pieces:
        assert not piece.content.splitlines()[-1].startswith("#"), piece.content


def test_a_heading_takes_the_beginning_of_a_long_paragraph_along() -> None:
    text = "## A heading of some length\n\n" + "word " * 99 + "end"
    pieces = run(text, strategy="legacy", chunk_size=500, chunk_overlap=0).pieces
    assert pieces[0].content.startswith("## A heading of some length\n\nword word")
    assert max(len(piece.content) for piece in pieces) <= 500


def test_small_sections_go_together_only_under_the_same_parent() -> None:
    text = "# A\n\n## A1\n\nOne.\n\n## A2\n\nTwo.\n\n# B\n\n## B1\n\nThree.\n"
    pieces = run(text, strategy="heading", chunk_size=400, chunk_overlap=0).pieces
    assert [piece.content for piece in pieces] == ["# A\n\n## A1\n\nOne.\n\n## A2\n\nTwo.", "# B\n\n## B1\n\nThree."]
    assert [piece.heading_path for piece in pieces] == [("A",), ("B", "B1")]


def test_large_sections_are_split_and_keep_their_path() -> None:
    text = "# Doc\n\n## Long\n\n" + "A sentence of words. " * 60 + "\n\n## Short\n\n" + "x. " * 80
    pieces = run(text, strategy="heading", chunk_size=300, chunk_overlap=0).pieces
    assert [piece.heading_path[-1] for piece in pieces] == ["Long"] * 5 + ["Short"]


def test_worded_chapters_make_sections_without_markdown() -> None:
    text = "第一章 总则\n" + "本制度适用于全体员工。" * 12 + "\n第二章 考勤\n" + "员工应当打卡。" * 18 + "\n附录A 表格\n" + "见下页。" * 30
    result = run(text, strategy="auto", chunk_size=200, chunk_overlap=0)
    assert result.selected_tier == "heuristic"
    assert [piece.heading_path for piece in result.pieces] == [("第一章 总则",), ("第二章 考勤",), ("附录A 表格",)]
    assert [item.tier for item in result.rejected] == ["heading"]


def test_languages_choose_whose_chapter_words_count() -> None:
    text = "Kapitel 1\n\n" + "Ein Satz. " * 30 + "\n\nKapitel 2\n\n" + "Noch ein Satz. " * 20
    german = run(text, strategy="heuristic", chunk_size=400, languages=["de"], chunk_overlap=0)
    chinese = run(text, strategy="heuristic", chunk_size=400, languages=["zh"], chunk_overlap=0)
    assert [piece.heading_path for piece in german.pieces] == [("Kapitel 1",), ("Kapitel 2",)]
    assert {piece.heading_path for piece in chinese.pieces} == {()}


@pytest.mark.parametrize(
    "line,kind",
    [
        ("第一章 总则", "zh"),
        ("第十二节：安全", "zh"),
        ("第3.2条 期限", "zh"),
        ("附录A 术语", "zh"),
        ("Chapter 3: Results", "en"),
        ("APPENDIX B", "en"),
        ("Kapitel 4", "de"),
        ("§ 12 Haftung", "de"),
        ("1.2.3 Scope", "numbered"),
        ("一、概述", "numbered"),
        ("SAFETY INSTRUCTIONS", "caps"),
        ("=====", "rule"),
        ("This is a sentence.", None),
        ("第一次世界大战。", None),
        ("Part of the plan was wrong", None),
        ("2024", None),
        ("3.5 V", "numbered"),
    ],
)
def test_section_lines(line: str, kind: str | None) -> None:
    text = f"Before it.\n\n{line}\n\nAfter it."
    assert [mark.kind for mark in text_marks(text, [])] == ([kind] if kind else [])


def test_numbered_lines_below_each_other_are_a_list() -> None:
    assert text_marks("1. apples\n2. pears\n3. plums", []) == []


def test_a_long_article_is_named_by_its_number() -> None:
    text = "第三条 " + "员工应当遵守本规定的各项要求" * 10 + "。\n"
    assert [mark.title for mark in text_marks(text, [])] == ["第三条"]


def test_an_outline_without_headings_has_no_paths() -> None:
    assert Outline.build("text", []).path(0, 4) == ()


def test_the_profile_has_exactly_the_fields_of_the_contract() -> None:
    text = (
        "# 标题\n\n## One\n\n## Two\n\nChapter 1\n\n第一章 总则\n\nKapitel 2\n\n1.2 Scope\n\nSAFETY FIRST\n\n====\n\f\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n"
    )
    profile = document_profile(text)
    assert set(profile) == {
        "total_chars", "total_lines", "avg_line_len", "std_line_len", "md_heading_counts", "md_heading_total", "numbered_section_count",
        "all_caps_short_line_count", "blank_paragraph_breaks", "form_feed_count", "visual_sep_count", "german_chapter_count",
        "english_chapter_count", "chinese_chapter_count", "repeated_footer_count", "has_tables", "has_code", "code_ratio", "detected_langs",
    }  # fmt: skip
    assert profile["total_chars"] == len(text)
    assert profile["total_lines"] == text.count("\n") + 1
    assert profile["md_heading_counts"] == {"1": 1, "2": 2}
    assert profile["md_heading_total"] == 3
    counts = {name: value for name, value in profile.items() if name.endswith("_count") and name != "repeated_footer_count"}
    assert set(counts.values()) == {1}
    assert profile["has_tables"] is True
    assert profile["has_code"] is True
    assert profile["code_ratio"] == round(len("```\ncode\n```") / len(text), 4)


def test_repeated_page_lines_are_counted() -> None:
    pages = "\f".join(f"ACME manual\n\nText of page {n} is here.\n\nPage {n} of 5" for n in range(1, 6))
    assert document_profile(pages)["repeated_footer_count"] == 2


@pytest.mark.parametrize(
    "text,codes",
    [
        ("这是一个关于系统配置的说明。", ["zh"]),
        ("The cat sat on the mat and it was happy.", ["en"]),
        ("Der Hund ist auf dem Tisch und das ist nicht gut für den Tisch.", ["de"]),
        ("システムの設定について説明します。", ["ja"]),
        ("12345 !!", []),
    ],
)
def test_detected_languages(text: str, codes: list[str]) -> None:
    assert detect_languages(text) == codes
