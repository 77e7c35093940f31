"""Template tags that draw the portal's components (`templates/components/`).

    {% load ui %}
    {% icon "folder" %}                                       decorative; with label="..." it is announced
    {% ui "button" label=_("Upload") kind="primary" icon="upload" dialog="upload-dialog" %}
    {% uiblock "dialog" id="upload-dialog" title=_("Upload") %} any markup {% enduiblock %}

Parameters are those in the comment at the top of each component's file; a component sees nothing else of the page.
Parameters with these prefixes become attributes of the component's main element:

    hx_post=url        hx-post="..."         data_poll=url       data-poll="..."
    aria_label=text    aria-label="..."      x_show="open"       x-show="..."
    on_click="pick"    x-on:click="pick"     bind_disabled="busy"   x-bind:disabled="busy"
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

from django import forms, template
from django.template.context import Context
from django.utils.functional import Promise
from django.utils.html import conditional_escape, escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language

register = template.Library()

#: Components that are drawn alike whenever they get the same parameters, in the same language: no id, no token, no time in them.
PURE = frozenset({"icon", "tag", "status", "badge"})
KEPT_MOST = 4096
_PLAIN = (str, int, float, NoneType)
_kept: dict[Any, SafeString] = {}

_PREFIXES = {"hx_": "hx-", "data_": "data-", "aria_": "aria-", "x_": "x-", "on_": "x-on:", "bind_": "x-bind:"}


def _attribute_name(parameter: str) -> str | None:
    for prefix, target in _PREFIXES.items():
        if parameter.startswith(prefix):
            return target + parameter[len(prefix) :].replace("_", "-")
    return None


@register.filter
def attrs(values: Mapping[str, Any] | None) -> SafeString:
    """The mapping as escaped HTML attributes: True gives a bare name, None and False leave the attribute out."""
    parts = []
    for name, value in (values or {}).items():
        # SECURITY: inline handlers and styles would need an open content policy; nothing may bring them in by this way.
        if name in ("style", "x-html") or name.startswith(("on", "hx-on")):
            raise ValueError(f"attribute {name!r} is not allowed in a component")
        if value is None or value is False:
            continue
        # Escaped even when it comes marked as safe: safe markup is not a safe attribute.
        parts.append(format_html(" {}", name) if value is True else format_html(' {}="{}"', name, escape(str(value))))
    return format_html_join("", "{}", ((part,) for part in parts))


def _draw(context: Context, name: str, parameters: dict[str, Any]) -> SafeString:
    if name not in PURE:
        return _drawn(context, name, parameters)
    known = [(key, str(value) if isinstance(value, Promise) else value) for key, value in sorted(parameters.items())]
    if not all(isinstance(value, _PLAIN) for _key, value in known):
        return _drawn(context, name, parameters)
    # Types belong to the key: text marked as safe equals text that is not, and 1 equals True.
    key = (name, get_language(), context.autoescape, *((each, type(value), value) for each, value in known))
    found = _kept.get(key)
    if found is None:
        found = _drawn(context, name, dict(known))
        if len(_kept) >= KEPT_MOST:
            _kept.clear()
        _kept[key] = found
    return found


def _drawn(context: Context, name: str, parameters: dict[str, Any]) -> SafeString:
    own: dict[str, Any] = {}
    attributes: dict[str, Any] = dict(parameters.pop("attrs", None) or {})
    for key, value in parameters.items():
        attribute = _attribute_name(key)
        if attribute is None:
            own[key] = value
        else:
            attributes[attribute] = value
    own["attrs"] = attributes
    own["csrf_token"] = context.get("csrf_token")
    engine = context.template.engine  # type: ignore[union-attr]
    return engine.get_template(f"components/{name}.html").render(context.new(own))


@register.simple_tag(takes_context=True)
def ui(context: Context, component: str, /, **parameters: Any) -> SafeString:
    """The named component drawn with nothing but these parameters."""
    return _draw(context, component, parameters)


@register.simple_block_tag(takes_context=True)
def uiblock(context: Context, content: str, component: str, /, **parameters: Any) -> SafeString:
    """The named component around the markup between the tags, which it receives as `slot`."""
    return _draw(context, component, {**parameters, "slot": conditional_escape(content)})


@register.simple_tag(takes_context=True)
def icon(context: Context, name: str, label: str = "", size: str = "", spin: bool = False) -> SafeString:
    """An icon of the sprite (`static/src/icons.json`); size is "s", "l" or "xl"."""
    return _draw(context, "icon", {"name": name, "label": label, "size": size, "spin": spin})


@register.filter
def initial(name: str | None) -> str:
    """The one character an avatar shows for a name: the first letter or ideograph, upper case."""
    for character in name or "":
        if character.isalnum():
            return character.upper()
    return "?"


@register.filter
def hue(key: object) -> str:
    """One of the six tag hues, always the same for the same key."""
    hues = ("blue", "orange", "green", "purple", "pink", "slate")
    return hues[sum(str(key).encode()) % len(hues)]


@register.filter
def percent_of(part: float | None, whole: float | None) -> int | None:
    """part as a whole percentage of whole, 0 to 100; None when either is unknown."""
    if part is None or not whole:
        return None
    return max(0, min(100, int(100 * part / whole)))


@register.filter
def at(items: Sequence[Any] | None, index: int) -> Any:
    """The element at index, or an empty string when there is none."""
    try:
        return (items or [])[index]
    except IndexError:
        return ""


@register.filter
def as_list(value: str | Iterable[str]) -> list[str]:
    """One text as a list of one; any other iterable (a form's errors) as a list."""
    return [value] if isinstance(value, str) else list(value)


@register.filter
def unlocal(value: float | int | str) -> str:
    """A number as HTML and SVG attributes want it: no thousands separators, a point for decimals."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@register.filter
def accept_list(types: str) -> str:
    """ "pdf docx" as the accept attribute of a file input: ".pdf,.docx"."""
    return ",".join(f".{part.lstrip('.')}" for part in types.replace(",", " ").split())


@register.simple_tag
def json_of(options: Any, chosen: Any) -> str:
    """Options and chosen values of a combobox as JSON text for an attribute (the template escapes it)."""
    return json.dumps({"options": options or [], "chosen": chosen or []}, ensure_ascii=False, default=str)


_WIDGET_TYPES: tuple[tuple[type[forms.Widget], str], ...] = (
    (forms.PasswordInput, "password"),
    (forms.EmailInput, "email"),
    (forms.URLInput, "url"),
    (forms.NumberInput, "number"),
    (forms.DateInput, "date"),
    (forms.Textarea, "textarea"),
    (forms.CheckboxInput, "checkbox"),
    (forms.SelectMultiple, "other"),
    (forms.RadioSelect, "other"),
    (forms.FileInput, "other"),
    (forms.Select, "select"),
    (forms.TextInput, "text"),
)


@register.filter
def field_type(field: forms.BoundField) -> str:
    """The `type` of components/field.html for a form field; "other" for widgets that draw themselves."""
    widget = field.field.widget
    return next((name for kind, name in _WIDGET_TYPES if isinstance(widget, kind)), "other")


@register.filter
def field_value(field: forms.BoundField) -> Any:
    """What the field shows: never a password that was typed before."""
    if isinstance(field.field.widget, forms.PasswordInput):
        return ""
    if isinstance(field.field.widget, forms.CheckboxInput):
        return "on"
    value = field.value()
    return "" if value is None else field.field.widget.format_value(value) if not isinstance(field.field.widget, forms.Select) else value


@register.filter
def field_options(field: forms.BoundField) -> list[tuple[Any, str]]:
    """Choices of a select as pairs, groups flattened."""
    pairs: list[tuple[Any, str]] = []
    for value, label in getattr(field.field, "choices", None) or []:
        pairs.extend(label if isinstance(label, list | tuple) else [(value, label)])
    return pairs


@register.filter
def toast_kind(level_tag: str | None) -> str:
    """The kind of toast for a level of django.contrib.messages."""
    return {"success": "success", "warning": "warning", "error": "danger"}.get(level_tag or "", "info")
