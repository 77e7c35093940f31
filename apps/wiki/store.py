"""Rows of pages, written in the caller's transaction; whoever calls has checked the draft and the actor."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.utils import timezone

from apps.common.actor import Actor
from apps.knowledge.models import Document, KnowledgeBase
from apps.wiki import markup
from apps.wiki.drafts import ClaimDraft, PageChange, PageDraft
from apps.wiki.linking import links_mend, links_write
from apps.wiki.models import PageAlias, PageClaim, PageRevision, PageSlug, PageSource, WikiPage, WikiProposal
from apps.wiki.passages import document_of, passages_write
from apps.wiki.slugs import slug_of

#: How many earlier versions made by machines a page keeps; those of people stay (contract content 5.3).
MACHINE_VERSIONS = 50
MACHINE = (WikiPage.Source.SYSTEM, WikiPage.Source.CONNECTOR)
FIELDS = ("title", "content", "summary", "page_type", "status")


def page_insert(
    base: KnowledgeBase,
    draft: PageDraft,
    *,
    actor: Actor,
    source: str,
    note: str,
    made_by: str,
    model_name: str,
) -> WikiPage:
    """A new page with its document, address, names, links and passages. Raises: IntegrityError when the address is taken."""
    now = timezone.now()
    page = WikiPage(
        space_id=base.space_id,
        kb=base,
        slug=draft.slug,
        title=draft.title,
        title_key=slug_of(draft.title),
        page_type=draft.page_type,
        status=draft.status,
        summary=draft.summary,
        content=draft.content,
        folder=draft.folder,
        metadata=draft.metadata,
        made_by=made_by,
        model_name=model_name,
        is_kept=source not in MACHINE,
        source=source,
        editor_id=actor.user_id,
        edit_note=note,
        edited_at=now,
    )
    page.document = document_of(page, actor.user_id)
    page.save()
    PageSlug.objects.create(space_id=page.space_id, kb=base, page=page, slug=draft.slug)
    aliases_write(page, draft.aliases)
    links_write(page)
    links_mend(page)
    passages_write(page, list(draft.aliases), created=True)
    return page


def aliases_write(page: WikiPage, names: Sequence[str]) -> None:
    """The other names of a page, in this order."""
    have = {alias.key: alias for alias in PageAlias.objects.filter(page=page)}
    wanted = {slug_of(name): name for name in names}
    if gone := [alias.pk for key, alias in have.items() if key not in wanted]:
        PageAlias.objects.filter(pk__in=gone).delete()
    fresh = []
    for place, (key, name) in enumerate(wanted.items()):
        if (alias := have.get(key)) is None:
            fresh.append(PageAlias(space_id=page.space_id, kb_id=page.kb_id, page=page, name=name, key=key, place=place))
        elif (alias.name, alias.place) != (name, place):
            PageAlias.objects.filter(pk=alias.pk).update(name=name, place=place)
    PageAlias.objects.bulk_create(fresh)
    getattr(page, "_prefetched_objects_cache", {}).pop("aliases", None)


def snapshot(page: WikiPage) -> PageRevision:
    """The page as it is now, unsaved."""
    return PageRevision(
        space_id=page.space_id,
        page=page,
        version=page.version,
        slug=page.slug,
        title=page.title,
        page_type=page.page_type,
        status=page.status,
        summary=page.summary,
        content=page.content,
        aliases=page.alias_names,
        source=page.source,
        editor_id=page.editor_id,
        note=page.edit_note,
        edited_at=page.edited_at,
    )


def differing(page: WikiPage, change: PageChange) -> dict[str, Any]:
    """{field: new value} of what the change really changes; `aliases` among them as a tuple."""
    found: dict[str, Any] = {name: value for name in FIELDS if (value := getattr(change, name)) not in (None, getattr(page, name))}
    if change.aliases is not None and change.aliases != tuple(page.alias_names):
        found["aliases"] = change.aliases
    return found


def page_rewrite(page: WikiPage, values: dict[str, Any], *, actor: Actor, source: str, note: str, model_name: str) -> None:
    """The next version of a page; the one before becomes a revision. `values` as `differing` gives them."""
    old = snapshot(page)
    old.save()
    aliases = values.get("aliases")
    named = [name for name in FIELDS if name in values]
    for name in named:
        setattr(page, name, values[name])
    page.title_key = slug_of(page.title)
    page.version += 1
    page.source, page.editor_id, page.edit_note, page.edited_at = source, actor.user_id, note, timezone.now()
    page.model_name = model_name or page.model_name
    page.is_kept = page.is_kept or source not in MACHINE
    meta = ("title_key", "version", "source", "editor", "edit_note", "edited_at", "model_name", "is_kept", "updated_at")
    page.save(update_fields=[*named, *meta])
    if aliases is not None:
        aliases_write(page, aliases)
    if "content" in values:
        links_write(page)
        claims_prune(page)
    if "title" in values or aliases is not None:
        links_mend(page)
    if set(values) - {"page_type"} or source not in MACHINE:
        passages_write(page, page.alias_names)
    revisions_thin(page)


def revisions_thin(page: WikiPage) -> None:
    """Forget all but the newest versions machines made."""
    rows = PageRevision.objects.filter(page=page, source__in=MACHINE).order_by("-version").values_list("pk", flat=True)
    if old := list(rows[MACHINE_VERSIONS : MACHINE_VERSIONS + 500]):
        PageRevision.objects.filter(pk__in=old).delete()


def claims_write(page: WikiPage, claims: Iterable[ClaimDraft]) -> None:
    """The claims of a page: exactly these, as far as their marks stand in its text. Sources they name are added."""
    wanted = {claim.anchor: claim for claim in claims}
    anchors = [anchor for anchor in markup.anchors_of(page.content) if anchor in wanted]
    PageClaim.objects.filter(page=page).delete()
    PageClaim.objects.bulk_create(
        [
            PageClaim(
                space_id=page.space_id,
                page=page,
                page_version=page.version,
                anchor=anchor,
                place=place,
                text=claim.text,
                document=claim.document,
                document_uid=claim.document.uid,
                document_version=claim.document.version,
                document_title=claim.document.title,
                chunk_ids=list(claim.chunk_ids),
                chunk_uids=[str(uid) for uid in claim.chunk_uids],
                quote=claim.quote,
            )
            for place, anchor in enumerate(anchors)
            if (claim := wanted[anchor]) is not None
        ],
        batch_size=500,
    )
    documents = {claim.document.uid: claim.document for claim in wanted.values()}
    have = set(PageSource.objects.filter(page=page).values_list("document_uid", flat=True))
    sources_add(page, [document for uid, document in documents.items() if uid not in have])


def claims_read(page: WikiPage) -> list[ClaimDraft]:
    """The claims of a page whose documents are still there, as they could be written again."""
    rows = PageClaim.objects.filter(page=page, document__isnull=False).select_related("document").order_by("place")
    return [
        ClaimDraft(row.anchor, row.text, row.document, tuple(row.chunk_ids), tuple(row.chunk_uids), row.quote)  # type: ignore[arg-type]
        for row in rows
    ]


def claims_proposed(proposal: WikiProposal) -> list[ClaimDraft]:
    """The claims that come with a proposal, as far as their documents are still there."""
    uids = {row["document_uid"] for row in proposal.claims}
    documents = {str(d.uid): d for d in Document.objects.filter(kb_id=proposal.kb_id, uid__in=uids, deleted_at__isnull=True)}
    return [
        ClaimDraft(
            row["anchor"],
            row["text"],
            documents[row["document_uid"]],
            tuple(row["chunk_ids"]),
            tuple(row["chunk_uids"]),
            row["quote"],
        )
        for row in proposal.claims
        if row["document_uid"] in documents
    ]


def claims_prune(page: WikiPage) -> int:
    """Claims whose mark is not in the text any more are dropped; how many."""
    anchors = set(markup.anchors_of(page.content))
    gone = [pk for pk, anchor in PageClaim.objects.filter(page=page).values_list("pk", "anchor") if anchor not in anchors]
    if gone:
        PageClaim.objects.filter(pk__in=gone).delete()
    return len(gone)


def sources_write(page: WikiPage, documents: Sequence[Document]) -> None:
    """The documents a page rests on: exactly these, each as it is now."""
    PageSource.objects.filter(page=page).exclude(document_uid__in=[document.uid for document in documents]).delete()
    known: dict[uuid.UUID, PageSource] = {row.document_uid: row for row in PageSource.objects.filter(page=page)}
    for document in documents:
        if (row := known.get(document.uid)) is not None:
            row.document, row.title, row.document_version, row.state = document, document.title, document.version, WikiPage.State.CURRENT
            row.save(update_fields=["document", "title", "document_version", "state"])
    sources_add(page, [document for document in documents if document.uid not in known])


def sources_add(page: WikiPage, documents: Sequence[Document]) -> None:
    """More documents a page rests on, behind those it has."""
    first = PageSource.objects.filter(page=page).count()
    PageSource.objects.bulk_create(
        [
            PageSource(
                space_id=page.space_id,
                page=page,
                document=document,
                document_uid=document.uid,
                document_version=document.version,
                title=document.title,
                place=first + place,
            )
            for place, document in enumerate(documents)
        ]
    )


def state_follow(page: WikiPage) -> str:
    """Set the state of a page by those of its sources and claims: withdrawn when one is gone, else changed when one has changed."""
    states = set(PageSource.objects.filter(page=page).values_list("state", flat=True))
    states |= set(PageClaim.objects.filter(page=page).values_list("state", flat=True))
    order = (WikiPage.State.SOURCE_WITHDRAWN, WikiPage.State.SOURCE_CHANGED)
    state = next((state for state in order if state in states), WikiPage.State.CURRENT)
    if page.state != state:
        page.state = state
        WikiPage.objects.filter(pk=page.pk).update(state=state)
    return str(state)
