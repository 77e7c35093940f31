"""The wiki over REST, out and in: a ZIP of Markdown files and their pictures."""

from __future__ import annotations

from typing import Any

from django.http import FileResponse
from django.utils.translation import gettext as _
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from apps.common.api.parsers import StrictJSONParser
from apps.common.api.views import Op
from apps.common.errors import PayloadTooLarge
from apps.wiki import selectors, services
from apps.wiki.api import serializers as s
from apps.wiki.api.views import TAGS, WRITES, WikiView


class WikiExportView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "Export a wiki",
            shape="file",
            description="A ZIP of Markdown files with front matter, pictures under `assets/`; importing it gives the same pages.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, wiki_kb_id: str) -> FileResponse:
        path = selectors.wiki_export(actor=self.actor, base=self.base(wiki_kb_id))
        source = path.open("rb")
        path.unlink()  # gone when the answer is
        response = FileResponse(source, as_attachment=True, filename="wiki.zip", content_type="application/zip")
        response["X-Content-Type-Options"] = "nosniff"
        return response


class WikiImportView(WikiView):
    parser_classes = [MultiPartParser, StrictJSONParser]

    operations = {
        "GET": Op("wiki.import", "See how the latest import is", reply=s.WikiImportStateOut, shape="bare", tags=TAGS),
        "POST": Op(
            "wiki.import",
            "Import a ZIP of Markdown files in the background",
            body=s.WikiImportIn,
            reply=s.WikiImportStateOut,
            shape="bare",
            status=202,
            errors=(*WRITES, 413),
            invalid_code=1000,
            multipart=True,
            description="A page whose address is taken becomes the next version of the page that has it. At most 100 MB.",
            tags=TAGS,
        ),
    }

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if int(request.META.get("CONTENT_LENGTH") or 0) > services.MAX_ARCHIVE + 65536:
            raise PayloadTooLarge(_("The archive is larger than 100 MB."), field="file", max=services.MAX_ARCHIVE)

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        return self.render(selectors.import_state(actor=self.actor, base=self.base(wiki_kb_id)))

    def post(self, request: Any, wiki_kb_id: str) -> Response:
        base = self.base(wiki_kb_id)  # whoever may not see the base learns nothing of its form
        upload = self.read()["file"]
        services.wiki_import_start(actor=self.actor, base=base, items=services.archive_read(upload), file_name=upload.name)
        return self.render(selectors.import_state(actor=self.actor, base=base))
