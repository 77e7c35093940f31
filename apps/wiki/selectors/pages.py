"""Finding pages: by address, id and document; lists of a base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.policy import authorize
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.selectors import as_uuid, base_get
from apps.wiki.enabling import check_wiki
from apps.wiki.models import PageSlug, WikiPage
from apps.wiki.slugs import link_key


def page_list(*, actor: Actor, base: KnowledgeBase) -> Any:
    """Live pages of a base with folders and other names, for narrowing and ordering. Raises: InvalidInput without a wiki."""
    authorize(actor, "wiki.read", base)
    check_wiki(base)
    return WikiPage.objects.visible_to(actor).filter(kb=base).select_related("kb", "folder", "document").prefetch_related("aliases")


def page_at(*, actor: Actor, base: KnowledgeBase, slug: str) -> WikiPage:
    """The page an address leads to, also one it had before. Raises: NotFound; InvalidInput without a wiki."""
    rows = page_list(actor=actor, base=base)
    key = link_key(slug)
    found = PageSlug.objects.filter(kb=base, slug=key).values_list("page_id", flat=True).first() if key else None
    page = rows.filter(pk=found).first() if found else None
    if page is None:
        raise NotFound(_("There is no such page in this wiki."))
    return page  # type: ignore[no-any-return]


def page_get(*, actor: Actor, base: KnowledgeBase, page_id: Any) -> WikiPage:
    """A page by its id. Raises: NotFound, the same for a foreign id as for one that never was; InvalidInput without a wiki."""
    rows = page_list(actor=actor, base=base)
    uid = as_uuid(page_id)
    page = rows.filter(uid=uid).first() if uid else None
    if page is None:
        raise NotFound(_("There is no such page in this wiki."))
    return page  # type: ignore[no-any-return]


def pages_get(*, actor: Actor, base: KnowledgeBase, ids: Sequence[Any]) -> list[WikiPage]:
    """Those of the named pages that are there, in the order of their titles."""
    uids = [uid for name in ids if (uid := as_uuid(name))]
    return list(page_list(actor=actor, base=base).filter(uid__in=uids).order_by("title", "pk"))


def page_of_document(*, actor: Actor, document: Document) -> WikiPage | None:
    """The page a document of the type `page` is, when the actor may read it."""
    authorize(actor, "wiki.read", document)
    return WikiPage.objects.visible_to(actor).filter(document=document).select_related("kb").first()  # type: ignore[no-any-return]


def wiki_base_get(*, actor: Actor, kb_id: Any) -> KnowledgeBase:
    """A base that has a wiki. Raises: NotFound for a base that is not there or not the actor's; InvalidInput without a wiki."""
    base = base_get(actor=actor, kb_id=kb_id)
    check_wiki(base)
    return base
