"""What every page of a knowledge base shows around its content: title, marks, figures, tabs, way back."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.common.actor import Actor
from apps.common.policy import allowed
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import BaseRow, base_row
from apps.portal import links
from apps.portal.samples import is_sample_base
from apps.wiki.selectors import has_wiki


def base_frame(actor: Actor, base: KnowledgeBase, tab: str) -> dict[str, Any]:
    """Context of `portal/_base_head.html` and of the breadcrumbs; `tab`: documents, faq, wiki, test, images, sources, activity..."""
    row = base_row(actor=actor, base=base)
    return {
        "base": base,
        "base_row": row,
        "base_marks": marks(base),
        "base_coverage": coverage(row),
        "base_meta": meta(row),
        "base_changed_at": row.counts.changed_at or base.updated_at,
        "base_tabs": tabs(actor, base, row, tab),
        "crumbs": [{"label": _("Knowledge bases"), "href": links.space_url(base.space_id)}, {"label": base.name}],
        "ask_url": f"{reverse('ask', args=[base.space_id])}?base={base.uid}" if allowed(actor, "chat.read") else "",
        "may_write": allowed(actor, "document.create", base),
        "may_manage": allowed(actor, "base.update", base),
    }


def marks(base: KnowledgeBase) -> list[str]:
    """What the base can do, in short words."""
    strategy = base.indexing_strategy or {}
    words, vectors = bool(strategy.get("keyword_enabled", True)), bool(strategy.get("vector_enabled", True))
    found = [_("Hybrid search") if words and vectors else _("Word search") if words else _("Vector search") if vectors else _("No search")]
    if (base.chunking_config or {}).get("enable_parent_child"):
        found.append(_("Parent passages"))
    if is_sample_base(base):
        found.append(_("Samples"))
    return found


def coverage(row: BaseRow) -> int | None:
    """Whole percent of passages with a vector; None when there is nothing to cover. 100 only when none is missing."""
    strategy = row.base.indexing_strategy or {}
    if not strategy.get("vector_enabled", True) or not row.counts.passages:
        return None
    return min(100, 100 * row.counts.vectors // row.counts.passages)


def meta(row: BaseRow) -> list[str]:
    counts = row.counts
    if row.base.type == KnowledgeBase.Type.FAQ:
        found = [ngettext("%(count)s entry", "%(count)s entries", counts.entries) % {"count": f"{counts.entries:,}"}]
    else:
        found = [
            ngettext("%(count)s document", "%(count)s documents", counts.documents) % {"count": f"{counts.documents:,}"},
            ngettext("%(count)s passage", "%(count)s passages", counts.passages) % {"count": f"{counts.passages:,}"},
        ]
    percent = coverage(row)
    if percent is not None:
        found.append(_("vectors %(percent)d%%") % {"percent": percent})
    if counts.processing:
        found.append(_("%(count)s being read") % {"count": f"{counts.processing:,}"})
    if counts.failed:
        found.append(_("%(count)s failed") % {"count": f"{counts.failed:,}"})
    return found


def tabs(actor: Actor, base: KnowledgeBase, row: BaseRow, current: str) -> list[dict[str, Any]]:
    """Only the tabs that exist here."""
    is_faq = base.type == KnowledgeBase.Type.FAQ
    count = row.counts.entries if is_faq else row.counts.documents
    first = {"label": _("FAQ") if is_faq else _("Documents"), "href": links.base_url(base), "current": current in ("documents", "faq")}
    found: list[dict[str, Any]] = [first | {"count": f"{count:,}", "count_id": "base-count"}]
    if has_wiki(base):
        wiki = reverse("base-wiki", args=[base.space_id, base.uid])
        found.append({"label": _("Wiki"), "href": wiki, "current": current == "wiki"})
    if address := links.test_url(base):
        found.append({"label": _("Retrieval test"), "href": address, "current": current == "test"})
    if not is_faq:
        images = reverse("base-images", args=[base.space_id, base.uid])
        found.append({"label": _("Images"), "href": images, "current": current == "images"})
        if allowed(actor, "source.read", base):
            sources = reverse("base-sources", args=[base.space_id, base.uid])
            found.append({"label": _("Sources"), "href": sources, "current": current == "sources"})
    if allowed(actor, "base.activity", base):
        activity = reverse("base-activity", args=[base.space_id, base.uid])
        found.append({"label": _("Activity"), "href": activity, "current": current == "activity"})
    settings = reverse("base-settings", args=[base.space_id, base.uid])
    found.append({"label": _("Settings"), "href": settings, "current": current == "settings"})
    return found
