"""Issues and proposals of a wiki."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import InvalidInput, NotFound
from apps.common.policy import authorize
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import as_uuid
from apps.wiki.enabling import check_wiki
from apps.wiki.models import WikiIssue, WikiProposal


def issue_list(*, actor: Actor, base: KnowledgeBase, slug: str = "", status: str = "", kind: str = "") -> Any:
    """Issues of live pages, newest first. Raises: InvalidInput at `status`, or without a wiki."""
    authorize(actor, "wiki.read", base)
    check_wiki(base)
    rows = WikiIssue.objects.visible_to(actor).filter(kb=base, page__document__deleted_at__isnull=True)
    if status:
        if status not in WikiIssue.Status.values:
            raise InvalidInput(_("There is no such status."), field="status", known=WikiIssue.Status.values)
        rows = rows.filter(status=status)
    if slug:
        rows = rows.filter(page__slugs__slug=slug)
    if kind:
        rows = rows.filter(kind=kind)
    return rows.select_related("page", "page__folder", "other_page", "raiser", "kb").order_by("-pk")


def issue_get(*, actor: Actor, base: KnowledgeBase, issue_id: Any) -> WikiIssue:
    """One issue. Raises: NotFound, the same for one of another base as for one that never was."""
    uid = as_uuid(issue_id)
    found = issue_list(actor=actor, base=base).filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("There is no such issue in this wiki."))
    return found  # type: ignore[no-any-return]


def proposal_list(*, actor: Actor, base: KnowledgeBase, status: str = WikiProposal.Status.OPEN) -> Any:
    """Proposals for live pages, newest first. Raises: InvalidInput without a wiki."""
    authorize(actor, "wiki.read", base)
    check_wiki(base)
    rows = WikiProposal.objects.visible_to(actor).filter(kb=base, page__document__deleted_at__isnull=True)
    rows = rows.filter(status=status) if status else rows
    return rows.select_related("page", "page__folder", "page__kb", "kb", "proposer", "decider").order_by("-pk")


def proposal_get(*, actor: Actor, base: KnowledgeBase, proposal_id: Any) -> WikiProposal:
    """One proposal. Raises: NotFound, the same for one of another base as for one that never was."""
    uid = as_uuid(proposal_id)
    found = proposal_list(actor=actor, base=base, status="").filter(uid=uid).first() if uid else None
    if found is None:
        raise NotFound(_("There is no such proposal in this wiki."))
    return found  # type: ignore[no-any-return]
