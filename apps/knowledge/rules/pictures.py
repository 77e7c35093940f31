"""What is to be done with the pictures of a document: which are read by OCR, whether a model describes them, and how texts name them.

Source: contract knowledge 3.1 (`vlm_config`, `image_processing_config`), 4.5, 9.3. What an upload wishes lies over what its base says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.knowledge.models import SCHEME, Document, KnowledgeBase

MAX_ALT = 200
#: A picture named in a text: `![words](resource://handle)`. Groups: words, reference.
REFERENCE = re.compile(rf"!\[([^\[\]\n]*)\]\(({re.escape(SCHEME)}[0-9a-fA-F-]{{36}})\)")
#: What a model may observe of a picture, and the values each may have.
OBSERVED: dict[str, tuple[Any, ...]] = {
    "system:contain.text": ("none", "sparse", "block"),
    "system:contain.data_visual": (True, False),
}
#: The contract's policy where a base says nothing: pictures of much text and charts are read, and all of which nothing is known.
DEFAULT_OCR: dict[str, Any] = {
    "on": [{"prop": "contain.text", "is": "block"}, {"prop": "contain.data_visual", "is": True}],
    "on_unobserved": True,
}
LANGUAGES = {"zh": "Chinese", "en": "English"}


@dataclass(frozen=True, slots=True)
class Describing:
    """How a vision model is to describe the pictures of a document. `language`: "zh", "en", another name, or "" for the document's own."""

    model_id: str
    language: str = ""
    instructions: str = ""
    attributes: bool = False


def reference(url: str, alt: str = "") -> str:
    """A picture as Markdown names it; its words are one line without brackets."""
    words = " ".join(re.sub(r"[\[\]()!\\`<>|]", " ", alt).split())[:MAX_ALT]
    return f"![{words.strip()}]({url})"


def without_references(text: str) -> str:
    """The text with pictures replaced by their words: what is searched, embedded and shown to models."""
    return REFERENCE.sub(lambda found: found[1], text) if SCHEME in text else text


def wishes_of(document: Document) -> dict[str, Any]:
    found = (document.metadata or {}).get("process_overrides") if isinstance(document.metadata, dict) else None
    return found if isinstance(found, dict) else {}


def vision_model_of(base: KnowledgeBase) -> str:
    """Id of the vision model a base has chosen; "" when none."""
    named = (base.options.get(name) or {} for name in ("vlm_config", "image_processing_config"))
    return next((str(config["model_id"]) for config in named if config.get("model_id")), "")


def _vision_config(document: Document) -> dict[str, Any]:
    own = wishes_of(document).get("vlm_config")
    base = document.kb.options.get("vlm_config")
    return {**(base if isinstance(base, dict) else {}), **(own if isinstance(own, dict) else {})}


def describing_of(document: Document) -> Describing | None:
    """What is wished of a vision model for this document; None when nothing is, or no model is chosen."""
    wishes, config = wishes_of(document), _vision_config(document)
    processing = document.kb.options.get("image_processing_config") or {}
    model_id = str(config.get("model_id") or "") or vision_model_of(document.kb)
    if not config.get("enabled") or not model_id or wishes.get("enable_multimodel") is False:
        return None
    attributes = wishes.get("image_attrs_enabled")
    return Describing(
        model_id=model_id,
        language=str(config.get("description_language") or "").strip(),
        instructions=str(config.get("custom_instructions") or "").strip(),
        attributes=bool(processing.get("image_attrs_enabled") if attributes is None else attributes),
    )


def ocr_policy(document: Document) -> dict[str, Any]:
    """The rules by which pictures inside the document are read: {on: [{prop, is}], on_unobserved}."""
    base = document.kb.options.get("image_processing_config") or {}
    for actions in (wishes_of(document).get("image_actions"), base.get("image_actions")):
        if isinstance(actions, dict) and isinstance(actions.get("ocr"), dict):
            return {**DEFAULT_OCR, **actions["ocr"]}
    return DEFAULT_OCR


def reads_pictures(document: Document) -> bool:
    """Whether any picture inside this document may be read by OCR."""
    policy = ocr_policy(document)
    wanted = bool(policy.get("on_unobserved") or policy.get("on"))
    return bool(settings.OCR_ENABLED) and wishes_of(document).get("enable_multimodel") is not False and wanted


def is_to_read(policy: Mapping[str, Any], attrs: Mapping[str, Any] | None) -> bool:
    """Whether the policy has a picture of these observed attributes read: one rule that fits is enough; so is one nothing is known for."""
    known = attrs or {}
    for rule in policy.get("on") or ():
        name = property_of(rule.get("prop"))
        if name in known and known[name] == rule.get("is"):
            return True
    missing = [name for name in OBSERVED if name not in known]
    return bool(policy.get("on_unobserved")) and bool(missing)


def property_of(name: Any) -> str:
    """The id of an attribute, which rules may name without its source."""
    text = str(name or "")
    return text if ":" in text else f"system:{text}"


def clean_image_actions(value: Any, *, field: str) -> dict[str, Any]:
    """Rules about what is done with pictures: {ocr: {on: [{prop, is}], on_unobserved}}.

    Raises: InvalidInput naming the rule at fault.
    """
    if not isinstance(value, dict):
        raise InvalidInput(_("Send a JSON object."), field=field, api_code=1000)
    unknown = sorted(set(value) - {"ocr"})
    if unknown:
        raise InvalidInput(
            _("Pictures can be read by OCR; other actions are not known here."), field=f"{field}.{unknown[0]}", known=["ocr"]
        )
    if "ocr" not in value or value["ocr"] is None:
        return {}
    ocr = value["ocr"]
    if not isinstance(ocr, dict) or not isinstance(ocr.get("on", []), list) or not isinstance(ocr.get("on_unobserved", True), bool):
        raise InvalidInput(_("Send a list of rules as `on`, and true or false as `on_unobserved`."), field=f"{field}.ocr", api_code=1000)
    rules = []
    for number, rule in enumerate(ocr.get("on", [])):
        name = property_of(rule.get("prop")) if isinstance(rule, dict) else ""
        if name not in OBSERVED or not any(rule.get("is") is value or rule.get("is") == value for value in OBSERVED[name]):
            raise InvalidInput(
                _("This rule names no attribute of pictures, or a value it cannot have."),
                field=f"{field}.ocr.on[{number}]",
                known={known.removeprefix("system:"): list(values) for known, values in OBSERVED.items()},
                api_code=1000,
            )
        rules.append({"prop": name.removeprefix("system:"), "is": rule["is"]})
    return {"ocr": {"on": rules, "on_unobserved": bool(ocr.get("on_unobserved", True))}}
