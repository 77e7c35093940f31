"""The wiki over REST as a whole (contract content 5.5, 5.6): index, figures, search, what is wrong with it, proposals."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.response import Response

from apps.common.api.views import Empty, Op
from apps.common.errors import InvalidInput
from apps.wiki import selectors, services
from apps.wiki.api import serializers as s
from apps.wiki.api.views import TAGS, WRITES, WikiView, words


class WikiIndexView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "Read the index of a wiki: pages by type",
            query=s.IndexQuery,
            reply=s.WikiIndexOut,
            shape="bare",
            description="`next_cursor` of a group goes on in all groups asked for.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        asked, base = self.asked(), self.base(wiki_kb_id)
        types, limit = selectors.clean_types(words(asked.get("types", ""))), min(asked["limit"] or 50, 200)
        return self.render(selectors.wiki_index(actor=self.actor, base=base, types=types, limit=limit, cursor=asked.get("cursor", "")))


class WikiStatsView(WikiView):
    operations = {"GET": Op("wiki.read", "Read the figures of a wiki", reply=s.WikiStatsOut, shape="bare", tags=TAGS)}

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        stats = selectors.wiki_stats(actor=self.actor, base=self.base(wiki_kb_id))
        self.shaped(stats.recent_updates)
        return self.render(stats)


class WikiSearchView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "Search the pages of a wiki",
            query=s.SearchQuery,
            reply=s.WikiPagesOut,
            shape="bare",
            invalid_code=1000,
            description="Pages that hold every word, in title, other names, address, summary or text; those in the title first.",
            tags=TAGS,
        )
    }

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        asked, base = self.asked(), self.base(wiki_kb_id)
        limit = min(asked["limit"] or 10, 50)
        pages = selectors.pages_search(actor=self.actor, base=base, words=asked["q"], limit=limit)
        self.shaped(pages)
        return self.render({"pages": pages})


class WikiLintView(WikiView):
    operations = {"GET": Op("wiki.read", "Look a wiki over for what is wrong with it", reply=s.WikiLintOut, shape="bare", tags=TAGS)}

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        base = self.base(wiki_kb_id)
        lint = selectors.wiki_lint(actor=self.actor, base=base)
        told = {"knowledge_base_id": str(base.uid), "issues": lint.issues, "health_score": lint.health_score}
        return self.render({**told, "stats": lint.stats, "summary": lint.summary})


class WikiRebuildLinksView(WikiView):
    operations = {
        "POST": Op("wiki.write", "Work out the links of every page again", body=Empty, reply=s.WikiMessageOut, shape="bare", tags=TAGS)
    }

    def post(self, request: Any, wiki_kb_id: str) -> Response:
        services.links_rebuild(actor=self.actor, base=self.base(wiki_kb_id))
        return self.render({"message": "Links rebuilt successfully"})


class WikiAutoFixView(WikiView):
    operations = {
        "POST": Op(
            "wiki.write",
            "Put right what needs no judgement",
            body=Empty,
            reply=s.WikiFixedOut,
            shape="bare",
            description="Bare broken links become words, empty pages are archived, references to documents that are gone are dropped.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, wiki_kb_id: str) -> Response:
        fixed = services.wiki_fix(actor=self.actor, base=self.base(wiki_kb_id))
        return self.render({"fixed": fixed, "message": f"{fixed} issues fixed"})


class WikiBrokenLinksView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "List links that lead nowhere, by address",
            reply=s.WikiBrokenLinkOut,
            shape="bare_list",
            tags=TAGS,
        )
    }

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        return self.render(selectors.broken_links(actor=self.actor, base=self.base(wiki_kb_id)))


class WikiIssuesView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read", "List the issues of a wiki, newest first", query=s.IssueQuery, reply=s.WikiIssueOut, shape="bare_list", tags=TAGS
        )
    }

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        asked, base = self.asked(), self.base(wiki_kb_id)
        status = _status(asked["status"]) if asked.get("status") else ""
        return self.render(list(selectors.issue_list(actor=self.actor, base=base, slug=asked.get("slug", ""), status=status)[:1000]))


class WikiIssueStatusView(WikiView):
    operations = {
        "PUT": Op(
            "wiki.write",
            "Settle an issue, or open it again",
            body=s.WikiIssueStatusIn,
            reply=s.WikiMessageOut,
            shape="bare",
            invalid_code=1000,
            examples={"done": {"status": "resolved"}},
            tags=TAGS,
        )
    }

    def put(self, request: Any, wiki_kb_id: str, wiki_issue_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        issue = selectors.issue_get(actor=self.actor, base=base, issue_id=wiki_issue_id)
        services.issue_status_set(actor=self.actor, issue=issue, status=_status(body["status"]))
        return self.render({"message": "Issue status updated successfully"})


def _status(name: str) -> str:
    if name not in s.STATUS_OF:
        raise InvalidInput(_("There is no such status."), field="status", known=sorted(s.STATUS_OF), api_code=1000)
    return s.STATUS_OF[name]


class WikiProposalsView(WikiView):
    operations = {
        "GET": Op(
            "wiki.read",
            "List changes proposed for pages that people keep",
            query=s.ProposalQuery,
            reply=s.WikiProposalsOut,
            shape="bare",
            tags=TAGS,
        )
    }

    def get(self, request: Any, wiki_kb_id: str) -> Response:
        asked, base = self.asked(), self.base(wiki_kb_id)
        rows = selectors.proposal_list(actor=self.actor, base=base, status=asked.get("status", "open"))
        start = (asked["page"] - 1) * asked["page_size"]
        found = list(rows[start : start + asked["page_size"]])
        return self.render({"proposals": found, "total": rows.count(), "page": asked["page"], "page_size": asked["page_size"]})


class WikiProposalView(WikiView):
    operations = {
        "POST": Op(
            "wiki.write",
            "Take a proposed change over, or put it aside",
            body=s.WikiDecisionIn,
            reply=s.WikiProposalOut,
            shape="bare",
            errors=WRITES,
            invalid_code=1000,
            description="`version`: that of the page the decision was made on; without it, a page changed since is a conflict.",
            examples={"yes": {"decision": "accept"}},
            tags=TAGS,
        )
    }

    def post(self, request: Any, wiki_kb_id: str, wiki_proposal_id: str) -> Response:
        body, base = self.read(), self.base(wiki_kb_id)
        proposal = selectors.proposal_get(actor=self.actor, base=base, proposal_id=wiki_proposal_id)
        if body["decision"] == "accept":
            services.proposal_accept(actor=self.actor, proposal=proposal, expected_version=body.get("version") or None)
        else:
            services.proposal_reject(actor=self.actor, proposal=proposal)
        proposal.refresh_from_db()
        return self.render(proposal)
