"""The gallery tab of a base."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from apps.knowledge.selectors import base_get
from apps.portal.base_frame import base_frame
from apps.portal.gallery import GalleryQuery, gallery_context
from apps.portal.web import PageView


class ImagesView(PageView):
    actions = {"GET": "image.read"}

    def get(self, request: HttpRequest, space_id: int, kb_id: uuid.UUID) -> HttpResponse:
        base = base_get(actor=self.actor, kb_id=kb_id)
        frame = base_frame(self.actor, base, "images")
        context = {
            **frame,
            **gallery_context(self.actor, base, GalleryQuery.read(request.GET)),
            "crumbs": [*frame["crumbs"], {"label": _("Images")}],
            "space_id": space_id,
        }
        return self.fragment_or_page("portal/base_images.html", {"images": "portal/_images.html"}, context)
