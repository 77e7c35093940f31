"""A page as it is read: its Markdown with links and marks of claims, and what stands beside it."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from apps.common import markdown
from apps.common.actor import Actor
from apps.portal.links import optional_url, reader_url
from apps.portal.wiki.frame import MODE_WORDS, SOURCE_WORDS, STATE_WORDS, TYPE_WORDS, page_url
from apps.wiki import selectors
from apps.wiki.models import PageClaim, PageLink, PageSource, WikiPage

ISSUES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ClaimRow:
    number: int
    claim: PageClaim
    href: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class SourceRow:
    source: PageSource
    href: str
    state: str


def page_html(page: WikiPage, text: str, links: Sequence[PageLink], claims: Sequence[PageClaim], *, may_write: bool) -> SafeString:
    """Safe HTML of a text of this page; links go to the pages they mean, broken ones to where the page would be made."""
    by_key = {link.key: link for link in links}
    numbers = {claim.anchor: number for number, claim in enumerate(claims, 1)}
    known: dict[str, str] = {}

    def written(link: Any) -> str | None:
        row = by_key.get(link.key)
        name = f"wiki:{len(known)}"
        if row is not None and row.target is not None:
            known[name] = page_url(row.target, page.kb.uid)
            label = link.label or (row.target.title if link.target == row.target.slug else link.target)
            return f'<a href="{name}" class="wiki-link">{html.escape(label)}</a>'
        if may_write:
            asked = urlencode({"slug": link.key, "title": link.label or link.target})
            known[name] = f"{reverse('wiki-new', args=[page.space_id, page.kb.uid])}?{asked}"
            return f'<a href="{name}" class="wiki-link wiki-link--broken">{html.escape(link.text)}</a>'
        return html.escape(link.text)

    marked = selectors.marked_text(text, written, lambda anchor: _mark(anchor, numbers, known))
    return markdown.render(marked, links=known)


def _mark(anchor: str, numbers: Mapping[str, int], known: dict[str, str]) -> str | None:
    number = numbers.get(anchor)
    if number is None:
        return None
    name = f"wiki:claim-{number}"
    known[name] = f"#claim-{number}"
    return f'<a href="{name}" class="cite">{number}</a>'


def reading_context(actor: Actor, page: WikiPage, *, may_write: bool) -> dict[str, Any]:
    """Context of `portal/wiki_page.html` for one page: text, summary, names, links both ways, sources, claims, open issues."""
    links = selectors.page_links(actor=actor, page=page)
    claims = selectors.page_claims(actor=actor, page=page)
    issues = selectors.issue_list(actor=actor, base=page.kb, slug=page.slug, status="open")
    return {
        "wiki_page": page,
        "uid_text": str(page.uid),
        "type_word": TYPE_WORDS[page.page_type],
        "state_word": STATE_WORDS[WikiPage.State(page.state)],
        "mode_word": MODE_WORDS.get(WikiPage.Mode(page.made_by), ""),
        "source_word": SOURCE_WORDS[WikiPage.Source(page.source)],
        "body": page_html(page, page.content, links, claims, may_write=may_write),
        "summary": page_html(page, page.summary, links, claims, may_write=may_write) if page.summary else "",
        "aliases": page.alias_names,
        "out_links": [(link, page_url(link.target, page.kb.uid)) for link in links if link.target is not None],
        "broken": [link for link in links if link.target is None],
        "backlinks": [(other, page_url(other, page.kb.uid)) for other in selectors.page_backlinks(actor=actor, page=page)],
        "sources": [_source(page, source) for source in selectors.page_sources(actor=actor, page=page)],
        "claims": [_claim(page, number, claim) for number, claim in enumerate(claims, 1)],
        "issues": list(issues[:ISSUES_SHOWN]),
        "graph_href": _graph(page),
    }


def _graph(page: WikiPage) -> str:
    address = optional_url("base-graph", page.space_id, page.kb.uid)
    return f"{address}?{urlencode({'center': page.slug})}" if address else ""


def _source(page: WikiPage, source: PageSource) -> SourceRow:
    document = source.document
    live = document is not None and document.deleted_at is None
    words = {
        WikiPage.State.SOURCE_CHANGED: _("changed since"),
        WikiPage.State.SOURCE_WITHDRAWN: _("withdrawn"),
    }
    state = source.state if live else WikiPage.State.SOURCE_WITHDRAWN
    return SourceRow(source, reader_url(page.space_id, source.document_uid) if live else "", words.get(WikiPage.State(state), ""))


def _claim(page: WikiPage, number: int, claim: PageClaim) -> ClaimRow:
    live = claim.document is not None and claim.document.deleted_at is None
    href = reader_url(page.space_id, claim.document_uid) if live else ""
    if href and claim.chunk_uids:
        href = f"{href}?{urlencode({'chunk': claim.chunk_uids[0]})}#here"
    return ClaimRow(number, claim, href, live and claim.state == WikiPage.State.CURRENT)
