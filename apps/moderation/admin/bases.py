"""Knowledge bases: how they are set up, what they hold, what of it failed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models import Document, KnowledgeBase, ParseStatus
from apps.moderation.admin.base import ChoiceFilter, MetadataAdmin, SpaceFilter, mark, space_link
from apps.moderation.admin.spaces import GoneFilter
from apps.moderation.rows import Fact, when
from apps.moderation.selectors.storage import holdings_of_bases
from apps.moderation.site import moderator
from apps.moderation.words import TONES, size_text


class TypeFilter(ChoiceFilter):
    title = _("type")
    parameter_name = "type"
    choices_of = KnowledgeBase.Type.choices


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(MetadataAdmin):
    noun = "base"
    names = (_("knowledge base"), _("knowledge bases"))
    list_display = ("title", "space_name", "type_word", "documents", "failed", "passages", "originals", "created", "state")
    list_filter = (TypeFilter, GoneFilter, SpaceFilter)
    search_fields = ("name", "space__name", "=uid")
    search_help_text = _("Name, space, or id")
    list_select_related = ("space",)
    ordering = ("-pk",)

    def beside(self, request: HttpRequest, rows: list[Any]) -> None:
        holdings = holdings_of_bases(actor=moderator(request), ids=[base.pk for base in rows])
        for base in rows:
            base.holding = holdings[base.pk]

    @admin.display(description=_("Name"), ordering="name")
    def title(self, base: Any) -> str:
        return str(base.name)

    @admin.display(description=_("Space"), ordering="space__name")
    def space_name(self, base: Any) -> Any:
        return space_link(base.space)

    @admin.display(description=_("Type"), ordering="type")
    def type_word(self, base: Any) -> str:
        return str(base.get_type_display())

    @admin.display(description=_("Documents"))
    def documents(self, base: Any) -> int:
        return int(base.holding.documents)

    @admin.display(description=_("Failed"))
    def failed(self, base: Any) -> Any:
        return mark("bad", base.holding.failed) if base.holding.failed else 0

    @admin.display(description=_("Passages"))
    def passages(self, base: Any) -> int:
        return int(base.holding.passages)

    @admin.display(description=_("Originals"))
    def originals(self, base: Any) -> str:
        return size_text(base.holding.originals_bytes)

    @admin.display(description=_("Made"), ordering="created_at")
    def created(self, base: Any) -> str:
        return when(base.created_at)

    @admin.display(description=_("State"), ordering="deleted_at")
    def state(self, base: Any) -> Any:
        return mark("off", _("Deleted")) if base.deleted_at else mark("good", _("There"))

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        held = holdings_of_bases(actor=moderator(request), ids=[obj.pk])[obj.pk]
        strategy = obj.indexing_strategy or {}
        legs = [str(word) for name, word in (("keyword_enabled", _("words")), ("vector_enabled", _("meaning"))) if strategy.get(name, True)]
        documents = f"{reverse('admin:knowledge_document_changelist')}?base={obj.pk}"
        return [
            Fact(
                _("State"),
                _("Deleted on %(day)s") % {"day": when(obj.deleted_at)} if obj.deleted_at else _("There"),
                tone="off" if obj.deleted_at else "good",
            ),
            Fact(_("Space"), obj.space.name, reverse("admin:spaces_space_change", args=[obj.space_id])),
            Fact(_("Type"), obj.get_type_display()),
            Fact(_("Documents"), held.documents, documents),
            Fact(_("Question pairs"), held.entries, f"{documents}&type=pair" if held.entries else ""),
            Fact(_("Failed documents"), held.failed, f"{documents}&state=failed" if held.failed else "", tone="bad" if held.failed else ""),
            Fact(_("Passages"), _("%(passages)d, %(vectors)d with vectors") % {"passages": held.passages, "vectors": held.vectors}),
            Fact(_("Originals"), size_text(held.originals_bytes)),
            Fact(_("Made from them"), size_text(held.derived_bytes) if held.derived_bytes is not None else _("not measured yet")),
            Fact(_("Searched by"), ", ".join(legs) or "—"),
            Fact(_("Embedding model"), obj.embedding_model_id or _("the deployment's"), code=bool(obj.embedding_model_id)),
            Fact(_("Searches"), _("Show them"), f"{reverse('admin:retrieval_retrievallog_changelist')}?base={obj.uid}"),
            Fact(_("Made"), when(obj.created_at)),
            Fact(_("Id"), obj.uid, code=True),
        ]

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        counts = Document.objects.filter(kb=obj, deleted_at__isnull=True).order_by().values_list("parse_status").annotate(count=Count("pk"))
        words = dict(ParseStatus.choices)
        address = reverse("admin:knowledge_document_changelist")
        return {
            "tables": [
                {
                    "title": _("Documents by state"),
                    "head": [_("State"), _("Documents")],
                    "rows": [
                        [
                            {
                                "text": words.get(status, status),
                                "tone": TONES.get(status, ""),
                                "href": f"{address}?base={obj.pk}&state={status}",
                            },
                            {"text": count},
                        ]
                        for status, count in sorted(counts, key=lambda row: -row[1])
                    ],
                    "empty": _("No document yet."),
                }
            ]
        }
