"""Putting links right, one address in every page that names it, or all at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.wiki import markup
from apps.wiki.drafts import PageChange
from apps.wiki.enabling import check_wiki
from apps.wiki.holding import locked
from apps.wiki.linking import links_write
from apps.wiki.models import PageLink, PageSource, WikiPage
from apps.wiki.selectors.overview import THIN_BYTES
from apps.wiki.services.pages import page_change
from apps.wiki.store import state_follow


def links_rebuild(*, actor: Actor, base: KnowledgeBase) -> int:
    """Work out the links of every page from its text again; how many pages there are. Raises: InvalidInput without a wiki."""
    authorize(actor, "wiki.write", base)
    check_wiki(base)
    count = 0
    for pk in list(WikiPage.objects.live().filter(kb=base).order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            page = WikiPage.objects.live().select_for_update(of=("self",)).filter(pk=pk).first()
            if page is not None:
                links_write(page)
                count += 1
    return count


def links_repair(*, actor: Actor, base: KnowledgeBase, keys: Sequence[str], target: WikiPage | None = None) -> int:
    """Let broken links of these addresses lead to a page, or (without one) be plain words, wherever they stand; how many pages changed.

    Each gets a version of its own. Raises: InvalidInput without a wiki, or when the page is of another base.
    """
    authorize(actor, "wiki.write", base)
    check_wiki(base)
    if target is not None and target.kb_id != base.pk:
        raise InvalidInput(_("Choose a page of this wiki."), field="target")
    wanted = set(keys)

    def written(link: markup.Link) -> str | None:
        if link.key not in wanted:
            return None
        return link.text if target is None else markup.written_link(target.slug, link.text, link.heading)

    note = _("Broken link put right") if target is not None else _("Broken link taken out")
    with transaction.atomic():
        rows = PageLink.objects.filter(kb=base, target__isnull=True, key__in=wanted).order_by("page_id")
        return _rewrite(actor, list(rows.values_list("page_id", flat=True).distinct()), written, note)


def _rewrite(actor: Actor, pks: Sequence[int], written: Callable[[markup.Link], str | None], note: str) -> int:
    changed = 0
    for page in WikiPage.objects.live().filter(pk__in=list(pks)).order_by("pk"):
        page = locked(page)
        text = markup.with_links(page.content, written)
        if text != page.content:
            page_change(actor=actor, page=page, change=PageChange(content=text), note=note)
            changed += 1
    return changed


def wiki_fix(*, actor: Actor, base: KnowledgeBase) -> int:
    """Put right what needs no judgement; how much it was. Bare broken links become words, empty pages are archived, references to documents
    that are gone are dropped (contract content 5.5); each changed page gets a version of its own.

    Raises: InvalidInput without a wiki.
    """
    authorize(actor, "wiki.write", base)
    check_wiki(base)
    with transaction.atomic():
        broken = PageLink.objects.filter(kb=base, target__isnull=True)
        keys = set(broken.values_list("key", flat=True))
        pks = list(broken.order_by("page_id").values_list("page_id", flat=True).distinct())
        fixed = _rewrite(actor, pks, lambda link: link.target if link.key in keys and not link.label else None, _("Broken links taken out"))
        for page in WikiPage.objects.live().filter(kb=base).exclude(status=WikiPage.Status.ARCHIVED).order_by("pk"):
            if len(page.content.encode()) < THIN_BYTES:
                change = PageChange(status=WikiPage.Status.ARCHIVED)
                page_change(actor=actor, page=page, change=change, note=_("Archived because it is empty"))
                fixed += 1
        gone, _by_model = PageSource.objects.filter(page__kb=base, state=WikiPage.State.SOURCE_WITHDRAWN).delete()
        if gone:
            fixed += gone
            _states_follow(base)
    links_rebuild(actor=actor, base=base)
    return fixed


def _states_follow(base: KnowledgeBase) -> None:
    for page in WikiPage.objects.live().filter(kb=base).exclude(state=WikiPage.State.CURRENT).order_by("pk"):
        state_follow(page)
