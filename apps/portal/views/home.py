"""The list of knowledge bases of a space: pinned, recent, all; making, pinning and deleting them."""

from __future__ import annotations

import unicodedata
import uuid
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.common.errors import Conflict, DomainError, NotFound
from apps.common.policy import allowed
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import BaseRow, base_get, base_list, base_row, folder_tree, recent_bases
from apps.knowledge.services import base_create, base_delete, base_pin_toggle
from apps.portal import links, samples
from apps.portal.base_frame import marks
from apps.portal.copies import copies_context
from apps.portal.trash import base_undo, days_text, kept_text
from apps.portal.views.forms import confirmed, put_error
from apps.portal.web import DialogView, PageView, done, go

#: Kinds of bases that have pages of their own here; the dialog asks only while there is a choice.
KINDS = (KnowledgeBase.Type.DOCUMENT, KnowledgeBase.Type.FAQ)
RECENT = 3


@dataclass(frozen=True, slots=True)
class Card:
    """A base as the list shows it."""

    row: BaseRow
    href: str
    marks: list[str]
    changed_at: Any

    @property
    def base(self) -> KnowledgeBase:
        return self.row.base


def fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


class BaseListView(PageView):
    """`?q=` narrows by name and description; then there is one group only."""

    actions = {"GET": "base.list"}

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        query = request.GET.get("q", "").strip()[:200]
        rows = base_list(actor=self.actor)
        cards = {row.base.pk: self._card(row) for row in rows}
        context = {
            "query": query,
            "total": len(cards),
            "groups": self._found(cards, query) if query else self._groups(cards),
            "space_id": space_id,
            **copies_context(self.actor),
            "samples_loaded": any(samples.is_sample_base(row.base) for row in rows),
            "crumbs": [{"label": _("Knowledge bases")}],
        }
        return self.fragment_or_page("portal/home.html", {"bases": "portal/_bases.html"}, context)

    @staticmethod
    def _card(row: BaseRow) -> Card:
        return Card(row, links.base_url(row.base), marks(row.base), row.counts.changed_at or row.base.updated_at)

    @staticmethod
    def _found(cards: dict[int, Card], query: str) -> list[dict[str, Any]]:
        wanted = fold(query)
        hits = [card for card in cards.values() if wanted in fold(card.base.name) or wanted in fold(card.base.description)]
        return [{"title": "", "cards": hits}] if hits else []

    def _groups(self, cards: dict[int, Card]) -> list[dict[str, Any]]:
        pinned = [card for card in cards.values() if card.row.is_pinned]
        visited = [row.base.pk for row in recent_bases(actor=self.actor, limit=RECENT + len(pinned))]
        recent = [cards[pk] for pk in visited if pk in cards and not cards[pk].row.is_pinned][:RECENT]
        every = list(cards.values())
        # Short lists need no second look at the same cards.
        if len(every) <= RECENT:
            recent = []
        groups = [(_("Pinned"), pinned), (_("Recent"), recent), (_("All"), every)]
        if len(pinned) == len(every):
            groups = [(_("Pinned"), pinned)]
        return [{"title": title, "cards": group} for title, group in groups if group]


class BaseForm(forms.Form):
    """Limits are checked by the service; the form only carries what was typed."""

    id = forms.UUIDField(widget=forms.HiddenInput, required=False)  # the same form sent twice makes one base
    type = forms.ChoiceField(
        label=gettext_lazy("What it holds"), choices=[(kind.value, kind.label) for kind in KINDS], required=False, initial=KINDS[0]
    )
    name = forms.CharField(label=gettext_lazy("Name"), required=False, strip=False)
    description = forms.CharField(label=gettext_lazy("Description"), widget=forms.Textarea, required=False, strip=False)


class BaseCreateView(DialogView):
    actions = {"GET": "base.create", "POST": "base.create"}
    template = "portal/_base_form.html"

    def get(self, request: HttpRequest, space_id: int) -> HttpResponse:
        return self._form(BaseForm(initial={"id": uuid.uuid4()}))

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        form = BaseForm(request.POST)
        if not form.is_valid():
            return self._form(form, status=422)
        values = {key: value for key, value in form.cleaned_data.items() if value}
        try:
            base = base_create(actor=self.actor, values={**values, "id": str(values["id"]) if "id" in values else ""})
        except Conflict:
            base = self._made_before(form)
        except DomainError as error:
            put_error(form, error)
            return self._form(form, status=422)
        return go(request, links.base_url(base))

    def _made_before(self, form: BaseForm) -> KnowledgeBase:
        """The base an earlier sending of this very form made. Raises: NotFound when the id belongs to something else."""
        base = base_get(actor=self.actor, kb_id=form.cleaned_data["id"])
        if base.name != form.cleaned_data["name"].strip():
            raise NotFound()
        return base

    def _form(self, form: BaseForm, status: int = 200) -> HttpResponse:
        context = {"form": form, "kinds": KINDS if len(KINDS) > 1 else (), "space_id": self.actor.space_id}
        return self.show(_("New knowledge base"), context, status=status, back=links.space_url(self.actor.space_id))


class SamplesView(PageView):
    """Load the sample documents; a second time opens what is there."""

    actions = {"POST": "base.create"}

    def post(self, request: HttpRequest, space_id: int) -> HttpResponse:
        base = samples.load(actor=self.actor, language=getattr(request, "LANGUAGE_CODE", ""))
        return go(request, links.base_url(base))


class BaseMenuView(PageView):
    """The menu of a card, filled in when it opens."""

    actions = {"GET": "base.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        context = {
            "base": base,
            "pinned": base_row(actor=self.actor, base=base).is_pinned,
            "copy_refused": not allowed(self.actor, "base.copy", base),
            "may_trash": allowed(self.actor, "trash.read", base),
            "clear_refused": not allowed(self.actor, "base.clear", base),
            "delete_refused": not allowed(self.actor, "base.delete", base),
        }
        return self.page("portal/_base_menu.html", context)


class BasePinView(PageView):
    actions = {"POST": "base.pin"}

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        pinned = base_pin_toggle(actor=self.actor, base=base)
        text = _("Pinned for you.") if pinned else _("No longer pinned.")
        return done(request, text, back=links.space_url(space_id))


class BaseDeleteView(DialogView):
    """Asks for the name, and says with figures from the server what goes."""

    actions = {"GET": "base.delete", "POST": "base.delete"}
    template = "portal/_base_delete.html"

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        return self._ask(base_get(actor=self.actor, kb_id=kb_id))

    def post(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        typed, error = confirmed(request, base.name)
        if error:
            return self._ask(base, typed=typed, error=error, status=422)
        base_delete(actor=self.actor, base=base)
        text = _("“%(name)s” was deleted.") % {"name": base.name}
        if request.POST.get("from") == "list":
            return self.done(text, back=links.space_url(space_id), detail=kept_text(), undo=base_undo(self.actor, base))
        messages.success(request, f"{text} {kept_text()}".strip())
        return go(request, links.space_url(space_id))

    def _ask(self, base: KnowledgeBase, *, typed: str = "", error: str = "", status: int = 200) -> HttpResponse:
        tree = folder_tree(actor=self.actor, base=base)
        context = {
            "base": base,
            "counts": base_row(actor=self.actor, base=base).counts,
            "folder_count": _folders(tree.folders),
            "kept_days": days_text(),
            "typed": typed,
            "error": error,
            "came_from": self.request.POST.get("from") or self.request.GET.get("from", ""),
            "space_id": base.space_id,
        }
        title = _("Delete “%(name)s”?") % {"name": base.name}
        return self.show(title, context, status=status, back=links.base_url(base))


def _folders(nodes: list[Any]) -> int:
    return sum(1 + _folders(node.children) for node in nodes)
