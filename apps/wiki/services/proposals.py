"""What a run or an agent would make of a page people keep: proposed, and taken over or not by a person."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from apps.common.actor import Actor
from apps.common.errors import Conflict
from apps.common.policy import authorize
from apps.wiki import store
from apps.wiki.drafts import ClaimDraft, PageChange, checked_change, clean_note
from apps.wiki.holding import check_version, locked
from apps.wiki.models import WikiPage, WikiProposal
from apps.wiki.records import record
from apps.wiki.services import pages

Status = WikiProposal.Status


def page_propose(
    *,
    actor: Actor,
    page: WikiPage,
    change: PageChange | None,
    source: str = WikiPage.Source.SYSTEM,
    note: str = "",
    claims: Sequence[ClaimDraft] = (),
    model_name: str = "",
    run_ref: int | None = None,
) -> WikiProposal | WikiPage:
    """A proposal to change a page (`change` None: to delete it), which waits for a person; it replaces the open one of the page.

    The page itself comes back when nothing of it would change. A proposal that says what the open one says leaves that one alone.

    Raises: InvalidInput at the field at fault; NotFound when the page is gone.
    """
    authorize(actor, "wiki.write", page)
    with transaction.atomic():
        page = locked(page)
        action, draft = WikiProposal.Action.DELETE, {}
        if change is not None:
            values = store.differing(page, checked_change(change))
            if not values:
                return page
            action = WikiProposal.Action.CHANGE
            draft = {name: list(value) if name == "aliases" else value for name, value in values.items()}
        rows = WikiProposal.objects.filter(page=page, status=Status.OPEN)
        if (open_one := rows.first()) is not None:
            if (open_one.action, open_one.draft, open_one.base_version) == (action, draft, page.version):
                return open_one  # type: ignore[no-any-return]
            rows.update(status=Status.REPLACED, decided_at=timezone.now())
        return WikiProposal.objects.create(  # type: ignore[no-any-return]
            space_id=page.space_id,
            kb_id=page.kb_id,
            page=page,
            action=action,
            base_version=page.version,
            draft=draft,
            claims=[_stored(claim) for claim in claims],
            note=clean_note(note),
            source=source,
            model_name=model_name,
            run_ref=run_ref,
            proposer_id=actor.user_id,
        )


def _stored(claim: ClaimDraft) -> dict[str, object]:
    return {
        "anchor": claim.anchor,
        "text": claim.text,
        "document_uid": str(claim.document.uid),
        "chunk_ids": list(claim.chunk_ids),
        "chunk_uids": [str(uid) for uid in claim.chunk_uids],
        "quote": claim.quote,
    }


def proposal_accept(*, actor: Actor, proposal: WikiProposal, expected_version: int | None = None) -> WikiPage | None:
    """The page as proposed, as a new version in the name of whoever accepts; None when it was proposed to delete it.

    `expected_version`: that of the page the decision was made on. Without it, a page changed since the proposal is a conflict.

    Raises: Conflict (`proposal_decided`) when it is not open any more, or (`version_conflict`) with the current page.
    """
    authorize(actor, "wiki.write", proposal)
    with transaction.atomic():
        proposal = _open(proposal)
        page = locked(proposal.page)
        check_version(page, expected_version or proposal.base_version)
        _decide(actor, proposal, Status.ACCEPTED)
        if proposal.action == WikiProposal.Action.DELETE:
            pages.page_delete(actor=actor, page=page)
            return None
        draft = dict(proposal.draft)
        if "aliases" in draft:
            draft["aliases"] = tuple(draft["aliases"])
        claims = store.claims_proposed(proposal)
        if "content" in draft:
            kept = {claim.anchor for claim in claims}
            claims += [claim for claim in store.claims_read(page) if claim.anchor not in kept]
        return pages.page_change(
            actor=actor, page=page, change=PageChange(**draft), note=proposal.note, claims=claims if "content" in draft else None
        )


def proposal_reject(*, actor: Actor, proposal: WikiProposal) -> WikiProposal:
    """The proposal put aside; the page stays as it is. Raises: Conflict (`proposal_decided`) when it is not open any more."""
    authorize(actor, "wiki.write", proposal)
    with transaction.atomic():
        proposal = _open(proposal)
        _decide(actor, proposal, Status.REJECTED)
        record(actor, "proposal_rejected", proposal.page, note=proposal.note)
    return proposal


def _open(proposal: WikiProposal) -> WikiProposal:
    row = WikiProposal.objects.select_related("page", "kb").select_for_update(of=("self",)).filter(pk=proposal.pk).first()
    if row is None or row.status != Status.OPEN:
        raise Conflict(_("Somebody has decided this already, or a newer proposal took its place."), code="proposal_decided")
    return row  # type: ignore[no-any-return]


def _decide(actor: Actor, proposal: WikiProposal, status: str) -> None:
    proposal.status, proposal.decider_id, proposal.decided_at = status, actor.user_id, timezone.now()
    proposal.save(update_fields=["status", "decider", "decided_at"])
