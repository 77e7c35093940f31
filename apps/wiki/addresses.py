"""Addresses that change hands: whatever led to the page that had one goes on leading to it. Runs in the caller's transaction."""

from __future__ import annotations

from apps.common.actor import Actor
from apps.wiki.linking import current_text
from apps.wiki.models import PageLink, PageSlug, WikiPage
from apps.wiki.store import page_rewrite


def address_take(kb_id: int, slug: str, *, keep: int = 0) -> None:
    """Free an address that a page had before, for another page: texts that name it are written anew, so that their links stay right.

    A current address is left alone; so is one of the page `keep`. A rewritten page gets a version, so that nobody who has the old text open
    saves over it unseen.
    """
    row = PageSlug.objects.filter(kb_id=kb_id, slug=slug, is_current=False).exclude(page_id=keep).first()
    if row is None:
        return
    target = WikiPage.objects.get(pk=row.page_id)
    naming = PageLink.objects.filter(kb_id=kb_id, key=slug, target=target).values("page_id")
    for page in WikiPage.objects.select_related("kb", "document").filter(pk__in=naming).order_by("pk").select_for_update(of=("self",)):
        values = {"content": current_text(page.content, {slug: target.slug})}
        actor = Actor.system(page.space_id, "an address changed hands")
        page_rewrite(page, values, actor=actor, source=WikiPage.Source.SYSTEM, note="", model_name=page.model_name)
    row.delete()
