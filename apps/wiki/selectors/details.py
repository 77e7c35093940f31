"""What stands around a page: who links to it, where it links to, what it rests on, what it was before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import NotFound
from apps.common.policy import authorize
from apps.wiki import markup
from apps.wiki.models import PageClaim, PageLink, PageRevision, PageSource, WikiPage


@dataclass(slots=True)
class Around:
    """`in_links`, `out_links`: addresses, in order; `source_refs`: ids of documents; `chunk_refs`: ids of passages."""

    in_links: list[str] = field(default_factory=list)
    out_links: list[str] = field(default_factory=list)
    source_refs: list[str] = field(default_factory=list)
    chunk_refs: list[str] = field(default_factory=list)


def around(*, actor: Actor, pages: Sequence[WikiPage]) -> dict[int, Around]:
    """What is beside each of these pages, by primary key; four queries however many there are."""
    for page in pages[:1]:
        authorize(actor, "wiki.read", page)
    found = {page.pk: Around() for page in pages}
    links = PageLink.objects.filter(page_id__in=found).order_by("page_id", "place", "pk")
    for pk, key, slug in links.values_list("page_id", "key", "target__slug"):
        found[pk].out_links.append(slug or key)
    back = PageLink.objects.filter(target_id__in=found).exclude(page=None).order_by("page__slug", "pk")
    for pk, slug in back.values_list("target_id", "page__slug"):
        found[pk].in_links.append(slug)
    sources = PageSource.objects.filter(page_id__in=found).exclude(state=WikiPage.State.SOURCE_WITHDRAWN).order_by("place", "pk")
    for pk, uid in sources.values_list("page_id", "document_uid"):
        found[pk].source_refs.append(str(uid))
    claims = PageClaim.objects.filter(page_id__in=found).exclude(state=WikiPage.State.SOURCE_WITHDRAWN).order_by("place", "pk")
    for pk, uids in claims.values_list("page_id", "chunk_uids"):
        found[pk].chunk_refs += [uid for uid in uids if uid not in found[pk].chunk_refs]
    return found


def page_links(*, actor: Actor, page: WikiPage) -> list[PageLink]:
    """Where a page links to, in the order of its text, with the pages linked."""
    authorize(actor, "wiki.read", page)
    return list(PageLink.objects.filter(page=page).select_related("target").order_by("place", "pk"))


def page_backlinks(*, actor: Actor, page: WikiPage) -> list[WikiPage]:
    """The pages that link to a page, by title."""
    authorize(actor, "wiki.read", page)
    rows = WikiPage.objects.visible_to(actor).filter(kb_id=page.kb_id, pk__in=PageLink.objects.filter(target=page).values("page_id"))
    return list(rows.exclude(pk=page.pk).order_by("title", "pk"))


def page_sources(*, actor: Actor, page: WikiPage) -> list[PageSource]:
    """The documents a page rests on, those that are gone too."""
    authorize(actor, "wiki.read", page)
    return list(PageSource.objects.filter(page=page).select_related("document").order_by("place", "pk"))


def page_claims(*, actor: Actor, page: WikiPage) -> list[PageClaim]:
    """The claims of a page in the order of its text, with their documents."""
    authorize(actor, "wiki.read", page)
    return list(PageClaim.objects.filter(page=page).select_related("document").order_by("place", "pk"))


def marked_text(text: str, written: Callable[[markup.Link], str | None], mark: Callable[[str], str | None]) -> str:
    """A text of a page with its links and marks of claims written as `written` and `mark` say; None leaves one as it stands."""
    return markup.marked(text, written, mark)


def revision_list(*, actor: Actor, page: WikiPage) -> Any:
    """Earlier versions of a page, newest first."""
    authorize(actor, "wiki.read", page)
    return PageRevision.objects.filter(page=page).select_related("editor").order_by("-version")


def revision_get(*, actor: Actor, page: WikiPage, version: int) -> PageRevision:
    """One earlier version. Raises: NotFound when it is not kept."""
    found = revision_list(actor=actor, page=page).filter(version=version).first()
    if found is None:
        raise NotFound(_("This version of the page is not kept any more."), field="version")
    return found  # type: ignore[no-any-return]
