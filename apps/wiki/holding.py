"""Pages held for a change, and the refusals of changes that came too late. Runs in the caller's transaction."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from apps.common.errors import Conflict, NotFound
from apps.knowledge.models import KnowledgeBase
from apps.wiki.linking import shown_content
from apps.wiki.models import WikiPage


def locked(page: WikiPage) -> WikiPage:
    """The page as it is, held until the transaction ends. Raises: NotFound when it was deleted."""
    rows = WikiPage.objects.select_related("kb", "document", "folder").live()
    found = rows.select_for_update(of=("self",)).filter(pk=page.pk).first()
    if found is None:
        raise NotFound(_("This page was deleted in the meantime."))
    return found  # type: ignore[no-any-return]


def check_version(page: WikiPage, expected: int | None) -> None:
    """Raises: Conflict with the page as it is now when somebody changed it since `expected`."""
    if expected and expected != page.version:
        raise Conflict(
            _("Someone changed this page in the meantime. Compare theirs with yours and save again."),
            code="version_conflict",
            current_version=page.version,
            title=page.title,
            content=shown_content(page),
            summary=page.summary,
            aliases=page.alias_names,
        )


def slug_taken(base: KnowledgeBase, slug: str) -> Conflict:
    """Another page has the address: which one."""
    other = WikiPage.objects.live().filter(kb=base, slugs__slug=slug, slugs__is_current=True).first()
    words = _("The page “%(title)s” has this address. Choose another one.") % {"title": other.title[:80] if other else slug}
    return Conflict(words, code="slug_taken", field="slug", slug=slug)
