"""Spaces: who is in them, what they hold, who read their contents and why. No contents."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from apps.knowledge.models import KnowledgeBase
from apps.moderation.admin.base import ChoiceFilter, MetadataAdmin, link, mark
from apps.moderation.rows import Fact, when
from apps.moderation.selectors.contents import grants_of, readable_spaces
from apps.moderation.selectors.storage import holdings_of_bases, holdings_of_spaces
from apps.moderation.site import moderator
from apps.moderation.words import size_text
from apps.spaces.models import ApiKey, Membership, Space

SHOWN = 100


class GoneFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "gone"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("no", _("There")), ("yes", _("Deleted"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return {"no": queryset.filter(deleted_at__isnull=True), "yes": queryset.filter(deleted_at__isnull=False)}.get(
            self.value() or "", queryset
        )


class KindFilter(ChoiceFilter):
    title = _("kind")
    parameter_name = "kind"
    choices_of = Space.Kind.choices


@admin.register(Space)
class SpaceAdmin(MetadataAdmin):
    noun = "space"
    names = (_("space"), _("spaces"))
    list_display = ("title", "number", "kind_word", "owner_link", "people", "bases", "documents", "originals", "created", "state")
    list_filter = (KindFilter, GoneFilter)
    search_fields = ("name", "owner__email", "owner__username", "=id")
    search_help_text = _("Name, number, or the owner's address")
    list_select_related = ("owner",)
    ordering = ("-pk",)

    def beside(self, request: HttpRequest, rows: list[Any]) -> None:
        pks = [space.pk for space in rows]
        members = dict(Membership.objects.filter(space__in=pks).order_by().values_list("space_id").annotate(count=Count("pk")))
        live = KnowledgeBase.objects.filter(space__in=pks, deleted_at__isnull=True).order_by()
        bases = dict(live.values_list("space_id").annotate(count=Count("pk")))
        holdings = holdings_of_spaces(actor=moderator(request), ids=pks)
        for space in rows:
            space.member_count, space.base_count = members.get(space.pk, 0), bases.get(space.pk, 0)
            space.holding = holdings[space.pk]

    @admin.display(description=_("Name"), ordering="name")
    def title(self, space: Any) -> str:
        return str(space.name)

    @admin.display(description=_("Number"), ordering="pk")
    def number(self, space: Any) -> int:
        return int(space.pk)

    @admin.display(description=_("Kind"), ordering="kind")
    def kind_word(self, space: Any) -> str:
        return str(space.get_kind_display())

    @admin.display(description=_("Owner"))
    def owner_link(self, space: Any) -> Any:
        return link(reverse("admin:accounts_user_change", args=[space.owner_id]), space.owner.email) if space.owner else "—"

    @admin.display(description=_("Members"))
    def people(self, space: Any) -> int:
        return int(space.member_count)

    @admin.display(description=_("Bases"))
    def bases(self, space: Any) -> int:
        return int(space.base_count)

    @admin.display(description=_("Documents"))
    def documents(self, space: Any) -> int:
        return int(space.holding.documents)

    @admin.display(description=_("Originals"))
    def originals(self, space: Any) -> str:
        return size_text(space.holding.originals_bytes)

    @admin.display(description=_("Made"), ordering="created_at")
    def created(self, space: Any) -> str:
        return when(space.created_at)

    @admin.display(description=_("State"), ordering="deleted_at")
    def state(self, space: Any) -> Any:
        return mark("off", _("Deleted")) if space.deleted_at else mark("good", _("There"))

    def facts(self, request: HttpRequest, obj: Any) -> list[Fact]:
        held = holdings_of_spaces(actor=moderator(request), ids=[obj.pk])[obj.pk]
        keys = ApiKey.objects.filter(space=obj, revoked_at__isnull=True).count()
        only = f"?space={obj.pk}"
        owner = reverse("admin:accounts_user_change", args=[obj.owner_id]) if obj.owner_id else ""
        documents = reverse("admin:knowledge_document_changelist") + only
        return [
            Fact(
                _("State"),
                _("Deleted on %(day)s") % {"day": when(obj.deleted_at)} if obj.deleted_at else _("There"),
                tone="off" if obj.deleted_at else "good",
            ),
            Fact(_("Kind"), obj.get_kind_display()),
            Fact(_("Owner"), obj.owner.email if obj.owner else "—", owner),
            Fact(_("Documents"), held.documents, documents),
            Fact(_("Failed documents"), held.failed, f"{documents}&state=failed" if held.failed else "", tone="bad" if held.failed else ""),
            Fact(_("Passages"), _("%(passages)d, %(vectors)d with vectors") % {"passages": held.passages, "vectors": held.vectors}),
            Fact(_("Originals"), size_text(held.originals_bytes)),
            Fact(_("Made from them"), size_text(held.derived_bytes) if held.derived_bytes is not None else _("not measured yet")),
            Fact(_("Live API keys"), keys),
            Fact(_("Runs"), _("Show them"), reverse("admin:runs") + only),
            Fact(_("Searches"), _("Show them"), reverse("admin:retrieval_retrievallog_changelist") + only),
            Fact(_("Made"), when(obj.created_at)),
        ]

    def sections(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        actor = moderator(request, obj.pk)
        return {
            "access": access_of(request, obj, base=""),
            "tables": [
                members_table(obj),
                bases_table(moderator(request), obj),
                {
                    "title": _("Contents opened by moderators"),
                    "head": [_("Who"), _("Why"), _("From"), _("Until")],
                    "rows": [
                        [
                            {"text": grant.moderator.email},
                            {"text": grant.reason},
                            {"text": when(grant.created_at)},
                            {"text": when(grant.expires_at)},
                        ]
                        for grant in grants_of(actor=actor, space_id=obj.pk)
                    ],
                    "empty": _("Nobody who is not a member has opened contents of this space."),
                },
            ],
        }


def access_of(request: Any, space: Any, *, base: Any, onward: str = "") -> dict[str, Any]:
    """Whether contents may be read now, and the way to the form that asks why."""
    readable = readable_spaces(actor=moderator(request))
    grant = readable.granted.get(space.pk)
    query = f"?next={onward}&base={base}" if onward else ""
    return {
        "member": space.pk in readable.own,
        "until": when(grant.expires_at) if grant else "",
        "reason": grant.reason if grant else "",
        "ask": reverse("admin:grant", args=[space.pk]) + query,
    }


def members_table(space: Any) -> dict[str, Any]:
    rows = Membership.objects.filter(space=space).select_related("user").order_by("role", "user__username", "pk")
    shown = list(rows[: SHOWN + 1])
    return {
        "title": _("Members"),
        "head": [_("Person"), _("Role"), _("State"), _("Joined")],
        "rows": [
            [
                {"text": row.user.email, "href": reverse("admin:accounts_user_change", args=[row.user_id])},
                {"text": row.get_role_display()},
                {"text": _("Active") if row.user.is_active else _("Deactivated"), "tone": "good" if row.user.is_active else "off"},
                {"text": when(row.joined_at)},
            ]
            for row in shown[:SHOWN]
        ],
        "more": _("The first %(count)d are shown.") % {"count": SHOWN} if len(shown) > SHOWN else "",
        "empty": _("Nobody is in this space."),
    }


def bases_table(actor: Any, space: Any) -> dict[str, Any]:
    shown = list(KnowledgeBase.objects.filter(space=space).order_by("deleted_at", "name", "pk")[: SHOWN + 1])
    holdings = holdings_of_bases(actor=actor, ids=[base.pk for base in shown])
    return {
        "title": _("Knowledge bases"),
        "head": [_("Name"), _("Type"), _("Documents"), _("Failed"), _("Passages"), _("Originals")],
        "rows": [
            [
                {"text": base.name, "href": reverse("admin:knowledge_knowledgebase_change", args=[base.pk])},
                {"text": _("deleted") if base.deleted_at else base.get_type_display()},
                {"text": holdings[base.pk].documents},
                {"text": holdings[base.pk].failed},
                {"text": holdings[base.pk].passages},
                {"text": size_text(holdings[base.pk].originals_bytes)},
            ]
            for base in shown[:SHOWN]
        ],
        "more": _("The first %(count)d are shown.") % {"count": SHOWN} if len(shown) > SHOWN else "",
        "empty": _("No knowledge base yet."),
    }
