"""Pages of the wiki of a base, what they link to and rest on, and what is said about them."""

from apps.wiki.models.folders import WikiFolder
from apps.wiki.models.links import PageLink
from apps.wiki.models.pages import PageAlias, PageRevision, PageSlug, PageType, WikiPage, WikiPageQuerySet
from apps.wiki.models.review import WikiIssue, WikiProposal
from apps.wiki.models.runs import WikiImportItem, WikiRun
from apps.wiki.models.sources import PageClaim, PageSource

__all__ = [
    "PageAlias",
    "PageClaim",
    "PageLink",
    "PageRevision",
    "PageSlug",
    "PageSource",
    "PageType",
    "WikiFolder",
    "WikiImportItem",
    "WikiIssue",
    "WikiPage",
    "WikiPageQuerySet",
    "WikiProposal",
    "WikiRun",
]
