"""The FAQ tab of a base: its list, the editor of an entry, many entries at once, the match test."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.errors import Conflict, DomainError, InvalidInput
from apps.common.policy import allowed
from apps.faq.models import FaqEntry
from apps.faq.selectors import entries_get, entries_match, entry_get, entry_list, faq_base_get
from apps.faq.services import entries_delete, entries_update, entry_create, entry_update, import_show, tag_named
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import tag_get, tag_list
from apps.knowledge.services import base_visit
from apps.portal import links
from apps.portal.base_frame import base_frame
from apps.portal.faq_list import FaqQuery, entries_text, faq_context
from apps.portal.forms.faq import EntryForm
from apps.portal.templatetags.portal import known_hue
from apps.portal.trash import documents_undo, kept_text
from apps.portal.web import DialogView, PageView, done, is_htmx

MOST = 5000
PARTS = ("similar", "negative", "answer")


def export_links(base: KnowledgeBase, space_kind: str | None) -> list[dict[str, str]]:
    """Where the entries of a base are exported; the routes name the space themselves, because a link can carry no header."""
    family = "/v1/knowledge" if space_kind == "personal" else f"/v1/tenants/{base.space_id}/knowledge"
    address = f"{family}/bases/{base.uid}/faq/entries/export?format="
    kinds = (("csv", _("CSV, for spreadsheets")), ("xlsx", _("Excel workbook")), ("json", _("JSON, for programs")))
    return [{"label": label, "href": f"{address}{kind}"} for kind, label in kinds]


class FaqPageView(PageView):
    """Filters and page stand in the address."""

    actions = {"GET": "faq.read"}

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        if not request.headers.get("HX-Request"):
            base_visit(actor=self.actor, base=base)
        context = {
            **base_frame(self.actor, base, "faq"),
            **faq_context(self.actor, base, FaqQuery.read(request.GET)),
            "exports": export_links(base, self.actor.space_kind),
            "space_id": space_id,
        }
        context["total_to_take"] = context["total"] if context["total"] <= MOST else 0
        return self.page("portal/base_faq.html", context)


class EntryFormView(DialogView):
    template = "portal/_faq_entry.html"
    kind = "drawer"

    def base(self, kb_id: uuid.UUID) -> KnowledgeBase:
        return faq_base_get(actor=self.actor, kb_id=kb_id)

    def form(self, base: KnowledgeBase, form: EntryForm, entry: FaqEntry | None = None, status: int = 200, **more: Any) -> HttpResponse:
        tags = [{"value": "", "label": _("No tag")}] if entry is not None else [{"value": "", "label": _("The default tag")}]
        tags += [{"value": str(tag.pk), "label": tag.name} for tag in tag_list(actor=self.actor, base=base)]
        where = [base.space_id, base.uid]
        context = {
            "base": base,
            "entry": entry,
            "form": form,
            **form.padded(),
            "tags": [*tags, {"value": "new", "label": _("A new tag…")}],
            "strategies": [
                {"value": "all", "label": _("All of them")},
                {"value": "random", "label": _("One of them, by chance")},
            ],
            "action": reverse("faq-edit", args=[*where, entry.seq_id]) if entry is not None else reverse("faq-new", args=where),
            "part_href": reverse("faq-part", args=where),
            "guard": f"faq-{base.uid}-{entry.seq_id if entry is not None else 'new'}",
            "may_write": allowed(self.actor, "faq.write", base),
            "space_id": base.space_id,
            **more,
        }
        title = _("Edit entry") if entry is not None else _("New entry")
        return self.show(title, context, status=status, back=links.base_url(base))

    def with_tag(self, base: KnowledgeBase, form: EntryForm) -> Any:
        """The draft with the number of its tag; a new tag is made. Raises: InvalidInput."""
        draft = form.draft()
        if form.tag == "new":
            return replace(draft, tag_id=tag_named(actor=self.actor, base=base, name=draft.tag_name).pk)
        return draft


class EntryNewView(EntryFormView):
    actions = {"GET": "faq.write", "POST": "faq.write"}

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        return self.form(self.base(faq_kb_id), EntryForm())

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = self.base(faq_kb_id)
        form = EntryForm.of_post(request.POST)
        if not form.is_valid():
            return self.form(base, form, status=422)
        try:
            entry_create(actor=self.actor, base=base, draft=self.with_tag(base, form))
        except DomainError as error:
            form.put(error)
            return self.form(base, form, status=422)
        return self.done(_("Entry added."), back=links.base_url(base))


class EntryEditView(EntryFormView):
    """A member without the right to write reads the same form."""

    actions = {"GET": "faq.read", "POST": "faq.write"}

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID, entry_id: int) -> HttpResponse:
        base = self.base(faq_kb_id)
        entry = entry_get(actor=self.actor, base=base, entry_id=entry_id)
        return self.form(base, EntryForm.of_entry(entry), entry)

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID, entry_id: int) -> HttpResponse:
        base = self.base(faq_kb_id)
        entry = entry_get(actor=self.actor, base=base, entry_id=entry_id)
        form = EntryForm.of_post(request.POST)
        if not form.is_valid():
            return self.form(base, form, entry, status=422)
        try:
            entry_update(actor=self.actor, base=base, entry=entry, draft=self.with_tag(base, form), expected_version=form.version)
        except Conflict as error:
            if error.code != "revision_conflict":
                form.put(error)
                return self.form(base, form, entry, status=409)
            entry = entry_get(actor=self.actor, base=base, entry_id=entry_id)
            form.version = entry.version  # saving once more puts this on top of theirs
            return self.form(base, form, entry, status=409, theirs=entry)
        except DomainError as error:
            form.put(error)
            return self.form(base, form, entry, status=422)
        return self.done(_("Entry saved."), back=links.base_url(base))


class EntryPartView(PageView):
    """One more blank line of a list in the editor."""

    actions = {"GET": "faq.write"}

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        part = next((name for name in PARTS if name == request.GET.get("part")), PARTS[0])
        return self.page("portal/_faq_item.html", {"part": part, "number": uuid.uuid4().hex[:8], "item": None, "is_new": True})


class BulkView(DialogView):
    """`ids` are numbers of entries; `all=1` means every one that the list's own filters (in the address) match."""

    def chosen(self, request: HttpRequest, base: KnowledgeBase) -> list[FaqEntry]:
        """Raises: InvalidInput when nothing is chosen, or too much."""
        values = request.POST if request.method == "POST" else request.GET
        if values.get("all") == "1":
            found = list(entry_list(actor=self.actor, base=base, filters=FaqQuery.read(request.GET).filters())[: MOST + 1])
        else:
            numbers = [int(raw) for raw in values.getlist("ids")[: MOST + 1] if raw.isascii() and raw.isdigit() and len(raw) < 19]
            found = list(entries_get(actor=self.actor, base=base, numbers=numbers).values())
        if len(found) > MOST:
            raise InvalidInput(_("At most %(max)d entries at a time. Narrow the list first.") % {"max": MOST})
        if not found:
            raise InvalidInput(_("Choose at least one entry."))
        return found

    def ask(self, base: KnowledgeBase, entries: list[FaqEntry], title: str, **more: Any) -> HttpResponse:
        values = self.request.POST if self.request.method == "POST" else self.request.GET
        context = {
            "base": base,
            "entries": entries,
            "first": entries[:5],
            "more_count": max(0, len(entries) - 5),
            "all": values.get("all") == "1",
            "filters": FaqQuery.read(self.request.GET).href(),
            "space_id": base.space_id,
            **more,
        }
        return self.show(title, context, back=links.base_url(base))

    def finished(self, base: KnowledgeBase, text: str, **more: str) -> HttpResponse:
        response = self.done(text, back=links.base_url(base), **more)
        if "HX-Trigger" in response:
            response["HX-Trigger"] = json.dumps({**json.loads(response["HX-Trigger"]), "kb:selection-done": {}})
        return response


class BulkFlagView(BulkView):
    """`do`: enable, disable, recommend or plain (not recommended)."""

    actions = {"POST": "faq.write"}

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        acts: dict[str, tuple[dict[str, bool], str]] = {
            "enable": ({"is_enabled": True}, _("%(entries)s enabled.")),
            "disable": ({"is_enabled": False}, _("%(entries)s disabled: they are not found any more.")),
            "recommend": ({"is_recommended": True}, _("%(entries)s recommended.")),
            "plain": ({"is_recommended": False}, _("%(entries)s no longer recommended.")),
        }
        change, words = acts.get(request.GET.get("do", ""), acts["enable"])
        entries = self.chosen(request, base)
        count = entries_update(actor=self.actor, base=base, changes={entry: dict(change) for entry in entries})
        return self.finished(base, words % {"entries": entries_text(count)})


class BulkTagView(BulkView):
    actions = {"GET": "faq.write", "POST": "faq.write"}
    template = "portal/_faq_bulk_tag.html"

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        entries = self.chosen(request, base)
        tags = [{"value": "", "label": _("No tag")}]
        tags += [{"value": str(tag.pk), "label": tag.name} for tag in tag_list(actor=self.actor, base=base)]
        return self.ask(base, entries, _("Tag of %(entries)s") % {"entries": entries_text(len(entries))}, tags=tags)

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        entries = self.chosen(request, base)
        raw = request.POST.get("tag", "")
        tag = tag_get(actor=self.actor, base=base, tag_id=raw) if raw else None
        entries_update(actor=self.actor, base=base, changes={entry: {"tag": tag} for entry in entries})
        return self.finished(base, _("Tags saved."))


class BulkDeleteView(BulkView):
    actions = {"GET": "faq.write", "POST": "faq.write"}
    template = "portal/_faq_bulk_delete.html"

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        entries = self.chosen(request, base)
        return self.ask(base, entries, _("Delete %(entries)s?") % {"entries": entries_text(len(entries))}, kept=kept_text())

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        entries = self.chosen(request, base)
        gone = entries_delete(actor=self.actor, base=base, numbers=[entry.seq_id for entry in entries])
        text = _("%(entries)s deleted.") % {"entries": entries_text(len(gone))}
        return self.finished(base, text, detail=kept_text(), undo=documents_undo(self.actor, base, gone))


class MatchTestView(DialogView):
    """What an FAQ base answers to a question: score, question met, how it was found. `q` in the address runs it."""

    actions = {"GET": "faq.read"}
    template = "portal/_faq_match.html"

    def get(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        query = request.GET.get("q", "").strip()
        context: dict[str, Any] = {"base": base, "query": query, "space_id": space_id, "kinds": MATCH_KINDS()}
        if query:
            context |= self._answer(base, query)
        if is_htmx(request) and request.headers.get("HX-Target") == "faq-matches":
            return self.page("portal/_faq_matches.html", context)
        return self.show(_("Match test"), context, wide=True, back=links.base_url(base))

    def _answer(self, base: KnowledgeBase, query: str) -> dict[str, Any]:
        try:
            matches = entries_match(actor=self.actor, base=base, query=query)
        except DomainError as error:
            return {"match_error": str(error)}
        rows = []
        for match in matches.found:
            tags = [{"name": tag.name, "hue": known_hue(tag.color)} for tag in match.entry.document.tags.all()]
            edit = reverse("faq-edit", args=[base.space_id, base.uid, match.entry.seq_id])
            rows.append({"match": match, "tags": tags, "percent": round(100 * min(1.0, max(0.0, match.score))), "edit_href": edit})
        return {"matches": rows, "vetoed": matches.vetoed, "took_ms": matches.took_ms, "vector_leg": matches.legs.get("vector")}


def MATCH_KINDS() -> dict[str, str]:
    return {"semantic": _("By meaning"), "keyword": _("By words"), "both": _("By words and meaning")}


class ResultHideView(PageView):
    """Put the last import's result away."""

    actions = {"POST": "faq.write"}

    def post(self, request: HttpRequest, space_id: int, faq_kb_id: uuid.UUID) -> HttpResponse:
        base = faq_base_get(actor=self.actor, kb_id=faq_kb_id)
        import_show(actor=self.actor, base=base, shown="close")
        return done(request, _("The result was put away."), back=links.base_url(base))
