"""Raising and settling issues of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.activity import audit
from apps.common.actor import Actor
from apps.common.errors import InvalidInput
from apps.common.policy import authorize
from apps.wiki.models import WikiIssue, WikiPage


def issue_raise(
    *,
    actor: Actor,
    page: WikiPage,
    kind: str,
    key: str = "",
    description: str = "",
    facts: Mapping[str, Any] | None = None,
    document_uids: Sequence[str] = (),
    other_page: WikiPage | None = None,
    raised_by: str = WikiPage.Source.SYSTEM,
    reporter: str = "",
) -> WikiIssue:
    """An open issue of a page. The same one (`kind`, `key`) that is open already is brought up to date; one people ignore stays ignored.

    Raises: InvalidInput at `kind` for one there is not.
    """
    authorize(actor, "wiki.write", page)
    if kind not in WikiIssue.Kind.values:
        raise InvalidInput(_("There is no such kind of issue."), field="kind", known=WikiIssue.Kind.values)
    values = {
        "description": description[:4000],
        "facts": dict(facts or {}),
        "document_uids": [str(uid) for uid in document_uids],
        "other_page": other_page,
    }
    rows = WikiIssue.objects.filter(page=page, kind=kind, key=key[:255])
    with transaction.atomic():
        ignored = rows.filter(status=WikiIssue.Status.IGNORED).order_by("-pk").first()
        if ignored is not None and raised_by == WikiPage.Source.SYSTEM:
            return ignored  # type: ignore[no-any-return]
        try:
            with transaction.atomic():
                return WikiIssue.objects.create(  # type: ignore[no-any-return]
                    space_id=page.space_id,
                    kb_id=page.kb_id,
                    page=page,
                    kind=kind,
                    key=key[:255],
                    raised_by=raised_by,
                    raiser_id=actor.user_id,
                    reporter=reporter[:80],
                    **values,
                )
        except IntegrityError:
            found = rows.get(status=WikiIssue.Status.OPEN)
            for name, value in values.items():
                setattr(found, name, value)
            found.save(update_fields=[*values, "updated_at"])
            return found  # type: ignore[no-any-return]


def issue_status_set(*, actor: Actor, issue: WikiIssue, status: str) -> WikiIssue:
    """The issue open again, resolved or ignored. Raises: InvalidInput at `status` for one there is not."""
    authorize(actor, "wiki.write", issue)
    if status not in WikiIssue.Status.values:
        raise InvalidInput(_("There is no such status."), field="status", known=WikiIssue.Status.values)
    with transaction.atomic():
        issue = WikiIssue.objects.select_related("page", "kb").select_for_update(of=("self",)).get(pk=issue.pk)
        if issue.status == status:
            return issue  # type: ignore[no-any-return]
        if status == WikiIssue.Status.OPEN:
            WikiIssue.objects.filter(page=issue.page, kind=issue.kind, key=issue.key, status=status).update(
                status=WikiIssue.Status.RESOLVED, closed_at=timezone.now()
            )
        before, issue.status = issue.status, status
        issue.closer_id, issue.closed_at = (None, None) if status == WikiIssue.Status.OPEN else (actor.user_id, timezone.now())
        issue.save(update_fields=["status", "closer", "closed_at", "updated_at"])
        audit(
            actor,
            "wiki.issue_changed",
            issue.page,
            target_type="wiki_issue",
            target_id=str(issue.uid),
            title=issue.page.title[:200],
            target_slug=issue.page.slug,
            kind=issue.kind,
            changes={"status": {"before": before, "after": status}},
        )
    return issue  # type: ignore[no-any-return]
