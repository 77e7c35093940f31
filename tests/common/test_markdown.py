"""Markdown that may stand in a page, and everything that may not."""

from __future__ import annotations

import pytest

from apps.common.markdown import render


def test_tables_tasks_code_and_footnotes_are_drawn() -> None:
    html = render(
        "| a | b |\n|---|---|\n| 1 | `x` |\n\n- [ ] open\n- [x] done\n\n```python\nif x:\n    pass\n```\n\nnote[^1]\n\n[^1]: below\n"
    )
    assert '<div class="table-scroll"><table>' in html and "<td><code>x</code></td>" in html
    assert html.count('type="checkbox" disabled=""') == 2 and html.count('checked=""') == 1
    assert '<span class="k">if</span>' in html
    assert 'href="#md-fn:1"' in html and 'id="md-fn:1"' in html


def test_formulas_and_diagrams_are_left_for_the_browser() -> None:
    html = render("$a < b$\n\n$$\nx^2\n$$\n\n```mermaid\ngraph TD; A-->B\n```\n")
    assert '<span class="arithmatex">\\(a &lt; b\\)</span>' in html
    assert '<div class="arithmatex">\\[\nx^2\n\\]</div>' in html
    assert '<pre class="mermaid">graph TD; A--&gt;B</pre>' in html


def test_headings_keep_chinese_ids() -> None:
    assert render("## 校准 周期") == '<h2 id="md-校准-周期">校准 周期</h2>'


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<ScRiPt src=//x>alert(1)</sCrIpT>",
        "<img src=x onerror=alert(1)>",
        "<svg onload=alert(1)><script>alert(1)</script></svg>",
        "<math><mi xlink:href='javascript:alert(1)'>x</mi></math>",
        "[x](javascript:alert(1))",
        "[x](jAvAsCrIpT&#58;alert(1))",
        "<a href='&#106;avascript:alert(1)'>x</a>",
        "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
        "![x](javascript:alert(1))",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
        "<object data=x></object><embed src=x>",
        "<form action=//evil><button>go</button></form>",
        "<div style='position:fixed' onclick='alert(1)'>x</div>",
        "<style>*{display:none}</style>",
        "`</code><script>alert(1)</script>`",
        "```html\n<script>alert(1)</script>\n```",
        "| <script>alert(1)</script> |\n|---|\n| x |",
        "[x]: javascript:alert(1)\n\n[x]",
        "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
        "$<img src=x onerror=alert(1)>$",
    ],
)
def test_nothing_runs(source: str) -> None:
    html = render(source).lower()
    for tag in (
        "<script",
        "<svg",
        "<math",
        "<iframe",
        "<object",
        "<embed",
        "<form",
        "<button",
        "<style",
        'onerror=alert(1)>"',
        " onclick=",
    ):
        assert tag not in html
    for live in ('href="javascript', "href='javascript", 'src="javascript', 'href="data:', "onerror=&quot;", "style="):
        assert live not in html
    assert "<img src=x" not in html and '<img src="x"' not in html


def test_nothing_of_the_page_can_be_posed_as() -> None:
    html = render(
        '<div id="dialog-slot" class="dialog toast highlight">x</div><input type="password" name="pw"><a href="/s/1/leave" id="main">go</a>'
    )
    assert 'id="dialog-slot"' not in html and 'id="main"' not in html
    assert 'class="highlight"' in html and "toast" not in html
    assert "password" not in html and "name=" not in html
    assert "/s/1/leave" not in html


def test_reading_calls_no_other_site() -> None:
    html = render("![p](https://evil.example/p.png) <img src='//evil.example/q.png'> ![d](data:image/png;base64,AAAA)")
    assert "evil.example" not in html
    assert 'src="data:image/png;base64,AAAA"' in html


def test_links_leave_without_a_trace() -> None:
    assert render("[y](https://a.example/b?c=1)") == '<p><a href="https://a.example/b?c=1" rel="noopener noreferrer nofollow">y</a></p>'
