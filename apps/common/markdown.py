"""Markdown into HTML that may stand in a page: the one place where text of documents becomes markup.

    render("# Title\\n\\n- [ ] task")      safe HTML for components/markdown_view.html

SECURITY: whatever the renderer gives is sanitised afterwards, always. No script, style, form, frame or event attribute comes through;
links go to http, https and mailto, and to pages of the portal only where they are given along; pictures only if they are in the text
itself (data URIs) or given along, so that reading calls no other site;
ids carry a prefix and classes come from a closed list, so that a document cannot pose as a part of the portal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.utils.safestring import SafeString, mark_safe

MAX_CHARS = 1_000_000
ID_PREFIX = "md-"

_TAGS = frozenset(
    "a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img input ins "
    "kbd li mark ol p pre q rp rt ruby s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var".split()
)
_ATTRIBUTES: dict[str, set[str]] = {
    "a": {"href", "title", "id"},
    "abbr": {"title"},
    "details": {"open"},
    "img": {"src", "alt", "title", "width", "height"},
    "input": {"type", "checked", "disabled"},
    "li": {"id"},
    "ol": {"start"},
    "sup": {"id"},
    "td": {"colspan", "rowspan", "align"},
    "th": {"colspan", "rowspan", "align", "scope"},
    **{f"h{level}": {"id"} for level in range(1, 7)},
}
_PYGMENTS = frozenset(
    "k kc kd kn kp kr kt n na nb nc nd ne nf ni nl nn nt nv no nx bp s s1 s2 sa sb sc sd se sh si sr ss sx dl m mb mf mh mi mo il o ow p w "
    "c c1 ch cm cp cs err g gd ge gh gi gp gs gu l ld x py pm fm vc vg vi vm".split()
)
_CLASSES: dict[str, set[str]] = {
    "a": {"footnote-ref", "footnote-backref", "wiki-link", "wiki-link--broken", "cite", "cite--weak"},
    "div": {"highlight", "arithmatex", "footnote"},
    "span": {"arithmatex", *_PYGMENTS},
    "pre": {"mermaid"},
    "li": {"task-list-item"},
    "ul": {"task-list"},
}
_PICTURE = re.compile(r"data:image/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/=\s]+\Z", re.IGNORECASE)
_WEB = re.compile(r"(?:https?|mailto):", re.IGNORECASE)


def render(text: str, pictures: Mapping[str, str] | None = None, links: Mapping[str, str] | None = None) -> SafeString:
    """Sanitised HTML of a Markdown text: tables, tasks, footnotes, fenced code with colours, formulas, diagrams.

    `pictures`: {address in the text: address to read the bytes from}, for pictures the caller vouches for; `links`: likewise {address
    of the scheme `wiki:` in the text: address in the portal}. Formulas and diagrams come as
    `.arithmatex` and `pre.mermaid`, which the browser draws. Beyond `MAX_CHARS` the text is cut.
    """
    converter = _converter()
    made: str = converter.reset().convert(text[:MAX_CHARS].replace("\x00", ""))
    clean = sanitise(made, pictures, links)
    return mark_safe(clean.replace("<table>", '<div class="table-scroll"><table>').replace("</table>", "</table></div>"))  # noqa: S308


def page(html: str) -> SafeString:
    """The harmless part of a web page's source, as it may stand in a page of the portal. Beyond `MAX_CHARS` it is cut."""
    clean = sanitise(html[:MAX_CHARS].replace("\x00", ""))
    return mark_safe(clean.replace("<table>", '<div class="table-scroll"><table>').replace("</table>", "</table></div>"))  # noqa: S308


def sanitise(html: str, pictures: Mapping[str, str] | None = None, links: Mapping[str, str] | None = None) -> str:
    """The harmless part of a piece of HTML; `pictures` and `links` as in `render`."""
    import nh3

    known, known_links = pictures or {}, links or {}

    def attribute(tag: str, name: str, value: str) -> str | None:
        if tag == "a" and name == "href" and value in known_links:
            return known_links[value]
        return known[value] if tag == "img" and name == "src" and value in known else _attribute(tag, name, value)

    return nh3.clean(
        html,
        tags=set(_TAGS),
        clean_content_tags={"script", "style", "template", "noscript", "svg", "math", "iframe", "object", "embed", "textarea", "title"},
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        attribute_filter=attribute,
        url_schemes={"http", "https", "mailto", "data", "resource", "wiki"},
        link_rel="noopener noreferrer nofollow",
    )


def _attribute(tag: str, name: str, value: str) -> str | None:
    """The value an attribute may keep. SECURITY: an id without prefix could shadow a global name or steal a label of the page."""
    if name == "id":
        return ID_PREFIX + value
    if tag == "a" and name == "href":
        if value.startswith("#"):
            return f"#{ID_PREFIX}{value[1:]}"
        return value if _WEB.match(value) else None
    if tag == "img" and name == "src":
        return value if _PICTURE.match(value) else None
    if tag == "input":
        return {"type": "checkbox", "disabled": "", "checked": ""}.get(name)
    return value


def _slug(value: str, separator: str) -> str:
    """Ids of headings keep Chinese characters; Markdown's own slugs drop them."""
    return re.sub(r"[^\w]+", separator, value.strip().lower()).strip(separator) or "section"


@cache
def _extensions() -> tuple[list[str], dict[str, dict[str, Any]]]:
    from pymdownx.superfences import fence_code_format

    def mermaid(source: str, language: str, css_class: str, options: Any, md: Any, **more: Any) -> str:
        return str(fence_code_format(source, language, "mermaid", options, md, **more)).replace("<code>", "").replace("</code>", "")

    names = ["tables", "footnotes", "toc", "sane_lists", "abbr", "def_list"]
    names += [f"pymdownx.{name}" for name in ("superfences", "tasklist", "tilde", "mark", "highlight", "arithmatex", "magiclink")]
    configs: dict[str, dict[str, Any]] = {
        "toc": {"slugify": _slug},
        "pymdownx.superfences": {"custom_fences": [{"name": "mermaid", "class": "mermaid", "format": mermaid}]},
        "pymdownx.highlight": {"use_pygments": True, "guess_lang": False},
        "pymdownx.arithmatex": {"generic": True},
        "pymdownx.tilde": {"subscript": False},
    }
    return names, configs


def _converter() -> Any:
    """A fresh converter: one keeps state, and threads serve pages at the same time."""
    from markdown import Markdown

    names, configs = _extensions()
    return Markdown(extensions=names, extension_configs=configs, output_format="html")
