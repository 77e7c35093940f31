"""Addresses that change hands: whatever led to the page that had one goes on leading to it. Runs in the caller's transaction."""

from __future__ import annotations

from apps.common.actor import Actor
from apps.wiki.linking import current_text
from apps.wiki.models import PageLink, PageRevision, PageSlug, WikiPage, WikiProposal
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
    _in_the_past(kb_id, slug, target.slug)
    row.delete()


def _in_the_past(kb_id: int, slug: str, now: str) -> None:
    """Earlier versions and open proposals go on meaning the page they meant, for when one is brought back."""
    for revision in PageRevision.objects.filter(page__kb_id=kb_id, content__contains="[[").order_by("pk"):
        text = current_text(revision.content, {slug: now})
        if text != revision.content:
            PageRevision.objects.filter(pk=revision.pk).update(content=text)
    for proposal in WikiProposal.objects.filter(kb_id=kb_id, status=WikiProposal.Status.OPEN).order_by("pk"):
        text = current_text(str(proposal.draft.get("content", "")), {slug: now})
        if text != proposal.draft.get("content", ""):
            proposal.draft["content"] = text
            proposal.save(update_fields=["draft"])
