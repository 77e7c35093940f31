"""Rules of a base's configuration objects (contract knowledge 3.2, 3.3): what comes out is what is stored."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.common.text import utf16_length
from apps.knowledge import intake
from apps.knowledge.rules.pictures import clean_image_actions
from apps.llm.models import Model
from apps.llm.selectors import entry_of, model_row
from apps.llm.services import embedding_model_ids, embedding_model_known

STRATEGIES = ("", "legacy", "auto", "heading", "heuristic", "recursive")
FUSIONS = ("minmax", "rrf")
FLAGS = ("vector_enabled", "keyword_enabled", "wiki_enabled", "graph_enabled")
MAX_INSTRUCTIONS = 4000

#: The contract's configuration objects kept as they are sent, and the members each may have.
OPTION_MEMBERS: dict[str, tuple[str, ...]] = {
    "image_processing_config": ("model_id", "image_attrs_enabled", "image_actions"),
    "vlm_config": ("enabled", "model_id", "description_language", "custom_instructions"),
    "asr_config": ("enabled", "model_id", "language"),
    "extract_config": ("enabled", "text", "tags", "nodes", "relations", "custom_instructions"),
    "faq_config": ("index_mode", "question_index_mode"),
    "question_generation_config": ("enabled", "question_count", "custom_instructions"),
    "auto_tag_config": ("enabled", "model_id", "max_tags", "skip_if_tagged"),
    "wiki_config": (),
    "profile_config": ("enabled", "model_id", "custom_instructions"),
    "storage_provider_config": ("provider",),
}


def clean_name(name: str) -> str:
    """Raises: InvalidInput at `name`."""
    name = name.strip()
    if not name:
        raise InvalidInput(_("Give the knowledge base a name."), field="name")
    if utf16_length(name) > 200:
        raise InvalidInput(_("The name may have at most 200 characters."), field="name", max=200)
    return name


def clean_description(description: str) -> str:
    """Raises: InvalidInput at `description`."""
    if utf16_length(description) > 4000:
        raise InvalidInput(_("The description may have at most 4000 characters."), field="description", max=4000)
    return description


def clean_chunking(config: dict[str, Any]) -> dict[str, Any]:
    """Raises: InvalidInput at `chunking_config` when the overlap does not fit the size or the strategy is unknown."""
    size, overlap = config.get("chunk_size", 0), config.get("chunk_overlap", 0)
    if size and overlap >= size:
        raise InvalidInput(
            _("The overlap must be smaller than the passage size."),
            field="chunking_config.chunk_overlap",
            chunk_size=size,
            chunk_overlap=overlap,
        )
    if config.get("enable_parent_child"):
        parent, child = config.get("parent_chunk_size") or 4096, config.get("child_chunk_size") or 384
        if child >= parent:
            raise InvalidInput(
                _("Child passages must be smaller than the parent passages that hold them."), field="chunking_config.child_chunk_size"
            )
    if config.get("strategy", "") not in STRATEGIES:
        raise InvalidInput(_("Unknown splitting strategy."), field="chunking_config.strategy", known=list(STRATEGIES))
    check_instructions("chunking_config.table_metadata_instructions", config.get("table_metadata_instructions", ""))
    kept = {"chunk_size": size, "chunk_overlap": overlap, "separators": config.get("separators") or [], **_but(config)}
    if kept.get("parser_engine_rules"):
        kept["parser_engine_rules"] = clean_rules(kept["parser_engine_rules"], field="chunking_config.parser_engine_rules")
    return kept


def clean_rules(rules: Any, *, field: str) -> list[dict[str, Any]]:
    """Rules by which types of files are read: [{file_types, engine, xlsx_first_row_as_header?}]; of two for one type the first holds.

    Raises: InvalidInput naming the rule at fault by its number from 0.
    """
    engines = intake.reading_engines()
    kept = []
    for number, rule in enumerate(rules or []):
        at = f"{field}[{number}]"
        types = rule.get("file_types") if isinstance(rule, dict) else None
        if not isinstance(types, list) or not types or not all(isinstance(each, str) and each.strip(" .") for each in types):
            raise InvalidInput(_("A rule needs the file types it is for."), field=f"{at}.file_types")
        names = list(dict.fromkeys(each.strip(" .").lower() for each in types))
        engine = str(rule.get("engine") or "builtin").strip().lower()
        if engine not in engines:
            raise InvalidInput(_("There is no such way of reading files here."), field=f"{at}.engine", known=sorted(engines))
        if strange := [name for name in names if name not in engines[engine]]:
            raise InvalidInput(
                _("Files of the type .%(type)s cannot be read this way.") % {"type": strange[0][:20]},
                field=f"{at}.file_types",
                known=sorted(engines[engine]),
            )
        header = rule.get("xlsx_first_row_as_header")
        if header is not None and not isinstance(header, bool):
            raise InvalidInput(_("This is either true or false."), field=f"{at}.xlsx_first_row_as_header")
        kept.append({"file_types": names, "engine": engine, **({} if header is None else {"xlsx_first_row_as_header": header})})
    return kept


def _but(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in ("chunk_size", "chunk_overlap", "separators")}


def clean_strategy(strategy: dict[str, Any] | None, *, graph: bool, creating: bool) -> dict[str, bool]:
    """All four flags. On create, none set means words and vectors. Raises: InvalidInput at `indexing_strategy` when none would be on."""
    flags = {flag: bool((strategy or {}).get(flag)) for flag in FLAGS}
    if graph:
        flags["graph_enabled"] = True
    if not any(flags[flag] for flag in FLAGS):
        if not creating:
            raise InvalidInput(_("Turn on at least one way of finding: words, vectors, wiki or graph."), field="indexing_strategy")
        flags["vector_enabled"] = flags["keyword_enabled"] = True
    return flags


def clean_retrieval(config: dict[str, Any]) -> dict[str, Any]:
    """How a base ranks what its words and its meaning find: {fusion: minmax | rrf, weights: [words, meaning]}.

    Raises: InvalidInput at `retrieval.fusion` or `retrieval.weights`.
    """
    kept: dict[str, Any] = {}
    if (fusion := config.get("fusion")) is not None:
        if fusion not in FUSIONS:
            raise InvalidInput(_("Unknown way of putting both together."), field="retrieval.fusion", known=list(FUSIONS))
        kept["fusion"] = fusion
    if (weights := config.get("weights")) is not None:
        numbers = isinstance(weights, (list, tuple)) and [w for w in weights if isinstance(w, (int, float)) and not isinstance(w, bool)]
        if not numbers or len(numbers) != 2 or len(weights) != 2 or not all(0 <= w <= 1 for w in numbers) or not any(numbers):
            raise InvalidInput(_("Two numbers from 0 to 1 are the weights of words and meaning; not both 0."), field="retrieval.weights")
        kept["weights"] = [float(w) for w in numbers]
    return kept


def check_instructions(field: str, text: Any) -> None:
    """Raises: InvalidInput when an instruction is longer than the contract allows."""
    if isinstance(text, str) and len(text) > MAX_INSTRUCTIONS:
        raise InvalidInput(_("Instructions may have at most 4000 characters."), field=field, max=MAX_INSTRUCTIONS)


def clean_option(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """One configuration object with the members that are kept; secrets of the legacy forms never are."""
    members = OPTION_MEMBERS[name]
    kept = {key: value[key] for key in members if key in value} if members else dict(value)
    for key, text in kept.items():
        if "instructions" in key:
            check_instructions(f"{name}.{key}", text)
    model_id = str(kept.get("model_id") or "")
    if name in ("vlm_config", "image_processing_config"):
        check_vision_model(model_id, field=f"{name}.model_id")
    elif name in ("auto_tag_config", "profile_config"):
        check_chat_model(model_id, field=f"{name}.model_id")
    if name == "image_processing_config" and kept.get("image_actions") is not None:
        kept["image_actions"] = clean_image_actions(kept["image_actions"], field=f"{name}.image_actions")
    if name == "vlm_config":
        _check_vision_words(kept)
    if name == "extract_config":
        return clean_extract(kept)
    if name == "question_generation_config":
        kept["question_count"] = min(10, max(1, _whole(kept.get("question_count")) or 3))
    if name == "auto_tag_config":
        kept["max_tags"] = min(10, max(1, _whole(kept.get("max_tags")) or 3))
        kept.setdefault("skip_if_tagged", True)
    if name == "storage_provider_config" and kept.get("provider", "local") not in ("", "local"):
        raise InvalidInput(_("Only the storage provider `local` is set up here."), field=name, known=["local"])
    return kept


def _check_vision_words(config: dict[str, Any]) -> None:
    """Raises: InvalidInput for values a model could not be told."""
    language = config.get("description_language", "")
    if not isinstance(language, str) or len(language) > 32 or not language.isprintable():
        raise InvalidInput(_("Name a language by its code, like zh or en, or leave it empty."), field="vlm_config.description_language")
    if not isinstance(config.get("enabled", False), bool):
        raise InvalidInput(_("This is either true or false."), field="vlm_config.enabled")
    if not isinstance(config.get("custom_instructions", ""), str):
        raise InvalidInput(_("Send a text."), field="vlm_config.custom_instructions")


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def clean_extract(config: dict[str, Any]) -> dict[str, Any]:
    """Rules of entity extraction (contract knowledge 3.3); when it is off its content is dropped."""
    if not config.get("enabled"):
        return {"enabled": False}

    def bad(message: Any) -> InvalidInput:
        return InvalidInput(message, field="extract_config")

    nodes, relations = config.get("nodes"), config.get("relations")
    if not (config.get("text") and config.get("tags") and isinstance(nodes, list) and nodes and isinstance(relations, list) and relations):
        raise bad(_("Extraction needs an example text, tags, nodes and relations."))
    names = [str(node.get("name", "")).strip() if isinstance(node, dict) else "" for node in nodes]
    if not all(names) or len(set(names)) != len(names):
        raise bad(_("Every node needs a name of its own."))
    for relation in relations:
        ends = (relation.get("node1"), relation.get("node2"), relation.get("type")) if isinstance(relation, dict) else (None, None, None)
        if ends[0] not in names or ends[1] not in names or not str(ends[2] or "").strip():
            raise bad(_("Every relation needs a type and must join two of the nodes."))
    return config


def check_embedding_model(model_id: str, *, field: str = "embedding_model_id") -> str:
    """Within the open scope. Raises: InvalidInput when the space has no such model."""
    if not embedding_model_known(model_id):
        raise InvalidInput(
            _("There is no such embedding model here. Leave it empty for the portal's own, or choose one of the page Models."),
            field=field,
            known=["", *embedding_model_ids()],
        )
    return model_id


def check_chat_model(model_id: str, *, field: str = "summary_model_id") -> str:
    """Within the open scope. Raises: InvalidInput when the space has no chat model of this id; empty is none."""
    return _check_model(
        model_id, Model.Type.CHAT, field, _("There is no such language model here. Leave it empty, or add it on the page Models.")
    )


def check_vision_model(model_id: str, *, field: str = "vlm_config.model_id") -> str:
    """Within the open scope. Raises: InvalidInput when the space has no vision model of this id; empty is none."""
    return _check_model(
        model_id, Model.Type.VISION, field, _("There is no such vision model here. Leave it empty, or add it on the page Models.")
    )


def _check_model(model_id: str, kind: str, field: str, message: Any) -> str:
    if model_id and model_row(model_id, kind) is None:
        raise InvalidInput(message, field=field, code="unknown_model")
    return model_id


def embedding_in_use(model_id: str) -> dict[str, Any]:
    """The embedding model a base uses, in the shape of its settings (contract knowledge 3.10); empty when there is none.

    The address is left out: readers of a base need not know it, and admins have the page of models.
    """
    entry = entry_of(model_id)
    if entry is None:
        return {}
    return {
        "source": "local" if entry.is_local else "remote",
        "modelId": model_id,
        "modelName": entry.name,
        "baseUrl": "",
        "dimension": entry.dimension,
        "credentials": {"apiKey": entry.has_key},
    }


def chat_in_use(model_id: str) -> dict[str, Any]:
    """The language model a base uses, likewise; empty when it has none."""
    return _in_use(model_id, Model.Type.CHAT)


def vision_in_use(model_id: str) -> dict[str, Any]:
    """The vision model a base uses, likewise; empty when it has none."""
    return _in_use(model_id, Model.Type.VISION)


def _in_use(model_id: str, kind: str) -> dict[str, Any]:
    row = model_row(model_id, kind)
    if row is None:
        return {}
    return {"source": "remote", "modelId": model_id, "modelName": row.name, "baseUrl": "", "credentials": {"apiKey": bool(row.api_key)}}
