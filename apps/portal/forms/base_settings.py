"""The settings of a base as a form: what each field says in the contract's words, and back."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.actor import Actor
from apps.faq.selectors import index_mode, question_mode
from apps.ingestion.selectors import CHUNKING_DEFAULTS
from apps.knowledge.models import KnowledgeBase
from apps.llm.models import Model
from apps.llm.selectors import model_list

STRATEGIES = (
    ("auto", gettext_lazy("Automatic: by headings when there are enough of them")),
    ("heading", gettext_lazy("By headings")),
    ("heuristic", gettext_lazy("By numbered sections and layout")),
    ("recursive", gettext_lazy("By separators and size only")),
)
INDEX_MODES = (
    ("question_answer", gettext_lazy("Their questions and their answers")),
    ("question_only", gettext_lazy("Their questions alone")),
)
QUESTION_MODES = (
    ("combined", gettext_lazy("Together: one passage an entry, quick and small")),
    ("separate", gettext_lazy("Each by itself: finer where an entry has many questions")),
)
SEVERAL = "several"
LANGUAGES = (("", gettext_lazy("All")), ("zh", gettext_lazy("Chinese")), ("en", gettext_lazy("English")), ("de", gettext_lazy("German")))
TEXT = ("text", gettext_lazy("As plain text, marks and all"))
OFFICE = ("office", gettext_lazy("With the second reader"))
#: field -> (label, extensions, ways besides the usual one)
READING: dict[str, tuple[Any, tuple[str, ...], tuple[tuple[str, Any], ...]]] = {
    "read_pdf": ("PDF", ("pdf",), (("ocr", gettext_lazy("Every page by OCR, whatever text it carries")),)),
    "read_docx": ("Word", ("docx", "docm", "dotx"), (OFFICE,)),
    "read_pptx": ("PowerPoint", ("pptx", "pptm", "ppsx"), (OFFICE,)),
    "read_html": ("HTML", ("html", "htm", "xhtml", "mhtml", "mht"), (TEXT,)),
    "read_markdown": ("Markdown", ("md", "markdown", "mdown", "mkd"), (TEXT,)),
    "read_csv": ("CSV, TSV", ("csv", "tsv"), (TEXT,)),
    "read_json": ("JSON", ("json", "jsonl", "ndjson"), (TEXT,)),
    "read_mail": (gettext_lazy("E-mail"), ("eml",), (TEXT,)),
}
USUAL = ("", gettext_lazy("The usual way"))
TABLES = ("xlsx", "xlsm", "xls", "xlsb", "ods", "csv", "tsv")
KNOWN_TYPES = frozenset(extension for _label, types, _ways in READING.values() for extension in types) | frozenset(TABLES)
READ_ALWAYS, READ_OBSERVED, READ_NEVER = "always", "observed", "never"
#: how pictures are read -> the contract's rules; the first is what holds where nothing is said
OCR_RULES: dict[str, dict[str, Any]] = {
    READ_ALWAYS: {"on": [{"prop": "contain.text", "is": amount} for amount in ("none", "sparse", "block")], "on_unobserved": True},
    READ_OBSERVED: {
        "on": [
            {"prop": "contain.text", "is": "sparse"},
            {"prop": "contain.text", "is": "block"},
            {"prop": "contain.data_visual", "is": True},
        ],
        "on_unobserved": True,
    },
    READ_NEVER: {"on": [], "on_unobserved": False},
}


class ReadingMixin(forms.Form):
    """How types of files are read: a choice for each type that has one."""

    header_row = forms.BooleanField(label=gettext_lazy("The first row of a table names its columns"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (label, _types, ways) in READING.items():
            self.fields[name] = forms.ChoiceField(label=label, choices=[USUAL, *ways], required=False)

    @property
    def reading_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in READING]

    def rules(self, kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The contract's `parser_engine_rules`: rules for types this form does not show stay as they are."""
        others = [rule for rule in kept if not KNOWN_TYPES & set(rule.get("file_types", ()))]
        chosen = [
            {"file_types": list(types), "engine": self.cleaned_data[name]}
            for name, (_label, types, _ways) in READING.items()
            if self.cleaned_data.get(name)
        ]
        if not self.cleaned_data.get("header_row"):
            plain = {extension for rule in chosen for extension in rule["file_types"]}
            tables = [extension for extension in TABLES if extension not in plain]
            chosen.append({"file_types": tables, "engine": "builtin", "xlsx_first_row_as_header": False})
        return [*chosen, *others]


def reading_initial(base: KnowledgeBase) -> dict[str, Any]:
    rules = (base.chunking_config or {}).get("parser_engine_rules") or []

    def rule_of(extension: str) -> dict[str, Any]:
        return next((rule for rule in rules if extension in rule.get("file_types", ())), {})

    found: dict[str, Any] = {"header_row": rule_of("xlsx").get("xlsx_first_row_as_header") is not False}
    for name, (_label, types, ways) in READING.items():
        engine = rule_of(types[0]).get("engine", "")
        found[name] = engine if engine in dict(ways) else ""
    return found


class PicturesMixin(forms.Form):
    """What is done with the pictures of documents."""

    read_pictures = forms.ChoiceField(
        label=gettext_lazy("Text in pictures"),
        required=False,
        choices=(
            (READ_ALWAYS, gettext_lazy("Read it by OCR")),
            (READ_OBSERVED, gettext_lazy("Read it unless the model saw that there is none")),
            (READ_NEVER, gettext_lazy("Do not read it")),
        ),
    )
    describe = forms.BooleanField(label=gettext_lazy("Have a model describe pictures"), required=False)
    vision_model = forms.ChoiceField(label=gettext_lazy("Vision model"), required=False)
    description_language = forms.ChoiceField(
        label=gettext_lazy("Language of the descriptions"),
        required=False,
        choices=(("", gettext_lazy("The document's own")), ("zh", gettext_lazy("Chinese")), ("en", gettext_lazy("English"))),
    )
    picture_instructions = forms.CharField(
        label=gettext_lazy("What to mind when describing"), widget=forms.Textarea, required=False, strip=False
    )
    observe = forms.BooleanField(
        label=gettext_lazy("Note how much writing a picture holds, and whether it is a chart"),
        required=False,
        help_text=gettext_lazy("The gallery can then be filtered by it."),
    )

    def check_pictures(self, values: dict[str, Any]) -> None:
        if values.get("describe") and not values.get("vision_model") and "vision_model" not in self.errors:
            self.add_error("vision_model", _("Descriptions need a vision model. Choose one, or switch them off."))

    def pictures(self, kept: dict[str, Any]) -> dict[str, Any]:
        """The contract's `vlm_config` and `image_processing_config`; members this form does not show stay as they are."""
        values = self.cleaned_data
        vision = {
            **(kept.get("vlm_config") or {}),
            "enabled": values["describe"],
            "model_id": values["vision_model"],
            "description_language": values["description_language"],
            "custom_instructions": values["picture_instructions"],
        }
        rules = OCR_RULES[values["read_pictures"] or READ_ALWAYS]
        processing = {
            **(kept.get("image_processing_config") or {}),
            "image_attrs_enabled": values["observe"],
            "image_actions": {"ocr": rules},
        }
        return {"vlm_config": vision, "image_processing_config": processing}


def pictures_initial(base: KnowledgeBase) -> dict[str, Any]:
    vision = base.options.get("vlm_config") or {}
    processing = base.options.get("image_processing_config") or {}
    rules = (processing.get("image_actions") or {}).get("ocr")
    if rules is None:  # the contract's own policy: what is observed decides, where anything is
        reading = READ_OBSERVED if processing.get("image_attrs_enabled") else READ_ALWAYS
    elif not rules.get("on") and not rules.get("on_unobserved"):
        reading = READ_NEVER
    else:
        reading = READ_ALWAYS if {"prop": "contain.text", "is": "none"} in rules.get("on", []) else READ_OBSERVED
    language = str(vision.get("description_language") or "")[:2].lower()
    return {
        "read_pictures": reading,
        "describe": bool(vision.get("enabled")),
        "vision_model": vision.get("model_id") or processing.get("model_id") or "",
        "description_language": language if language in ("zh", "en") else "",
        "picture_instructions": vision.get("custom_instructions", ""),
        "observe": bool(processing.get("image_attrs_enabled")),
    }


class ChunkingForm(forms.Form):
    strategy = forms.ChoiceField(label=gettext_lazy("Way of splitting"), choices=STRATEGIES)
    chunk_size = forms.IntegerField(
        label=gettext_lazy("Size"), min_value=0, max_value=100_000, required=False, help_text=gettext_lazy("Characters of a passage.")
    )
    chunk_overlap = forms.IntegerField(
        label=gettext_lazy("Overlap"),
        min_value=0,
        max_value=100_000,
        required=False,
        help_text=gettext_lazy("Characters that the next passage repeats."),
    )
    separators = forms.CharField(
        label=gettext_lazy("Separators"),
        widget=forms.Textarea,
        required=False,
        strip=False,
        help_text=gettext_lazy("One per line, strongest first; \\n stands for a line break."),
    )
    token_limit = forms.IntegerField(
        label=gettext_lazy("Token limit"),
        min_value=0,
        max_value=1_000_000,
        required=False,
        help_text=gettext_lazy("No passage gets more tokens than this. 0: only characters count."),
    )
    enable_parent_child = forms.BooleanField(label=gettext_lazy("Find small passages, show the larger one around them"), required=False)
    parent_chunk_size = forms.IntegerField(label=gettext_lazy("Size of the larger"), min_value=0, max_value=100_000, required=False)
    child_chunk_size = forms.IntegerField(label=gettext_lazy("Size of the small"), min_value=0, max_value=100_000, required=False)

    heading_language = forms.ChoiceField(
        label=gettext_lazy("Language of chapter titles"),
        required=False,
        choices=LANGUAGES,
        help_text=gettext_lazy("Words like “Chapter” or “第三章” open a section in this language only."),
    )

    def config(self, kept: dict[str, Any] | None = None) -> dict[str, Any]:
        """The contract's `chunking_config`; members this form does not show stay as they are."""
        values = self.cleaned_data
        sizes = ("chunk_size", "chunk_overlap", "token_limit", "parent_chunk_size", "child_chunk_size")
        return {
            **(kept or {}),
            **{name: values.get(name) or 0 for name in sizes},
            "strategy": values["strategy"],
            "separators": [unescape(line) for line in values["separators"].replace("\r", "").split("\n") if line],
            "enable_parent_child": values["enable_parent_child"],
            "languages": self._languages((kept or {}).get("languages") or []),
        }

    def _languages(self, kept: list[str]) -> list[str]:
        """Those chosen; a choice of several, which this form cannot make, stays until another one is made."""
        chosen = self.cleaned_data.get("heading_language", "")
        is_asked = self.add_prefix("heading_language") in self.data
        return kept if chosen == SEVERAL or not is_asked else [chosen] if chosen else []


class SettingsForm(ReadingMixin, PicturesMixin, ChunkingForm):
    index_mode = forms.ChoiceField(label=gettext_lazy("Entries are found by"), choices=INDEX_MODES, required=False)
    question_index_mode = forms.ChoiceField(label=gettext_lazy("Questions of an entry"), choices=QUESTION_MODES, required=False)
    name = forms.CharField(label=gettext_lazy("Name"), required=False, strip=False)
    description = forms.CharField(label=gettext_lazy("Description"), widget=forms.Textarea, required=False, strip=False)
    wiki = forms.BooleanField(
        label=gettext_lazy("Wiki"),
        required=False,
        help_text=gettext_lazy("Pages that people keep, linked to each other. Turned off, they are kept and nobody sees or finds them."),
    )
    words = forms.BooleanField(label=gettext_lazy("Words"), required=False)
    vectors = forms.BooleanField(label=gettext_lazy("Meaning (vectors)"), required=False)
    words_share = forms.IntegerField(
        label=gettext_lazy("Weight of the words"),
        min_value=0,
        max_value=100,
        required=False,
        help_text=gettext_lazy("0 to 100; meaning has the rest. 50 weighs both alike."),
    )
    fusion = forms.ChoiceField(
        label=gettext_lazy("How both are put together"),
        required=False,
        choices=(("minmax", gettext_lazy("By their scores")), ("rrf", gettext_lazy("By their ranks"))),
    )
    summary_model = forms.ChoiceField(label=gettext_lazy("Language model"), required=False)
    questions = forms.BooleanField(label=gettext_lazy("Write questions that each passage answers"), required=False)
    question_count = forms.IntegerField(
        label=gettext_lazy("Questions a passage"), min_value=1, max_value=10, required=False, help_text=gettext_lazy("1 to 10.")
    )
    question_instructions = forms.CharField(
        label=gettext_lazy("What to mind when writing them"), widget=forms.Textarea, required=False, strip=False
    )

    tags = forms.BooleanField(
        label=gettext_lazy("Propose tags for new documents"),
        required=False,
        help_text=gettext_lazy("The language model chooses among the tags the base has; it makes none."),
    )
    tag_count = forms.IntegerField(
        label=gettext_lazy("Tags a document"), min_value=1, max_value=10, required=False, help_text=gettext_lazy("1 to 10.")
    )
    tag_untagged = forms.BooleanField(label=gettext_lazy("Only for documents that have none"), required=False)

    def __init__(
        self, *args: Any, models: list[tuple[str, str]], vision: list[tuple[str, str]] | None = None, is_faq: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["strategy"].required = not is_faq  # entries are not split
        self.fields["summary_model"].choices = models  # type: ignore[attr-defined]
        self.fields["vision_model"].choices = vision or [("", _("None"))]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        if values.get("questions") and not values.get("summary_model") and "summary_model" not in self.errors:
            self.add_error("summary_model", _("Questions need a language model. Choose one, or switch the questions off."))
        elif values.get("tags") and not values.get("summary_model") and "summary_model" not in self.errors:
            self.add_error("summary_model", _("Proposals of tags need a language model. Choose one, or switch them off."))
        self.check_pictures(values)
        return values

    def enrichment(self, base: KnowledgeBase) -> dict[str, Any]:
        """What `base_settings_update` takes."""
        values = self.cleaned_data
        questions = {
            "enabled": values["questions"],
            "question_count": values.get("question_count") or 3,
            "custom_instructions": values["question_instructions"],
        }
        tags = {
            **(base.options.get("auto_tag_config") or {}),
            "enabled": values["tags"],
            "max_tags": values.get("tag_count") or 3,
            "skip_if_tagged": values["tag_untagged"],
        }
        options = {"question_generation_config": questions, "auto_tag_config": tags, **self.pictures(base.options)}
        share = values.get("words_share")
        share = 50 if share is None else share
        retrieval = {"fusion": values.get("fusion") or "minmax", "weights": [share / 100, (100 - share) / 100]}
        return {"llmModelId": values["summary_model"], "options": options, "retrieval": retrieval}


def model_choices(actor: Actor, kind: str, kept: str) -> list[tuple[str, str]]:
    """The models of a kind the space has, and the one chosen already even when the catalogue has it no more."""
    found = [("", _("None")), *((entry.id, entry.title) for entry in model_list(actor=actor, kind=kind))]
    return found if any(model_id == kept for model_id, _title in found) else [*found, (kept, _("A model that is gone"))]


def settings_form(actor: Actor, base: KnowledgeBase, data: Any = None) -> SettingsForm:
    """The form of a base: with what was sent, else with what is stored."""
    initial = initial_of(base)
    choices: dict[str, Any] = {
        "is_faq": base.type == KnowledgeBase.Type.FAQ,
        "models": model_choices(actor, Model.Type.CHAT, base.summary_model_id),
        "vision": model_choices(actor, Model.Type.VISION, initial["vision_model"]),
    }
    form = SettingsForm(initial=initial, **choices) if data is None else SettingsForm(data, **choices)
    if initial["heading_language"] == SEVERAL:
        several = ", ".join((base.chunking_config or {})["languages"])
        form.fields["heading_language"].choices = [*LANGUAGES, (SEVERAL, several)]  # type: ignore[attr-defined]
    return form


class PreviewForm(ChunkingForm):
    sample = forms.CharField(required=False, strip=False)


def escape(separator: str) -> str:
    return separator.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def unescape(line: str) -> str:
    return line.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")


def initial_of(base: KnowledgeBase) -> dict[str, Any]:
    """The form's values; sizes that say "the default" show the default."""
    config, strategy = base.chunking_config or {}, base.indexing_strategy or {}
    sized = bool(config.get("chunk_size"))
    known = {name for name, _label in STRATEGIES}
    way = config.get("strategy") or ("recursive" if config.get("strategy") == "" else "auto")
    questions = base.options.get("question_generation_config") or {}
    tags = base.options.get("auto_tag_config") or {}
    weights = base.retrieval_config.get("weights") or (0.5, 0.5)
    languages = config.get("languages") or []
    is_one = len(languages) == 1 and languages[0] in dict(LANGUAGES)
    return {
        **reading_initial(base),
        "index_mode": index_mode(base),
        "question_index_mode": question_mode(base),
        **pictures_initial(base),
        "heading_language": SEVERAL if languages and not is_one else languages[0] if languages else "",
        "words_share": round(100 * weights[0] / ((weights[0] + weights[1]) or 1)),
        "fusion": base.retrieval_config.get("fusion") or "minmax",
        "tags": bool(tags.get("enabled")),
        "tag_count": tags.get("max_tags", 3),
        "tag_untagged": tags.get("skip_if_tagged", True),
        "summary_model": base.summary_model_id,
        "questions": bool(questions.get("enabled")),
        "question_count": questions.get("question_count", 3),
        "question_instructions": questions.get("custom_instructions", ""),
        "name": base.name,
        "description": base.description,
        "strategy": way if way in known else "recursive",
        "chunk_size": config.get("chunk_size") or CHUNKING_DEFAULTS.chunk_size,
        "chunk_overlap": config.get("chunk_overlap", 0) if sized else config.get("chunk_overlap") or CHUNKING_DEFAULTS.chunk_overlap,
        "separators": "\n".join(escape(each) for each in config.get("separators") or CHUNKING_DEFAULTS.separators),
        "token_limit": config.get("token_limit") or 0,
        "enable_parent_child": bool(config.get("enable_parent_child")),
        "parent_chunk_size": config.get("parent_chunk_size") or CHUNKING_DEFAULTS.parent_chunk_size,
        "child_chunk_size": config.get("child_chunk_size") or CHUNKING_DEFAULTS.child_chunk_size,
        "wiki": strategy.get("wiki_enabled", False),
        "words": strategy.get("keyword_enabled", True),
        "vectors": strategy.get("vector_enabled", True),
    }
