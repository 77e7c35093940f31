"""Where and how the browser sends files of a base, in the words of components/file_drop.html."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import accepted_extensions, space_warning
from apps.portal import links


def upload_target(base: KnowledgeBase) -> dict[str, Any]:
    """Context for the upload button, the drop zone and the tray."""
    limit = settings.MAX_FILE_SIZE >> 20
    return {
        "upload_url": links.upload_url(base),
        "upload_states_url": reverse("upload-states", args=[base.space_id, base.uid]),
        "upload_confirm_url": reverse("upload-confirm", args=[base.space_id, base.uid]),
        "upload_link": links.reader_url(base.space_id, "00000000-0000-0000-0000-000000000000").replace(
            "00000000-0000-0000-0000-000000000000", "{id}"
        ),
        "upload_accept": " ".join(sorted(accepted_extensions())),
        "upload_max_bytes": settings.MAX_FILE_SIZE,
        "upload_hint": _("PDF, Word, Excel, PowerPoint, HTML, EPUB, Markdown, CSV, text, pictures; up to %(limit)d MB each.")
        % {"limit": limit},
        "space_warning": space_warning(),
    }
