"""Reading pictures: the list of a base, the bytes behind a reference, signed links."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlencode

from django.core import signing
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext_lazy as _

from apps.common import storage
from apps.common.actor import Actor
from apps.common.errors import Forbidden, NotFound
from apps.common.policy import authorize
from apps.common.scope import space_scope
from apps.knowledge.downloads import Original, original_name
from apps.knowledge.models import SCHEME, Document, DocumentImage, KnowledgeBase
from apps.knowledge.rules import gallery
from apps.knowledge.selectors.ids import as_uuid

LINK_LIFETIME_S = 3600
_SALT = "kbportal public file"
_STORED = re.compile(r"^(?:local|minio|cos|tos|s3|oss|ks3|obs)://(.+)$", re.DOTALL)
_BACKEND = re.compile(r"^storage://[^/]+/(.+)$", re.DOTALL)
_HANDLE = re.compile(r"resource://([0-9a-fA-F-]{36})")
_SUFFIX = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/bmp": "bmp"}


@dataclass(frozen=True, slots=True)
class ImageFilters:
    """As the contract's query says it (knowledge 9.2); `document` and `has_text` are the page's own."""

    keyword: str = ""
    search_in: str = ""
    sort_by: str = ""
    sort_order: str = ""
    is_enabled: str = ""
    attr_filters: str = ""
    attr_rules: str = ""
    document: uuid.UUID | None = None
    has_text: bool | None = None


def image_list(*, actor: Actor, base: KnowledgeBase, filters: ImageFilters) -> Any:
    """Pictures of a base, each once per document, as a queryset; what a filter may not use is ignored."""
    authorize(actor, "image.read", base)
    rows = DocumentImage.objects.visible_to(actor).filter(kb=base).select_related("document", "chunk", "kb")
    if keyword := filters.keyword.strip():
        rows = rows.filter(gallery.search_condition(keyword, filters.search_in))
    if filters.is_enabled:
        rows = rows.filter(chunk__is_enabled=filters.is_enabled == "true")
    if filters.document is not None:
        rows = rows.filter(document__uid=filters.document)
    if filters.has_text is not None:
        rows = rows.exclude(ocr_text="") if filters.has_text else rows.filter(ocr_text="")
    rows = rows.filter(gallery.filter_condition(filters.attr_filters)).filter(gallery.rule_condition(filters.attr_rules))
    return rows.order_by(*gallery.order_of(filters.sort_by, filters.sort_order))


def image_sources(*, actor: Actor, base: KnowledgeBase, limit: int = 500) -> list[tuple[uuid.UUID, str]]:
    """(id, title) of the documents of a base that have pictures, by title."""
    authorize(actor, "image.read", base)
    rows = Document.objects.visible_to(actor).filter(kb=base, images__isnull=False).distinct()
    return list(rows.order_by("title", "pk").values_list("uid", "title")[:limit])


def image_count(*, actor: Actor, base: KnowledgeBase) -> int:
    authorize(actor, "image.read", base)
    return int(DocumentImage.objects.visible_to(actor).filter(kb=base).count())


def file_of(*, actor: Actor, base: KnowledgeBase | None, locator: str) -> Original:
    """The bytes a reference names (contract knowledge 9.1); `base` None: anywhere in the actor's space.

    Raises: Forbidden (code file_forbidden) when it is not of this base or space; NotFound; Forbidden for API keys limited to some bases.
    """
    authorize(actor, "file.read", base)
    if actor.kind == "key" and actor.kb_uids is not None:
        raise Forbidden(_("A key limited to some bases cannot read files."), code="key_scope")
    if locator.startswith(SCHEME):
        return _resource(actor, base, locator)
    found = _STORED.match(locator) or _BACKEND.match(locator)
    assert found is not None, "ask is_locator first"
    return _stored(actor, base, found[1])


def is_locator(text: str) -> bool:
    """Whether a text names a file in one of the accepted ways and tries no way out of its folder."""
    if ".." in text or "\x00" in text or "\\" in text or len(text) > 1000:
        return False
    if text.startswith(SCHEME):
        return as_uuid(text.removeprefix(SCHEME)) is not None
    return bool(_STORED.match(text) or _BACKEND.match(text))


def _resource(actor: Actor, base: KnowledgeBase | None, locator: str) -> Original:
    images = DocumentImage.objects.visible_to(actor).select_related("document", "kb")
    image = images.filter(uid=as_uuid(locator.removeprefix(SCHEME))).first()
    if image is None:
        raise NotFound(_("There is no such file."))
    if base is not None and image.kb_id != base.pk:
        raise Forbidden("forbidden: resource not accessible", code="file_forbidden")
    return image_original(image)


def _stored(actor: Actor, base: KnowledgeBase | None, key: str) -> Original:
    image = DocumentImage.objects.visible_to(actor).select_related("document", "kb").filter(storage_path=key).first()
    document = Document.objects.visible_to(actor).select_related("kb").filter(storage_path=key).first() if image is None else None
    owner: Any = image or document
    if owner is None:
        mine = f"{actor.space_id}/{base.uid}/" if base is not None else f"{actor.space_id}/"
        if key.startswith(mine):
            raise NotFound(_("There is no such file."))
        raise Forbidden("forbidden: file path not accessible", code="file_forbidden")
    if base is not None and owner.kb_id != base.pk:
        raise Forbidden("forbidden: file path not accessible", code="file_forbidden")
    return _open(key, original_name(owner), owner.media_type) if image is None else image_original(image)


def image_original(image: DocumentImage) -> Original:
    """The bytes of a picture. Raises: NotFound when the store lost them."""
    suffix = _SUFFIX.get(image.media_type, "bin")
    stem = PurePosixPath(image.document.title).stem[:80] or "image"
    return _open(image.storage_path, f"{stem}-{image.number + 1}.{suffix}", image.media_type)


def _open(key: str, name: str, media_type: str) -> Original:
    try:
        source = storage.read(key)
    except FileNotFoundError:
        raise NotFound(_("There is no such file.")) from None
    size_bytes = source.seek(0, os.SEEK_END)
    source.seek(0)
    return Original(name, media_type, "", size_bytes, source)


def public_path(image: DocumentImage) -> str:
    """`/r/<token>`: a link that needs no sign-in and ends after `LINK_LIFETIME_S`. SECURITY: whoever has it may open this one picture."""
    token = signing.TimestampSigner(salt=_SALT).sign(f"{image.space_id}.{image.uid.hex}")
    return f"/r/{token}"


def public_file(*, token: str) -> Original:
    """The picture a signed link names.

    Raises: NotFound for a link that is forged, older than it may be, or whose picture is gone: all alike.
    """
    gone = NotFound(_("This link is not valid any more."))
    try:
        named = signing.TimestampSigner(salt=_SALT).unsign(token, max_age=LINK_LIFETIME_S)
    except signing.BadSignature:
        raise gone from None
    space, _dot, handle = named.partition(".")
    with space_scope(int(space), "public link"):
        rows = DocumentImage.objects.select_related("document", "kb")
        image = rows.filter(uid=uuid.UUID(hex=handle), document__deleted_at__isnull=True, kb__deleted_at__isnull=True).first()
        if image is None:
            raise gone
        return image_original(image)


def presigned_path(space_id: int, locator: str, *, lifetime_s: int = LINK_LIFETIME_S) -> str:
    """`/api/v1/files/presigned?...`: a link to a file a space refers to, that needs no sign-in and says until when it is good.

    SECURITY: whoever has it may open this one file.
    """
    expires = int(time.time()) + lifetime_s
    values = {"file_path": locator, "tenant_id": space_id, "expires": expires, "sig": _signature(space_id, locator, expires)}
    return f"/api/v1/files/presigned?{urlencode(values)}"


def _signature(space_id: int, locator: str, expires: int) -> str:
    return salted_hmac(_SALT, f"{space_id}\n{expires}\n{locator}", algorithm="sha256").hexdigest()


def presigned_file(*, locator: str, tenant_id: str, expires: str, signature: str) -> Original:
    """The file a presigned link names.

    Raises: NotFound for a link that is forged, over, or whose file is gone: all alike.
    """
    gone = NotFound(_("This link is not valid any more."))
    if not (is_locator(locator) and _is_number(tenant_id) and _is_number(expires)):
        raise gone
    wanted = _signature(int(tenant_id), locator, int(expires))
    if not constant_time_compare(wanted, signature) or int(expires) < time.time():
        raise gone
    with space_scope(int(tenant_id), "presigned link"):
        try:
            return file_of(actor=Actor.system(int(tenant_id), "presigned link"), base=None, locator=locator)
        except (Forbidden, NotFound) as error:
            raise gone from error


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def check_public_links(actor: Actor) -> None:
    """Raises: Forbidden for an API key that is limited to some bases: its links would outlive the limit."""
    if actor.kind == "key" and actor.kb_uids is not None:
        raise Forbidden(_("A key limited to some bases cannot make public links."), code="key_scope")


def images_named(*, actor: Actor, texts: Iterable[str]) -> dict[str, DocumentImage]:
    """{`resource://handle`: picture} for every picture of the actor's bases named in the texts. One query, none where none is named."""
    names = {found[1].lower() for text in texts for found in _HANDLE.finditer(text)}
    uids = [uid for name in names if (uid := as_uuid(name))]
    if not uids:
        return {}
    rows = DocumentImage.objects.visible_to(actor).filter(uid__in=uids).select_related("kb", "document")
    return {row.url: row for row in rows}


def public_links(*, actor: Actor, texts: Iterable[str]) -> dict[str, str]:
    """{`resource://handle`: absolute signed link} for every picture of the actor's bases named in the texts."""
    return {url: public_path(row) for url, row in images_named(actor=actor, texts=texts).items()}


def with_links(text: str, links: dict[str, str], root: str) -> str:
    """The text with its references replaced by links under `root` (`https://host`)."""

    def swap(found: re.Match[str]) -> str:
        path = links.get(f"{SCHEME}{found[1].lower()}")
        return f"{root}{path}" if path else found[0]

    return _HANDLE.sub(swap, text)
