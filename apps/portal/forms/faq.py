"""The editor of an entry: what was typed, item by item, and each error beside its item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext as _

from apps.common.errors import DomainError
from apps.common.text import utf16_length
from apps.faq.models import FaqEntry
from apps.faq.services import MAX_TEXT, Draft, clean_text, draft_of

LISTS = {"similar_questions": "similar", "negative_questions": "negative", "answers": "answer"}
MOST = 1000


@dataclass(slots=True)
class Item:
    value: str = ""
    error: str = ""


@dataclass(slots=True)
class EntryForm:
    """`tag`: number of a tag, "new" for the name in `tag_name`, or "" for none. `version`: what the change is based on."""

    standard_question: Item = field(default_factory=Item)
    similar: list[Item] = field(default_factory=list)
    negative: list[Item] = field(default_factory=list)
    answer: list[Item] = field(default_factory=lambda: [Item()])
    strategy: str = "all"
    tag: str = ""
    tag_name: Item = field(default_factory=Item)
    is_enabled: bool = True
    is_recommended: bool = False
    version: int | None = None
    error: str = ""

    @classmethod
    def of_entry(cls, entry: FaqEntry) -> EntryForm:
        tags = sorted(entry.document.tags.all(), key=lambda tag: tag.pk)
        return cls(
            standard_question=Item(entry.standard_question),
            similar=[Item(text) for text in entry.similar_questions],
            negative=[Item(text) for text in entry.negative_questions],
            answer=[Item(text) for text in entry.answers] or [Item()],
            strategy=entry.answer_strategy,
            tag=str(tags[0].pk) if tags else "",
            is_enabled=entry.is_enabled,
            is_recommended=entry.is_recommended,
            version=entry.version,
        )

    @classmethod
    def of_post(cls, posted: QueryDict) -> EntryForm:
        version = posted.get("version", "")
        return cls(
            standard_question=Item(posted.get("standard_question", "")),
            similar=[Item(text) for text in posted.getlist("similar")[:MOST]],
            negative=[Item(text) for text in posted.getlist("negative")[:MOST]],
            answer=[Item(text) for text in posted.getlist("answer")[:MOST]] or [Item()],
            strategy="random" if posted.get("strategy") == "random" else "all",
            tag=posted.get("tag", ""),
            tag_name=Item(posted.get("tag_name", "")),
            is_enabled=bool(posted.get("is_enabled")),
            is_recommended=bool(posted.get("is_recommended")),
            version=int(version) if version.isascii() and version.isdigit() and len(version) < 10 else None,
        )

    def is_valid(self) -> bool:
        """Check what can be told without the base, so that all of it is shown at once."""
        if not self.standard_question.value.strip():
            self.standard_question.error = _("Write the question people ask.")
        if not any(item.value.strip() for item in self.answer):
            self.answer[0].error = _("Write an answer.")
        for item in (self.standard_question, *self.similar, *self.negative, *self.answer):
            length = utf16_length(clean_text(item.value))
            if length > MAX_TEXT:
                item.error = _("%(length)s characters; at most %(max)s are allowed.") % {"length": f"{length:,}", "max": f"{MAX_TEXT:,}"}
        if self.tag == "new" and not self.tag_name.value.strip():
            self.tag_name.error = _("Give the new tag a name.")
        items = (self.standard_question, self.tag_name, *self.similar, *self.negative, *self.answer)
        return not any(item.error for item in items)

    def draft(self) -> Draft:
        return draft_of(
            {
                "standard_question": self.standard_question.value,
                "similar_questions": [item.value for item in self.similar],
                "negative_questions": [item.value for item in self.negative],
                "answers": [item.value for item in self.answer],
                "answer_strategy": self.strategy,
                "tag_id": int(self.tag) if self.tag.isascii() and self.tag.isdigit() and len(self.tag) < 19 else 0,
                "tag_name": self.tag_name.value if self.tag == "new" else "",
                "is_enabled": self.is_enabled,
                "is_recommended": self.is_recommended,
            }
        )

    def put(self, error: DomainError) -> None:
        """An expected error of the service beside the item it is about."""
        about = str(error.details.get("text", ""))
        items = getattr(self, LISTS[error.field]) if error.field in LISTS else []
        item = next((each for each in items if about and clean_text(each.value).startswith(about)), items[0] if items else None)
        if error.field == "standard_question":
            item = self.standard_question
        elif error.field in ("tag_name", "name"):
            item = self.tag_name
        if item is None:
            self.error = str(error)
        else:
            item.error = str(error)

    @property
    def has_error(self) -> bool:
        return bool(self.error) or any(
            item.error for item in (self.standard_question, self.tag_name, *self.similar, *self.negative, *self.answer)
        )

    def padded(self) -> dict[str, Any]:
        """The lists as the page draws them: with a blank line to write the next one in."""
        return {
            "similar_items": self.similar if self.similar and not self.similar[-1].value.strip() else [*self.similar, Item()],
            "negative_items": self.negative if self.negative and not self.negative[-1].value.strip() else [*self.negative, Item()],
            "answer_items": self.answer,
        }
