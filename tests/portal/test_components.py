"""Components draw what their header says, escape what they are given, and need nothing the content policy refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django import forms
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe
from django.utils.translation import override

from apps.portal.styleguide import sample_context, sample_shell
from apps.portal.templatetags import ui

ROOT = Path(__file__).resolve().parents[2]
COMPONENTS = ROOT / "templates/components"
EVIL = "<img src=x onerror=alert(1)>\"'"
ESCAPED = "&lt;img src=x onerror=alert(1)&gt;"
ITEM = {"label": EVIL, "text": EVIL, "name": EVIL, "title": "", "href": "#", "value": EVIL, "note": EVIL, "icon": "folder", "when": EVIL}

# The least that makes each component say what it was given.
CASES: dict[str, dict[str, Any]] = {
    "avatar": {"name": "Ada", "src": EVIL},
    "badge": {"label": EVIL},
    "breadcrumbs": {"items": [ITEM, ITEM]},
    "button": {"label": EVIL, "disabled": True, "reason": EVIL, "attrs": {"data-x": EVIL}},
    "card": {"title": EVIL, "text": EVIL, "href": "#", "meta": [EVIL], "attrs": {}},
    "chip": {"label": EVIL, "remove_href": "#"},
    "citation": {"number": 1, "title": EVIL, "where": EVIL, "href": "#"},
    "code": {"text": EVIL, "language": EVIL},
    "combobox": {"name": "n", "label": EVIL, "options": [{"value": 1, "label": EVIL}], "chosen": []},
    "command_palette": {"commands": [ITEM], "search_url": "/s"},
    "copy_button": {"text": EVIL},
    "dialog": {"id": "d", "title": EVIL, "text": EVIL, "confirm": EVIL},
    "diff": {"lines": [{"kind": "added", "text": EVIL}]},
    "diff_parts": {"parts": [{"kind": "added", "text": EVIL}]},
    "dock_head": {"title": EVIL, "sub": EVIL},
    "drawer": {"id": "d", "title": EVIL, "text": EVIL},
    "empty_state": {"title": EVIL, "text": EVIL, "action": EVIL, "href": "#"},
    "evidence_bar": {"level": 2, "label": EVIL},
    "field": {"name": "n", "label": EVIL, "value": EVIL, "hint": EVIL, "placeholder": EVIL},
    "field_note": {"fid": "n", "error": [EVIL]},
    "file_drop": {"url": "/u", "hint": EVIL, "extra": EVIL, "page": True},
    "icon": {"name": "folder", "label": EVIL},
    "icon_button": {"icon": "folder", "label": EVIL},
    "key_value": {"items": [{"label": EVIL, "value": EVIL, "copyable": True}]},
    "load_more": {"href": "#", "text": EVIL},
    "markdown_view": {"html": EVIL},
    "menu": {"id": "m", "items": [ITEM, {"line": True}, {"title": EVIL}]},
    "menu_item": {"label": EVIL, "note": EVIL},
    "notice": {"title": EVIL, "text": EVIL, "href": "#", "action": EVIL},
    "page_head": {"title": EVIL, "marks": [EVIL], "meta": [EVIL]},
    "pagination": {"text": EVIL, "pages": [{"number": 1, "href": "#"}], "next": "#"},
    "palette_results": {"groups": [], "query": EVIL},
    "panel_tree": {"title": EVIL},
    "pdf_viewer": {"src": EVIL, "highlights": EVIL, "page": 1200},
    "popover": {"id": "p", "title": EVIL, "text": EVIL},
    "progress": {"label": EVIL, "done": 1, "total": 2, "text": EVIL, "note": EVIL},
    "reason_box": {"title": EVIL, "why": EVIL, "next": EVIL, "details": EVIL, "action": EVIL, "href": "#"},
    "segmented": {"label": EVIL, "items": [ITEM]},
    "selection_bar": {"total": EVIL},
    "sheet": {"id": "d", "title": EVIL, "text": EVIL},
    "source_chip": {"title": EVIL, "where": EVIL, "href": "#"},
    "split_button": {"id": "s", "label": EVIL, "items": [ITEM]},
    "status": {"state": "failed", "reason": EVIL},
    "table": {
        "label": EVIL,
        "columns": [{"label": EVIL, "kind": "main"}],
        "rows": [{"id": 1, "label": EVIL, "cells": [{"text": EVIL, "href": "#", "sub": EVIL}]}],
        "selectable": True,
    },
    "table_row": {"columns": [{"label": "n"}], "row": {"id": 1, "label": EVIL, "cells": [EVIL]}},
    "tabs": {"label": EVIL, "items": [ITEM]},
    "tag": {"label": EVIL},
    "timeline": {"items": [{**ITEM, "who": EVIL}]},
    "toast": {"text": EVIL, "detail": EVIL},
    "tooltip": {"text": EVIL},
    "tree": {"label": EVIL, "nodes": [{"label": EVIL, "href": "#", "open": True, "children": [ITEM]}]},
    "tree_nodes": {"nodes": [ITEM]},
    "waterfall": {"label": EVIL, "spans": [{"name": EVIL, "state": "done", "start": 0.5, "length": 12.25, "time": EVIL}]},
}
NO_TEXT = {"shortcut_overlay", "skeleton", "spinner", "theme_switch", "upload_tray"}  # their text is their own
SHELL = {"shell_account", "shell_phone_menu", "shell_side"}  # drawn with the frame below
OTHER = {"_error_fragment", "form_field"}


def names() -> list[str]:
    return sorted(path.stem for path in COMPONENTS.glob("*.html"))


def draw(component: str, **parameters: Any) -> str:
    return render_to_string(f"components/{component}.html", parameters)


def test_every_component_has_a_case() -> None:
    assert set(names()) == set(CASES) | NO_TEXT | SHELL | OTHER


@pytest.mark.parametrize("name", sorted(CASES))
def test_component_shows_and_escapes_what_it_is_given(name: str) -> None:
    html = draw(name, **CASES[name])
    assert ESCAPED in html
    assert "<img src=x" not in html


@pytest.mark.parametrize("name", sorted(NO_TEXT))
def test_component_without_parameters_draws(name: str) -> None:
    assert "<" in draw(name)


@pytest.mark.parametrize("name", names())
def test_header_documents_every_parameter(name: str) -> None:
    source = (COMPONENTS / f"{name}.html").read_text("utf-8")
    header, body = re.match(r"{% comment %}(.*?){% endcomment %}(.*)", source, re.DOTALL).groups()  # type: ignore[union-attr]
    bound = {"forloop", "csrf_token", "slot", "attrs", *re.findall(r"\bas (\w+) ?%}", body), *re.findall(r"\bwith (\w+)=", body)}
    for loop in re.findall(r"{% for (.*?) in ", body):
        bound |= {part.strip() for part in loop.split(",")}
    used = {match.split(".")[0].split("|")[0] for match in re.findall(r"{{ ?([a-z_][\w.|]*)", body)}
    used |= set(re.findall(r"{% (?:el)?if (?:not )?([a-z_]\w*)", body))
    inherited = {"drawer", "sheet", "icon_button"}  # "as in ..."
    undocumented = {word for word in used - bound if not re.search(rf"\b{word}\b", header)}
    assert undocumented == set() or name in inherited


# --- what single components promise ---------------------------------------------------------------------------------------


def test_button_becomes_a_link_only_while_it_may_be_followed() -> None:
    assert draw("button", label="Go", href="/x").startswith('<a href="/x"')
    html = draw("button", label="Go", href="/x", disabled=True, reason="Ask an admin")
    assert "<a " not in html and 'aria-disabled="true"' in html and 'data-tooltip="Ask an admin"' in html


def test_submit_button_carries_its_busy_mark() -> None:
    assert "button__busy" in draw("button", label="Save", type="submit")
    assert "button__busy" not in draw("button", label="Save")


def test_an_unknown_value_is_said_to_be_unknown_and_zero_is_zero() -> None:
    with override("en"):
        html = draw("key_value", items=[{"label": "Chunks", "value": None}, {"label": "Size", "value": 0}])
    assert html.count("unknown</span>") == 1
    assert "<dd>0</dd>" in html


def test_tabs_leave_an_unknown_count_out_and_show_zero() -> None:
    html = draw("tabs", label="Base", items=[{"label": "A", "href": "#", "count": None}, {"label": "B", "href": "#", "count": 0}])
    assert html.count("tabs__count") == 1
    assert '<span class="tabs__count">0</span>' in html


def test_field_with_error_points_at_it_and_keeps_the_value() -> None:
    html = draw("field", name="title", label="Title", value="typed", error=["Too long.", "Not unique."], hint="Short")
    assert 'value="typed"' in html
    assert 'aria-invalid="true" aria-describedby="f-title-note"' in html
    assert html.index('id="f-title-note"') < html.index("Too long.") < html.index("Not unique.")
    assert "Short" not in html


def test_select_marks_the_value_of_another_type() -> None:
    html = draw("field", name="n", label="N", type="select", value="2", options=[(1, "one"), (2, "two")])
    assert '<option value="2" selected>two</option>' in html
    assert html.count("selected") == 1


def test_password_is_never_sent_back() -> None:
    class Form(forms.Form):
        password = forms.CharField(widget=forms.PasswordInput(render_value=True), label="Password")

    html = draw("form_field", field=Form({"password": "hunter2"})["password"])
    assert "hunter2" not in html
    assert 'data-reveal="f-password"' in html


def test_form_field_draws_a_bound_field_with_its_errors() -> None:
    class Form(forms.Form):
        name = forms.CharField(label="Name", max_length=3, help_text="Three letters")
        kind = forms.ChoiceField(label="Kind", choices=[("a", "Alpha"), ("Group", [("b", "Beta")])])
        on = forms.BooleanField(label="On", required=False)

    form = Form({"name": EVIL, "kind": "b", "on": "1"})
    assert not form.is_valid()
    name, kind, on = (draw("form_field", field=form[key]) for key in ("name", "kind", "on"))
    assert ESCAPED in name and 'aria-invalid="true"' in name
    assert '<option value="b" selected>Beta</option>' in kind
    assert 'type="checkbox"' in on and " checked" in on


def test_progress_without_a_total_is_indeterminate() -> None:
    assert " value=" not in draw("progress", label="x")
    assert 'value="994" max="1600"' in draw("progress", label="x", done=994, total=1600)


def test_numbers_in_attributes_are_not_localised() -> None:
    with override("en"):
        assert 'data-page="1200"' in draw("pdf_viewer", src="/a.pdf", page=1200)
        assert 'x="0.5" y="2" width="12.25"' in draw("waterfall", **CASES["waterfall"])


def test_combobox_options_survive_as_json() -> None:
    html = draw("combobox", name="n", label="L", options=[{"value": 1, "label": EVIL}], chosen=None)
    raw = re.search(r'data-options="([^"]*)"', html).group(1)  # type: ignore[union-attr]
    import html as html_module

    assert json.loads(html_module.unescape(raw)) == {"options": [{"value": 1, "label": EVIL}], "chosen": []}


def test_deleted_source_is_no_link() -> None:
    html = draw("source_chip", title="a.pdf", href="/d/1", gone=True)
    assert "<a " not in html and "source--gone" in html


STATES = "pending processing finalizing completed failed cancelled draft deleting stalled".split()


def test_every_state_has_an_icon_and_a_word_of_its_own() -> None:
    with override("en"):
        drawn = [draw("status", state=state) for state in [*STATES, "nonsense"]]
    words = [re.search(r'status__word">([^<]+)<', html).group(1) for html in drawn]  # type: ignore[union-attr]
    assert len(set(words)) == len(words)
    assert all("<use href=" in html for html in drawn)
    assert words[-1] == "Unknown"


# --- tags -----------------------------------------------------------------------------------------------------------------


def test_ui_tag_turns_prefixed_parameters_into_attributes() -> None:
    html = Template(
        '{% load ui %}{% ui "button" label="Go" hx_post="/x?a=1&b=2" data_poll_interval=5 on_click="pick" bind_disabled="busy" %}'
    ).render(Context())
    for attribute in ('hx-post="/x?a=1&amp;b=2"', 'data-poll-interval="5"', 'x-on:click="pick"', 'x-bind:disabled="busy"'):
        assert attribute in html


def test_ui_tag_hides_the_page_from_the_component() -> None:
    page = Context({"label": "of the page", "icon": "trash"})
    assert "of the page" not in Template('{% load ui %}{% ui "button" %}').render(page)


def test_block_tag_keeps_markup_and_escapes_values_in_it() -> None:
    html = Template('{% load ui %}{% uiblock "panel_tree" title="T" %}<b>{{ evil }}</b>{% enduiblock %}').render(Context({"evil": EVIL}))
    assert f"<b>{ESCAPED}" in html


@pytest.mark.parametrize("name", ["onclick", "style", "hx-on:click", "x-html"])
def test_attributes_that_would_run_code_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not allowed"):
        ui.attrs({name: "x"})


@pytest.mark.parametrize(("name", "expected"), [("林一舟", "林"), ("ada", "A"), (" (x)", "X"), ("", "?"), (None, "?")])
def test_initial(name: str | None, expected: str) -> None:
    assert ui.initial(name) == expected


@pytest.mark.parametrize(("part", "whole", "expected"), [(1, 3, 33), (5, 3, 100), (None, 3, None), (1, 0, None)])
def test_percent_of(part: int | None, whole: int, expected: int | None) -> None:
    assert ui.percent_of(part, whole) == expected


# --- pages ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["zh-hans", "en"])
def test_style_guide_draws_in_both_languages(language: str) -> None:
    with override(language):
        html = render_to_string("portal/styleguide.html", sample_context(language))
    assert f'<html lang="{"zh-Hans" if language == "zh-hans" else "en"}" data-theme="system">' in html
    for name in sorted(set(CASES) - {"panel_tree", "page_head", "dock_head", "pdf_viewer", "palette_results", "table_row", "field_note"}):
        assert_part_of(name, html)


def assert_part_of(name: str, html: str) -> None:
    classes = re.findall(r'class="([a-z][\w-]*)', (COMPONENTS / f"{name}.html").read_text("utf-8"))
    assert not classes or classes[0] in html, f"the style guide does not show {name}"


def test_frame_escapes_names_and_shows_what_it_knows() -> None:
    shell = sample_shell("en")
    shell["space"]["name"] = shell["user"]["name"] = shell["nav"][0]["label"] = shell["recent_bases"][0]["name"] = EVIL
    html = render_to_string("base_app.html", {"shell": shell, "crumbs": [{"label": EVIL}]})
    assert "<img src=x" not in html
    assert html.count("bottom__link") == 4
    assert "No background process is running" in html


def test_frame_draws_with_an_empty_shell() -> None:
    html = render_to_string("base_app.html", {"shell": {}})
    assert 'id="dock"' in html and "notice" not in html


def test_ids_in_the_frame_and_the_style_guide_are_unique() -> None:
    for html in (
        render_to_string("base_app.html", {"shell": sample_shell("en")}),
        render_to_string("portal/styleguide.html", sample_context("en")),
    ):
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert sorted({each for each in ids if ids.count(each) > 1}) == []


# --- icons ----------------------------------------------------------------------------------------------------------------

ICON_USE = re.compile(r"""(?:{% icon |\bicon(?:_end)?=|components/icon\.html" with name=|\baction_icon=)["']([a-z][a-z-]*)["']""")


def test_every_icon_used_is_in_the_sprite_list() -> None:
    known = set(json.loads((ROOT / "static/src/icons.json").read_text("utf-8")))
    unknown = {}
    for path in [*(ROOT / "templates").rglob("*.html")]:
        source = re.sub(r"{% comment %}.*?{% endcomment %}", "", path.read_text("utf-8"), flags=re.DOTALL)
        for tag in re.findall(r"{%[^%]*%}", source):
            for name in ICON_USE.findall(tag):
                if name not in known:
                    unknown[name] = path.name
    for path in (ROOT / "static/src/js").rglob("*.js"):
        source = path.read_text("utf-8")
        table = re.search(r"const ICONS = {(.*?)}", source, re.DOTALL)
        for name in [*re.findall(r'icon\("([a-z-]+)"', source), *re.findall(r': "([a-z-]+)"', table.group(1) if table else "")]:
            if name not in known:
                unknown[name] = path.name
    assert unknown == {}


def called(component: str, **values: Any) -> str:
    """As pages draw components, which keeps some drawings."""
    words = " ".join(f"{name}={name}" for name in values)
    return Template(f'{{% load ui %}}{{% ui "{component}" {words} %}}').render(Context(values))


def test_kept_drawings_are_told_apart_by_language_and_by_what_is_safe() -> None:
    with override("en"):
        english = called("status", state="completed")
    with override("zh-hans"):
        chinese = called("status", state="completed")
    assert "Ready" in english and "Ready" not in chinese
    for _twice in range(2):
        assert "<b>x</b>" in called("badge", label=mark_safe("<b>x</b>"))
        assert "&lt;b&gt;x&lt;/b&gt;" in called("badge", label="<b>x</b>")
    assert "icon--spin" in called("icon", name="spinner", spin=True) and "icon--spin" not in called("icon", name="spinner")


def test_kept_drawings_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui, "KEPT_MOST", 3)
    ui._kept.clear()
    for number in range(8):
        assert f">n{number}<" in called("badge", label=f"n{number}")
    assert 0 < len(ui._kept) <= 3
