"""What is to be written: checked plain values that services take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.common.errors import InvalidInput
from apps.common.text import clean_line
from apps.knowledge.models import Document
from apps.wiki import markup
from apps.wiki.models import PageType, WikiFolder, WikiPage
from apps.wiki.slugs import MAX_SLUG, slug_of

MAX_TITLE, MAX_ALIAS, MAX_ALIASES, MAX_NOTE, MAX_SUMMARY, MAX_CONTENT = 512, 255, 100, 1000, 20_000, 1_000_000


@dataclass(frozen=True, slots=True)
class PageDraft:
    """A page to be made. Without `slug` it is made of the title; without a title it is the last part of the slug."""

    title: str = ""
    content: str = ""
    summary: str = ""
    page_type: str = ""
    slug: str = ""
    aliases: tuple[str, ...] = ()
    folder: WikiFolder | None = None
    status: str = WikiPage.Status.PUBLISHED
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageChange:
    """What is to change of a page; None stays as it is."""

    title: str | None = None
    content: str | None = None
    summary: str | None = None
    page_type: str | None = None
    status: str | None = None
    aliases: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ClaimDraft:
    """A sentence and the passages of one document it rests on. `[^anchor]` must stand in the text, or the claim is not kept.

    `chunk_ids` and `chunk_uids` name the same passages, `quote` is what they say.
    """

    anchor: str
    text: str
    document: Document
    chunk_ids: tuple[int, ...]
    chunk_uids: tuple[str, ...] = ()
    quote: str = ""


def clean_title(title: str) -> str:
    """Raises: InvalidInput at `title`."""
    line = clean_line(title)
    if len(line) > MAX_TITLE:
        raise InvalidInput(_("A title may have at most %(max)d characters.") % {"max": MAX_TITLE}, field="title", max=MAX_TITLE)
    return line


def clean_slug(slug: str) -> str:
    """An address in normal form. Raises: InvalidInput at `slug` when nothing of it can stand in one, or it is too long."""
    if len(slug) > 4 * MAX_SLUG:
        raise InvalidInput(_("An address may have at most %(max)d characters.") % {"max": MAX_SLUG}, field="slug", max=MAX_SLUG)
    made = slug_of(slug)
    if not made:
        raise InvalidInput(_("Give the page an address of letters or digits, like “topics/pumps”."), field="slug")
    return made


def clean_aliases(names: Iterable[str]) -> tuple[str, ...]:
    """Other names, each once. Raises: InvalidInput at `aliases`."""
    kept: dict[str, str] = {}
    for raw in names:
        name = clean_line(raw)
        if len(name) > MAX_ALIAS:
            raise InvalidInput(_("Another name may have at most %(max)d characters.") % {"max": MAX_ALIAS}, field="aliases", max=MAX_ALIAS)
        if key := slug_of(name):
            kept.setdefault(key, name)
    if len(kept) > MAX_ALIASES:
        raise InvalidInput(_("A page may have at most %(max)d other names.") % {"max": MAX_ALIASES}, field="aliases", max=MAX_ALIASES)
    return tuple(kept.values())


def clean_text(text: str, *, name: str, most: int) -> str:
    """Raises: InvalidInput at the field when it is too long."""
    made = markup.cleaned(text)
    if len(made) > most:
        raise InvalidInput(_("This text may have at most %(max)d characters.") % {"max": most}, field=name, max=most)
    return made


def clean_note(note: str) -> str:
    """Raises: InvalidInput at `note`."""
    line = clean_line(note)
    if len(line) > MAX_NOTE:
        raise InvalidInput(_("A note may have at most %(max)d characters.") % {"max": MAX_NOTE}, field="note", max=MAX_NOTE)
    return line


def check_choice(value: str, choices: Iterable[str], *, name: str) -> str:
    """Raises: InvalidInput at the field when it is none of these."""
    known = list(choices)
    if value not in known:
        raise InvalidInput(_("This is none of the values that may be chosen here."), field=name, known=known)
    return value


def checked(draft: PageDraft) -> PageDraft:
    """The draft as it is stored. Raises: InvalidInput at the field at fault."""
    title = clean_title(draft.title)
    slug = clean_slug(draft.slug or title)
    return PageDraft(
        title=title or slug.rsplit("/", 1)[-1],
        content=clean_text(draft.content, name="content", most=MAX_CONTENT),
        summary=clean_text(draft.summary, name="summary", most=MAX_SUMMARY),
        page_type=check_choice(draft.page_type, ["", *PageType.values], name="page_type"),
        slug=slug,
        aliases=clean_aliases(draft.aliases),
        folder=draft.folder,
        status=check_choice(draft.status or WikiPage.Status.PUBLISHED, WikiPage.Status.values, name="status"),
        metadata=dict(draft.metadata),
    )


def checked_change(change: PageChange) -> PageChange:
    """The change as it is stored. Raises: InvalidInput at the field at fault."""
    title = None if change.title is None else clean_title(change.title)
    if title == "":
        raise InvalidInput(_("Give the page a title."), field="title")
    return PageChange(
        title=title,
        content=None if change.content is None else clean_text(change.content, name="content", most=MAX_CONTENT),
        summary=None if change.summary is None else clean_text(change.summary, name="summary", most=MAX_SUMMARY),
        page_type=None if change.page_type is None else check_choice(change.page_type, ["", *PageType.values], name="page_type"),
        status=None if change.status is None else check_choice(change.status, WikiPage.Status.values, name="status"),
        aliases=None if change.aliases is None else clean_aliases(change.aliases),
    )
