"""The gallery of a base: its pictures as the address filters them, and what the viewer shows of each."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.knowledge.models import DocumentImage, KnowledgeBase
from apps.knowledge.selectors import ImageFilters, as_uuid, image_list, image_sources
from apps.portal import links
from apps.portal.reader.places import place_text

PAGE_SIZE = 60
MAX_PAGE = 100_000
CHOICES = ("", "yes", "no")
WRITING, CHART = "system:contain.text", "system:contain.data_visual"


@dataclass(frozen=True, slots=True)
class GalleryQuery:
    """What the address says; anything unreadable in it counts as not said."""

    q: str = ""
    document: uuid.UUID | None = None
    text: str = ""
    enabled: str = ""
    writing: str = ""
    chart: str = ""
    page: int = 1

    @classmethod
    def read(cls, query: QueryDict) -> GalleryQuery:
        text, enabled, page = query.get("text", ""), query.get("enabled", ""), query.get("page", "1")
        writing, chart = query.get("writing", ""), query.get("chart", "")
        return cls(
            q=query.get("q", "").strip()[:200],
            document=as_uuid(query.get("document", "")),
            text=text if text in CHOICES else "",
            enabled=enabled if enabled in CHOICES else "",
            writing=writing if writing in ("none", "sparse", "block") else "",
            chart=chart if chart in CHOICES else "",
            page=min(MAX_PAGE, max(1, int(page[:9]))) if page.isascii() and page.isdigit() else 1,
        )

    @property
    def narrowed(self) -> bool:
        return bool(self.q or self.document or self.text or self.enabled or self.writing or self.chart)

    def filters(self) -> ImageFilters:
        observed = {}
        if self.writing:
            observed[WRITING] = [self.writing]
        if self.chart:
            observed[CHART] = [{"yes": "true", "no": "false"}[self.chart]]
        return ImageFilters(
            keyword=self.q,
            attr_filters=json.dumps(observed) if observed else "",
            document=self.document,
            has_text={"yes": True, "no": False}.get(self.text),
            is_enabled={"yes": "true", "no": "false"}.get(self.enabled, ""),
        )

    def query(self, **changes: Any) -> str:
        state = replace(self, **changes)
        said: dict[str, Any] = {"q": state.q, "document": state.document, "text": state.text, "enabled": state.enabled}
        said |= {"writing": state.writing, "chart": state.chart}
        said["page"] = state.page if state.page > 1 else ""
        return urlencode({name: value for name, value in said.items() if value})


def gallery_context(actor: Actor, base: KnowledgeBase, asked: GalleryQuery) -> dict[str, Any]:
    """Context of `portal/_images.html`."""
    rows = image_list(actor=actor, base=base, filters=asked.filters())
    total = rows.count()
    start = (asked.page - 1) * PAGE_SIZE
    images = list(rows[start : start + PAGE_SIZE])
    address = reverse("base-images", args=[base.space_id, base.uid])
    last = max(1, -(-total // PAGE_SIZE))
    return {
        "asked": asked,
        "address": address,
        "images": [_card(actor, image) for image in images],
        "total": total,
        "sources": image_sources(actor=actor, base=base),
        "text_choices": _choices(asked.text, _("With text"), _("Without text")),
        **_observed_choices(actor, base, asked),
        "enabled_choices": _choices(asked.enabled, _("Enabled"), _("Turned off")),
        "pages_text": f"{start + 1:,}–{start + len(images):,} / {total:,}" if last > 1 and images else "",
        "previous": f"{address}?{asked.query(page=min(asked.page, last + 1) - 1)}" if asked.page > 1 else "",
        "next": f"{address}?{asked.query(page=asked.page + 1)}" if asked.page < last else "",
    }


def _choices(current: str, yes: str, no: str) -> list[tuple[str, str, bool]]:
    return [(value, label, value == current) for value, label in (("", _("All")), ("yes", yes), ("no", no))]


def _observed_choices(actor: Actor, base: KnowledgeBase, asked: GalleryQuery) -> dict[str, Any]:
    """Filters by what a model observed, where it observed anything."""
    if not (asked.writing or asked.chart) and not image_list(actor=actor, base=base, filters=ImageFilters()).exclude(attrs=None).exists():
        return {}
    writing = [("", _("Any amount of writing")), ("none", _("No writing")), ("sparse", _("A little writing")), ("block", _("Much writing"))]
    chart = [("", _("With and without charts")), ("yes", _("Charts and diagrams")), ("no", _("No charts"))]
    return {
        "observed": [
            ("writing", _("Writing in the image"), [(value, label, value == asked.writing) for value, label in writing]),
            ("chart", _("Charts"), [(value, label, value == asked.chart) for value, label in chart]),
        ]
    }


def observed_words(attrs: dict[str, Any] | None) -> str:
    """What was observed of a picture, for its facts; "" when nothing was."""
    known = attrs or {}
    writing = {"none": _("no writing"), "sparse": _("a little writing"), "block": _("much writing")}.get(str(known.get(WRITING)), "")
    chart = {True: _("chart or diagram"), False: _("no chart")}.get(known[CHART], "") if isinstance(known.get(CHART), bool) else ""
    return " · ".join(filter(None, [writing, chart]))


def _card(actor: Actor, image: DocumentImage) -> dict[str, Any]:
    reader = links.reader_url(image.space_id, image.document.uid)
    return {
        "src": links.file_url(actor, image.space_id, image.kb.uid, image.url),
        "title": image.caption or image.document.title,
        "alt": image.caption or _("Image %(number)s of %(document)s") % {"number": image.number + 1, "document": image.document.title},
        "document": image.document.title,
        "place": place_text([image.position]),
        "ocr_text": image.ocr_text,
        "observed": observed_words(image.attrs),
        "caption": image.caption if image.caption != image.document.title else "",
        "size": f"{image.width} × {image.height}" if image.width else "",
        "href": f"{reader}?{urlencode({'chunk': image.chunk.uid})}",
        "is_enabled": image.chunk.is_enabled,
    }
