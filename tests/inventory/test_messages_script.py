"""The translation script sees the texts of code and templates, and says which are missing or broken."""

from __future__ import annotations

import gettext
import subprocess
import sys
from pathlib import Path

import pytest

from tests.inventory.source import ROOT

TEMPLATE = """{% load i18n %}
<div>
    <h1 title="it's {{ name }}">{% translate "Documents" %}</h1>
  {% if a %}
        {% blocktranslate count n=rows|length trimmed %}
          {{ n }} row
        {% plural %}
          {{ n }} rows
        {% endblocktranslate %}
     {% endif %}
  <p>{% translate "Open" context "verb" %}{% include "x.html" with label=_("Close") %}</p>
</div>
"""
CODE = """from django.utils.translation import gettext_lazy as _, ngettext

TITLE = _("Upload %(name)s")


def many(n: int) -> str:
    return ngettext("one file", "%d files", n)
"""
HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n"Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
COMPLETE = """msgid "Documents"
msgstr "文档"

msgid "%(n)s row"
msgid_plural "%(n)s rows"
msgstr[0] "%(n)s 行"

msgctxt "verb"
msgid "Open"
msgstr "打开"

msgid "Close"
msgstr "关闭"

msgid "Upload %(name)s"
msgstr "上传 %(name)s"

msgid "one file"
msgid_plural "%d files"
msgstr[0] "%d 个文件"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("apps/x", "kbportal", "templates", "scripts", "locale/zh_Hans/LC_MESSAGES"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts/messages.py").write_text((ROOT / "scripts/messages.py").read_text("utf-8"), "utf-8")
    (tmp_path / "templates/page.html").write_text(TEMPLATE, "utf-8")
    (tmp_path / "apps/x/a.py").write_text(CODE, "utf-8")
    return tmp_path


def run(tree: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "scripts/messages.py", command], cwd=tree, capture_output=True, text=True, timeout=60)


def write(tree: Path, entries: str) -> None:
    (tree / "locale/zh_Hans/LC_MESSAGES/django.po").write_text(HEADER + entries, "utf-8")


def test_a_complete_catalogue_passes_and_compiles(tree: Path) -> None:
    write(tree, COMPLETE)
    checked = run(tree, "check")
    assert (checked.returncode, checked.stdout) == (0, "6 texts, 0 problems\n"), checked.stderr
    assert run(tree, "compile").returncode == 0
    with (tree / "locale/zh_Hans/LC_MESSAGES/django.mo").open("rb") as file:
        catalogue = gettext.GNUTranslations(file)
    assert catalogue.gettext("Documents") == "文档"
    assert catalogue.pgettext("verb", "Open") == "打开"
    assert catalogue.ngettext("one file", "%d files", 5) == "%d 个文件"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('msgstr "文档"', 'msgstr ""', "zh_Hans: 'Documents' is not translated (templates/page.html)"),
        ('msgid "Close"\nmsgstr "关闭"\n', "", "zh_Hans: no entry for 'Close' (templates/page.html)"),
        ("上传 %(name)s", "上传 %(nome)s", "zh_Hans: 'Upload %(name)s' uses %(nome)s, which the text does not have (apps/x/a.py)"),
        ('msgid "Documents"', '#, fuzzy\nmsgid "Documents"', "zh_Hans: 'Documents' is marked fuzzy (templates/page.html)"),
    ],
)
def test_what_is_missing_or_broken_is_named(tree: Path, old: str, new: str, said: str) -> None:
    assert old in COMPLETE
    write(tree, COMPLETE.replace(old, new))
    checked = run(tree, "check")
    assert (checked.returncode, checked.stdout.splitlines()) == (1, [said, "6 texts, 1 problems"]), checked.stderr


def test_extract_keeps_translations_and_adds_what_is_new(tree: Path) -> None:
    write(tree, 'msgid "Documents"\nmsgstr "文档"\n\nmsgid "Gone"\nmsgstr "没了"\n')
    assert run(tree, "extract").returncode == 0
    text = (tree / "locale/zh_Hans/LC_MESSAGES/django.po").read_text("utf-8")
    assert 'msgstr "文档"' in text
    assert 'msgid "Upload %(name)s"\nmsgstr ""' in text
    assert "Gone" not in text
