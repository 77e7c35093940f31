"""What the content security policy would block, and what would let unescaped text through."""

from __future__ import annotations

import re

from tests.inventory.source import ROOT, assert_only

# template -> why text in it may pass unescaped
UNESCAPED: dict[str, str] = {}

INLINE = {
    "an inline script": re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")[^>]*>", re.IGNORECASE),
    "a style element": re.compile(r"<style\b", re.IGNORECASE),
    "a style attribute": re.compile(r"<[a-z][^>]*\sstyle=", re.IGNORECASE),
    "an event attribute": re.compile(r"<[a-z][^>]*\son[a-z]+=[\"']", re.IGNORECASE),
}


def templates() -> list[str]:
    found = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "apps").rglob("templates/**/*.html")]
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


def test_no_template_needs_what_the_content_security_policy_refuses() -> None:
    found = [
        f"{path}: {what}" for path in templates() for what, pattern in INLINE.items() if pattern.search((ROOT / path).read_text("utf-8"))
    ]
    assert found == []


def test_text_is_escaped_unless_listed() -> None:
    raw = re.compile(r"\|\s*safe\b|autoescape\s+off|\|\s*safeseq\b")
    found = (path for path in templates() if raw.search((ROOT / path).read_text("utf-8")))
    assert_only(found, UNESCAPED, "a template passes text unescaped")


def test_what_is_swapped_in_names_its_place() -> None:
    """htmx takes an unnamed target from the nearest element around that names one: a list of suggestions then replaces the page they stand in."""
    request = re.compile(r"<[a-z][^<>]*?\shx-(?:get|post|put|delete)=(?:[^<>]|%}|{%)*?>")
    silent = [
        f"{path}: {tag[:90]}"
        for path in templates()
        for tag in request.findall((ROOT / path).read_text("utf-8"))
        if "hx-target" not in tag and 'hx-swap="none"' not in tag
    ]
    assert silent == []
