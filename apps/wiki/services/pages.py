"""Making, changing, moving and deleting pages: whoever writes, a person, a run, a data source or an agent, comes through here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from apps.common.activity import folded
from apps.common.actor import Actor
from apps.common.errors import Conflict, InvalidInput, NotFound
from apps.common.policy import authorize
from apps.knowledge.models import Document, KnowledgeBase
from apps.knowledge.services import documents_delete
from apps.wiki import store
from apps.wiki.addresses import address_take
from apps.wiki.drafts import ClaimDraft, PageChange, PageDraft, checked, checked_change, clean_note, clean_slug
from apps.wiki.enabling import check_wiki
from apps.wiki.holding import check_version, locked, slug_taken
from apps.wiki.linking import links_mend, shown_content
from apps.wiki.models import PageRevision, PageSlug, WikiFolder, WikiPage, WikiProposal
from apps.wiki.records import record
from apps.wiki.slugs import numbered

PageWritten = WikiPage | WikiProposal
Source, Mode = WikiPage.Source, WikiPage.Mode


def page_create(
    *,
    actor: Actor,
    base: KnowledgeBase,
    draft: PageDraft,
    source: str = Source.PERSON,
    note: str = "",
    claims: Sequence[ClaimDraft] = (),
    sources: Sequence[Document] = (),
    made_by: str = Mode.PERSON,
    model_name: str = "",
    free_slug: bool = False,
) -> WikiPage:
    """A new page. With `free_slug` an address that is taken gets a number behind it.

    `sources`: documents it rests on beside those its claims name.

    Raises: InvalidInput at the field at fault; Conflict (`slug_taken`) when another page has the address.
    """
    authorize(actor, "wiki.write", base)
    check_wiki(base)
    draft, note = checked(draft), clean_note(note)
    if draft.folder is not None and draft.folder.kb_id != base.pk:
        raise NotFound(_("There is no such folder in this wiki."), field="folder_id")
    for number in range(2, 100):
        try:
            with transaction.atomic():
                address_take(base.pk, draft.slug)
                page = store.page_insert(base, draft, actor=actor, source=source, note=note, made_by=made_by, model_name=model_name)
                if claims:
                    store.claims_write(page, claims)
                if sources:
                    store.sources_add(page, _others(sources, claims))
                record(actor, "ingest" if source in store.MACHINE else "manual_create", page, note=note)
                return page
        except (IntegrityError, Conflict) as error:
            if not PageSlug.objects.filter(kb=base, slug=draft.slug, is_current=True).exists():
                raise
            if not free_slug:
                raise slug_taken(base, draft.slug) from error
            draft = checked(PageDraft(**{**_values(draft), "slug": numbered(_unnumbered(draft.slug, number), number)}))
    raise slug_taken(base, draft.slug)


def _unnumbered(slug: str, number: int) -> str:
    """The address without the number it got the time before."""
    tail = f"-{number - 1}"
    return slug[: -len(tail)] if number > 2 and slug.endswith(tail) else slug


def _values(draft: PageDraft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in draft.__slots__}


def _others(sources: Sequence[Document], claims: Sequence[ClaimDraft]) -> list[Document]:
    named = {claim.document.uid for claim in claims}
    return list({document.uid: document for document in sources if document.uid not in named}.values())


def page_change(
    *,
    actor: Actor,
    page: WikiPage,
    change: PageChange,
    expected_version: int | None = None,
    source: str = Source.PERSON,
    note: str = "",
    claims: Sequence[ClaimDraft] | None = None,
    sources: Sequence[Document] | None = None,
    model_name: str = "",
    action: str = "",
) -> WikiPage:
    """The page with this changed; what really changes makes a new version and keeps the one before. No change leaves everything alone.

    `claims` replaces all claims, None keeps those whose marks stay in the text; `sources` likewise. Claims and sources alone make no
    version.

    Raises: Conflict (`version_conflict`) with the current page when `expected_version` is not the current one; Conflict (`page_kept`) when
    a run would change what a person has written: that is for `page_propose`; InvalidInput at the field at fault; NotFound when it is gone.
    """
    authorize(actor, "wiki.write", page)
    change, note = checked_change(change), clean_note(note)
    with transaction.atomic():
        page = locked(page)
        check_version(page, expected_version)
        if change.content is not None and change.content == shown_content(page):
            change = PageChange(**{name: None if name == "content" else getattr(change, name) for name in change.__slots__})
        values = store.differing(page, change)
        if values and source in store.MACHINE and page.is_kept:
            raise Conflict(_("A person has written this page. Propose the change instead."), code="page_kept")
        if values:
            before = {name: page.alias_names if name == "aliases" else getattr(page, name) for name in values}
            store.page_rewrite(page, values, actor=actor, source=source, note=note, model_name=model_name)
            changes = {name: {"before": before[name], "after": list(v) if name == "aliases" else v} for name, v in values.items()}
            record(actor, action or ("ingest" if source in store.MACHINE else "manual_edit"), page, note=note, changes=changes)
        if sources is not None:
            store.sources_write(page, list({document.uid: document for document in sources}.values()))
        if claims is not None:
            store.claims_write(page, claims)
        if claims is not None or sources is not None:
            store.state_follow(page)
    return page


def page_write(
    *,
    actor: Actor,
    page: WikiPage,
    change: PageChange,
    source: str = Source.SYSTEM,
    note: str = "",
    claims: Sequence[ClaimDraft] | None = None,
    sources: Sequence[Document] | None = None,
    model_name: str = "",
    run_ref: int | None = None,
) -> PageWritten:
    """For runs: the changed page, or, where a person has written it, a proposal that leaves it as it is.

    A page a run would leave as it is, is returned unchanged, and its claims and sources follow, unless a person keeps it.
    """
    from apps.wiki.services.proposals import page_propose

    with transaction.atomic():
        page = locked(page)
        if not page.is_kept:
            return page_change(
                actor=actor, page=page, change=change, source=source, note=note, claims=claims, sources=sources, model_name=model_name
            )
        return page_propose(
            actor=actor, page=page, change=change, source=source, note=note, claims=claims or (), model_name=model_name, run_ref=run_ref
        )


def page_revert(*, actor: Actor, page: WikiPage, version: int, expected_version: int | None = None, note: str = "") -> WikiPage:
    """The page as it was in an earlier version, as a new version; those between stay (contract content 5.3).

    Raises: InvalidInput for the current version; NotFound when that version is not kept; Conflict as `page_change`.
    """
    authorize(actor, "wiki.write", page)
    with transaction.atomic():
        page = locked(page)
        check_version(page, expected_version)
        if version == page.version:
            raise InvalidInput(_("This is the current version."), field="version", code="version_current")
        old = PageRevision.objects.filter(page=page, version=version).first()
        if old is None:
            raise NotFound(_("This version of the page is not kept any more."), field="version")
        change = PageChange(old.title, old.content, old.summary, old.page_type, old.status, tuple(old.aliases))
        return page_change(actor=actor, page=page, change=change, source=Source.REVERT, note=note, action="revert")


def page_rename(*, actor: Actor, page: WikiPage, slug: str, expected_version: int | None = None) -> WikiPage:
    """The page under another address. The one it had goes on leading to it, links stay; it makes no version.

    Raises: InvalidInput at `slug`; Conflict (`slug_taken`), or as `page_change` for `expected_version`.
    """
    authorize(actor, "wiki.write", page)
    made = clean_slug(slug)
    with transaction.atomic():
        page = locked(page)
        check_version(page, expected_version)
        if made == page.slug:
            return page
        if PageSlug.objects.filter(kb_id=page.kb_id, slug=made, is_current=True).exists():
            raise slug_taken(page.kb, made)
        before = page.slug
        address_take(page.kb_id, made, keep=page.pk)
        PageSlug.objects.filter(page=page, is_current=True).update(is_current=False)
        own = PageSlug.objects.filter(page=page, slug=made).update(is_current=True)
        if not own:
            PageSlug.objects.create(space_id=page.space_id, kb_id=page.kb_id, page=page, slug=made)
        page.slug = made
        page.save(update_fields=["slug", "updated_at"])
        links_mend(page)
        record(actor, "manual_rename", page, changes={"slug": {"before": before, "after": made}})
    return page


def page_move(*, actor: Actor, page: WikiPage, folder: WikiFolder | None) -> WikiPage:
    """The page in another folder of its wiki, or in none; it makes no version (contract content 5.2).

    Raises: NotFound for a foreign folder.
    """
    pages_move(actor=actor, base=page.kb, pages=[page], folder=folder)
    page.folder = folder
    return page


def pages_move(*, actor: Actor, base: KnowledgeBase, pages: Sequence[WikiPage], folder: WikiFolder | None) -> int:
    """Put pages of one base into a folder, or into none; how many were elsewhere. Raises: NotFound for a folder of another base."""
    authorize(actor, "wiki.write", base)
    if folder is not None and folder.kb_id != base.pk:
        raise NotFound(_("There is no such folder in this wiki."), field="folder_id")
    with transaction.atomic():
        rows = WikiPage.objects.live().filter(kb=base, pk__in=[page.pk for page in pages]).select_related("folder").order_by("pk")
        moved = [row for row in rows.select_for_update(of=("self",)) if row.folder_id != (folder.pk if folder else None)]
        for row in moved:
            before = row.folder.path if row.folder else ""
            row.folder = folder
            row.save(update_fields=["folder", "updated_at"])
            record(actor, "manual_move", row, changes={"folder": {"before": before, "after": folder.path if folder else ""}})
    return len(moved)


def page_delete(*, actor: Actor, page: WikiPage, source: str = Source.PERSON, expected_version: int | None = None) -> None:
    """Put a page into the trash; links to it are broken from now on. Raises: Conflict as `page_change`, and `page_kept` for a run."""
    authorize(actor, "wiki.write", page)
    with transaction.atomic():
        page = locked(page)
        check_version(page, expected_version)
        if source in store.MACHINE and page.is_kept:
            raise Conflict(_("A person has written this page. Propose the change instead."), code="page_kept")
        _delete(actor, page.kb, [page], "retract" if source in store.MACHINE else "manual_delete")


def pages_delete(*, actor: Actor, base: KnowledgeBase, pages: Sequence[WikiPage]) -> int:
    """Put pages of one base into the trash; how many were there."""
    authorize(actor, "wiki.write", base)
    with transaction.atomic():
        rows = WikiPage.objects.live().filter(kb=base, pk__in=[page.pk for page in pages]).select_related("kb", "document")
        live = list(rows.order_by("pk"))
        _delete(actor, base, live, "manual_delete")
    return len(live)


def _delete(actor: Actor, base: KnowledgeBase, pages: Sequence[WikiPage], action: str) -> None:
    for page in pages:
        record(actor, action, page)
    with folded():
        documents_delete(actor=actor, base=base, documents=[page.document for page in pages])
