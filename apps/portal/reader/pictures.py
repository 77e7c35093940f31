"""Pictures where texts name them: their bytes come from the route that asks who is asking, never from an address in the text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from apps.common.actor import Actor
from apps.knowledge.models import DocumentImage
from apps.knowledge.selectors import REFERENCE, images_named
from apps.portal import links

THUMBNAILS = 4


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture as a page shows it. `words`: what it shows, "" when nobody said; `alt` is never empty."""

    src: str
    alt: str
    words: str = ""
    width: int = 0
    height: int = 0


Pictures = Mapping[str, Shown]


def pictures_of(actor: Actor, texts: Iterable[str]) -> Pictures:
    """{reference: picture} of all that the texts name and the actor may see."""
    return {url: shown(actor, image) for url, image in images_named(actor=actor, texts=texts).items()}


def shown(actor: Actor, image: DocumentImage) -> Shown:
    words = image.caption.strip()
    return Shown(
        src=links.file_url(actor, image.space_id, image.kb.uid, image.url),
        alt=words or _("Image %(number)s of %(document)s") % {"number": image.number + 1, "document": image.document.title},
        words=words,
        width=image.width,
        height=image.height,
    )


def thumbnails(pictures: Pictures, text: str) -> tuple[Shown, ...]:
    """The first pictures a text names, each once."""
    named = dict.fromkeys(found[2] for found in REFERENCE.finditer(text))
    return tuple(pictures[url] for url in named if url in pictures)[:THUMBNAILS]
