"""Pictures: gallery, what is said about them, bytes behind references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from rest_framework.response import Response

from apps.common.api.views import ApiView, Op
from apps.common.errors import Forbidden, NotFound
from apps.common.web.views import PageView
from apps.knowledge.api.bytes import as_file
from apps.knowledge.api.serializers.images import FileQuery, GalleryOut, ImageInfoIn, ImageListQuery, ImageOut
from apps.knowledge.downloads import Original
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.rules.gallery import ATTRIBUTES
from apps.knowledge.selectors import (
    ImageFilters,
    base_get,
    check_public_links,
    chunk_get,
    document_get,
    file_of,
    image_list,
    is_locator,
    presigned_file,
    public_file,
)
from apps.knowledge.services import image_info_update

TAGS = ("images",)
DAY = "private, max-age=86400"


class ImageListView(ApiView):
    operations = {
        "GET": Op(
            "image.read",
            "List images of a base",
            query=ImageListQuery,
            reply=ImageOut,
            shape="page",
            invalid_code=1000,
            description="Each image once per document. What a filter may not use is ignored.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, kb_id: str) -> Response:
        asked = self.asked()
        base = base_get(actor=self.actor, kb_id=kb_id)
        page, page_size = asked.pop("page"), asked.pop("page_size")
        if asked.pop("resource_urls") == "public":
            check_public_links(self.actor)
            self.render_context = {"root": request.build_absolute_uri("/").rstrip("/")}
        return self.page(image_list(actor=self.actor, base=base, filters=ImageFilters(**asked)), page, page_size)


class GalleryConfigView(ApiView):
    operations = {"GET": Op("image.read", "What images can be filtered, searched and sorted by", reply=GalleryOut, tags=TAGS)}

    def get(self, request: Any, kb_id: str) -> Response:
        base_get(actor=self.actor, kb_id=kb_id)
        sources = list(dict.fromkeys(attribute.source for attribute in ATTRIBUTES))
        return self.render({"attribute_sources": sources, "attributes": ATTRIBUTES, "mode": "all", "status": {}})


class ImageInfoView(ApiView):
    operations = {
        "PUT": Op(
            "image.update",
            "Say what the images of a passage show",
            body=ImageInfoIn,
            shape="message",
            examples={"caption": {"image_info": '[{"url": "resource://…", "caption": "The pump, opened"}]'}},
            tags=TAGS,
        )
    }

    def put(self, request: Any, document_id: str, chunk_id: str) -> Response:
        document = document_get(actor=self.actor, document_id=document_id)
        chunk = chunk_get(actor=self.actor, chunk_id=chunk_id, document=document)
        image_info_update(actor=self.actor, chunk=chunk, **self.read())
        return self.render(None, message="Image info updated")


class OneFile(ApiView):
    """Refusals of this route have bodies of their own (contract knowledge 9.1)."""

    def file(self, base: KnowledgeBase | None) -> HttpResponseBase:
        locator = self.asked().get("file_path", "")
        if not locator:
            return JsonResponse({"error": "missing required parameter: file_path"}, status=400)
        if not is_locator(locator):
            return JsonResponse({"error": "invalid file path"}, status=400)
        return sent(self.request._request, lambda: file_of(actor=self.actor, base=base, locator=locator), DAY)


class BaseFileView(OneFile):
    operations = {"GET": Op("file.read", "Bytes of a file a base refers to", query=FileQuery, shape="file", tags=TAGS)}

    def get(self, request: Any, kb_id: str) -> HttpResponseBase:
        return self.file(base_get(actor=self.actor, kb_id=kb_id))


class SpaceFileView(OneFile):
    operations = {"GET": Op("file.read", "Bytes of a file the space refers to", query=FileQuery, shape="file", tags=TAGS)}

    def get(self, request: Any) -> HttpResponseBase:
        return self.file(None)


class PublicFileView(PageView):
    """A signed link outside the REST families: nobody need be signed in, and it ends by itself."""

    actions = {"GET": "file.public"}

    def get(self, request: HttpRequest, token: str) -> HttpResponseBase:
        return sent(request, lambda: public_file(token=token), "private, max-age=300")


class PresignedFileView(PageView):
    """The same by a link that carries its file, its end and a signature (contract knowledge 9.1)."""

    actions = {"GET": "file.public"}

    def get(self, request: HttpRequest) -> HttpResponseBase:
        names = {"locator": "file_path", "tenant_id": "tenant_id", "expires": "expires", "signature": "sig"}
        given = {name: request.GET.get(parameter, "") for name, parameter in names.items()}
        return sent(request, lambda: presigned_file(**given), "private, max-age=300")


def sent(request: HttpRequest, find: Callable[[], Original], cache: str) -> HttpResponseBase:
    """The bytes, or the refusal these routes write themselves."""
    try:
        original = find()
    except NotFound:
        return HttpResponse(status=404)
    except Forbidden as error:
        if error.code != "file_forbidden":
            raise
        return JsonResponse({"error": str(error)}, status=403)
    return as_file(request, original, cache=cache)
