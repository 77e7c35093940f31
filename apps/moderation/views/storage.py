"""What the portal's data takes, by space."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.moderation.selectors.disk import database_bytes, disk, index_bytes
from apps.moderation.selectors.storage import largest_spaces, last_report, totals
from apps.moderation.site import moderator
from apps.moderation.views.frame import page
from apps.moderation.words import size_text


def storage_view(request: HttpRequest) -> HttpResponse:
    actor = moderator(request)
    raw = request.GET.get("p", "1")
    wanted = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 7 else 1
    spaces, number, pages = largest_spaces(actor=actor, page=wanted)
    room = disk()
    held = totals(actor=actor)
    report = last_report(actor=actor)
    context = {
        "disk": room,
        "parts": [
            (_("Originals"), size_text(held.originals_bytes), _("files as people brought them, live documents only")),
            (_("Search index"), size_text(index_bytes()), _("words and vectors; it can be built again")),
            (_("Database"), size_text(database_bytes()), _("rows, passages, vectors by content")),
            (_("Free"), size_text(room.free_bytes), _("on the disk of the data folder")),
        ],
        "warn": size_text(room.warn_bytes),
        "refuse": size_text(room.refuse_bytes),
        "report": report,
        "report_bytes": size_text(report.files_bytes) if report else "",
        "rows": [
            {
                "name": space.name,
                "kind": space.get_kind_display(),
                "gone": space.deleted_at is not None,
                "href": reverse("admin:spaces_space_change", args=[space.pk]),
                "documents": holding.documents,
                "passages": holding.passages,
                "originals": size_text(holding.originals_bytes),
                "derived": size_text(holding.derived_bytes),
            }
            for space, holding in spaces
        ],
        "number": number,
        "pages": pages,
        "previous": f"?p={number - 1}" if number > 1 else "",
        "next": f"?p={number + 1}" if number < pages else "",
    }
    return page(request, "moderation/storage.html", _("Storage"), context)
