"""Processing wishes that come with a document (`process_config`, contract knowledge 4.5): what is kept, and what is refused because
nothing here could do it. What is left out follows the base.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.rules.configs import check_instructions, clean_chunking, clean_option, clean_rules
from apps.knowledge.rules.pictures import clean_image_actions, vision_model_of

FLAGS = ("enable_multimodel", "graph_enabled", "summary_enabled", "image_attrs_enabled")
OBJECTS = (
    "chunking_config",
    "vlm_config",
    "asr_config",
    "question_generation_config",
    "extract_config",
    "parser_engine_overrides",
    "image_pipeline_params",
    "image_actions",
)
LISTS = ("parser_engine_rules",)
TEXTS = ("encoding", "image_pipeline")
MEMBERS = frozenset((*FLAGS, *OBJECTS, *LISTS, *TEXTS))

NO_VISION = _(
    "Pictures are described by a vision model, and none is chosen here. Name one in vlm_config.model_id, or choose one in the settings of "
    "the base."
)
SPEECH = _("Recordings cannot be turned into text here. Leave this out of the request.")
GRAPH = _("Entities and relations are not extracted here. Leave this out of the request.")
OVERRIDES = _("Parsers take no settings of their own here. Choose one with parser_engine_rules, and leave this out of the request.")
PIPELINES = _("There are no other pipelines for pictures here. Leave this out of the request.")


def clean_process_config(config: Any, *, field: str = "process_config", base: KnowledgeBase | None = None) -> dict[str, Any]:
    """The members the contract knows, null ones left out. `base` is where the documents are: its vision model may serve a wish.

    Raises: InvalidInput at the member that has the wrong type, breaks the rules of a base's settings, or asks for what cannot be done here.
    """
    if not isinstance(config, dict):
        raise InvalidInput(_("Send a JSON object."), field=field, api_code=1000)
    kept = {name: value for name, value in config.items() if name in MEMBERS and value is not None}
    for name, value in kept.items():
        _check_type(f"{field}.{name}", name, value)
    for name in OBJECTS:
        for key, text in kept.get(name, {}).items():
            if "instructions" in key:
                check_instructions(f"{field}.{name}.{key}", text)
    _check_possible(kept, field)
    if "chunking_config" in kept:
        _check_chunking(kept["chunking_config"], f"{field}.chunking_config")
    if "question_generation_config" in kept:
        kept["question_generation_config"] = clean_option("question_generation_config", kept["question_generation_config"])
    if "vlm_config" in kept:
        kept["vlm_config"] = _clean_vision(kept["vlm_config"], f"{field}.vlm_config", base)
    if "image_actions" in kept:
        kept["image_actions"] = clean_image_actions(kept["image_actions"], field=f"{field}.image_actions")
    if "parser_engine_rules" in kept:
        kept["parser_engine_rules"] = clean_rules(kept["parser_engine_rules"], field=f"{field}.parser_engine_rules")
    return kept


def _clean_vision(config: dict[str, Any], at: str, base: KnowledgeBase | None) -> dict[str, Any]:
    """Without secrets of the legacy forms. Raises: InvalidInput when it asks for a model that is not there."""
    try:
        kept = clean_option("vlm_config", config)
    except InvalidInput as error:
        raise InvalidInput(error.message, field=f"{at}.{str(error.field).rpartition('.')[2]}", code=error.code, api_code=1000) from error
    chosen = vision_model_of(base) if base is not None else ""
    if kept.get("enabled") and not (kept.get("model_id") or chosen):
        raise InvalidInput(NO_VISION, code="not_available", field=f"{at}.model_id", api_code=1000)
    return kept


def _check_type(at: str, name: str, value: Any) -> None:
    if name in FLAGS and not isinstance(value, bool):
        raise InvalidInput(_("This is either true or false."), field=at, api_code=1000)
    if name in OBJECTS and not isinstance(value, dict):
        raise InvalidInput(_("Send a JSON object."), field=at, api_code=1000)
    if name in LISTS and not isinstance(value, list):
        raise InvalidInput(_("Send a JSON list."), field=at, api_code=1000)
    if name in TEXTS and not isinstance(value, str):
        raise InvalidInput(_("Send a text."), field=at, api_code=1000)


def _check_possible(kept: dict[str, Any], field: str) -> None:
    """What would silently do nothing is refused, so that nobody waits for it."""
    wanted = (
        ("asr_config", bool(kept.get("asr_config", {}).get("enabled")), SPEECH),
        ("graph_enabled", kept.get("graph_enabled") is True, GRAPH),
        ("extract_config", bool(kept.get("extract_config", {}).get("enabled")), GRAPH),
        ("parser_engine_overrides", bool(kept.get("parser_engine_overrides")), OVERRIDES),
        ("image_pipeline", bool(kept.get("image_pipeline")), PIPELINES),
        ("image_pipeline_params", bool(kept.get("image_pipeline_params")), PIPELINES),
    )
    for name, is_wanted, why in wanted:
        if is_wanted:
            raise InvalidInput(why, code="not_available", field=f"{field}.{name}", api_code=1000)


def _check_chunking(config: dict[str, Any], at: str) -> None:
    for name in ("chunk_size", "chunk_overlap", "parent_chunk_size", "child_chunk_size"):
        value = config.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100_000):
            raise InvalidInput(_("This is a whole number from 0 to 100,000."), field=f"{at}.{name}", api_code=1000)
    try:
        clean_chunking(config)
    except InvalidInput as error:
        raise InvalidInput(error.message, field=f"{at.rpartition('.')[0]}.{error.field}", api_code=1000) from error
