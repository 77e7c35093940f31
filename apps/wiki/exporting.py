"""A wiki as a folder of Markdown in a ZIP: folders as they are, links that Obsidian follows, pictures beside them.

The same wiki gives the same bytes: entries in order, one fixed time, front matter always written the same way.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apps.common import storage
from apps.common.actor import Actor
from apps.common.policy import authorize
from apps.common.text import archive_name
from apps.knowledge.models import SCHEME, DocumentImage, KnowledgeBase
from apps.knowledge.selectors import images_named
from apps.wiki import frontmatter
from apps.wiki.enabling import check_wiki
from apps.wiki.linking import contents_of
from apps.wiki.models import PageClaim, PageSource, WikiFolder, WikiPage

AT_ONCE = 200
TIME = (1980, 1, 1, 0, 0, 0)
ASSETS = "assets"
ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
_HANDLE = re.compile(re.escape(SCHEME) + r"([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")


def wiki_export(*, actor: Actor, base: KnowledgeBase) -> Path:
    """A ZIP of the whole wiki in a temporary file; the caller deletes it. Raises: InvalidInput without a wiki."""
    authorize(actor, "wiki.read", base)
    check_wiki(base)
    with tempfile.NamedTemporaryFile(prefix="kb-wiki-", suffix=".zip", dir=storage.temp_folder(), delete=False) as target:
        path = Path(target.name)
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            taken: set[str] = set()
            pictures: dict[str, DocumentImage] = {}
            for folder in _empty_folders(base):
                archive.writestr(_entry(f"{_safe(folder)}/"), b"")
            for _page, name, front, content, own in _pages(actor, base, taken):
                pictures |= own
                archive.writestr(_entry(name), frontmatter.written(front, _with_assets(content, name, own)))
            for name, image in sorted({_asset(image): image for image in pictures.values()}.items()):
                with storage.read(image.storage_path) as source:
                    archive.writestr(_entry(name), source.read())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = (0o700 << 16 | 0x10) if name.endswith("/") else 0o600 << 16
    entry.create_system = 3
    return entry


def _empty_folders(base: KnowledgeBase) -> list[str]:
    held = set(WikiPage.objects.live().filter(kb=base, folder__isnull=False).values_list("folder__path", flat=True))
    paths = WikiFolder.objects.filter(kb=base).order_by("path").values_list("path", flat=True)
    return [path for path in paths if path not in held]


def _pages(
    actor: Actor, base: KnowledgeBase, taken: set[str]
) -> Iterator[tuple[WikiPage, str, dict[str, Any], str, dict[str, DocumentImage]]]:
    """(page, name in the archive, front matter, text, pictures it names) of every live page, by address."""
    rows = WikiPage.objects.visible_to(actor).filter(kb=base).select_related("kb", "folder").prefetch_related("aliases")
    last = ""
    while pages := list(rows.filter(slug__gt=last).order_by("slug")[:AT_ONCE]):
        contents, beside = contents_of(pages), _beside(pages)
        images = images_named(actor=actor, texts=contents.values())
        for page in pages:
            own = {url: image for url in _urls(contents[page.pk]) if (image := images.get(url)) and image.media_type in ENDINGS}
            yield page, _name(page, taken), _front(page, *beside[page.pk]), contents[page.pk], own
        last = pages[-1].slug


def _urls(text: str) -> set[str]:
    return {f"{SCHEME}{found[1].lower()}" for found in _HANDLE.finditer(text)}


def _beside(pages: Sequence[WikiPage]) -> dict[int, tuple[list[PageSource], list[PageClaim]]]:
    found: dict[int, tuple[list[PageSource], list[PageClaim]]] = defaultdict(lambda: ([], []))
    for source in PageSource.objects.filter(page__in=pages).order_by("place", "pk"):
        found[source.page_id][0].append(source)
    for claim in PageClaim.objects.filter(page__in=pages).order_by("place", "pk"):
        found[claim.page_id][1].append(claim)
    return found


def _name(page: WikiPage, taken: set[str]) -> str:
    folder = _safe(page.folder.path) if page.folder else ""
    stem = posixpath.join(folder, _safe(page.slug))
    name, number = f"{stem}.md", 2
    while name.casefold() in taken:
        name, number = f"{stem} ({number}).md", number + 1
    taken.add(name.casefold())
    return name


def _safe(path: str) -> str:
    return "/".join(archive_name(part) for part in path.split("/"))


def _asset(image: DocumentImage) -> str:
    return f"{ASSETS}/{image.sha256}.{ENDINGS[image.media_type]}"


def _with_assets(content: str, name: str, images: dict[str, DocumentImage]) -> str:
    """The text with its pictures named by where they lie from here."""
    above = "../" * name.count("/")

    def swap(found: re.Match[str]) -> str:
        image = images.get(f"{SCHEME}{found[1].lower()}")
        return found[0] if image is None else above + _asset(image)

    return _HANDLE.sub(swap, content)


def _front(page: WikiPage, sources: Sequence[PageSource], claims: Sequence[PageClaim]) -> dict[str, Any]:
    known = {
        "title": page.title,
        "slug": page.slug,
        "type": page.page_type,
        "status": page.status if page.status != WikiPage.Status.PUBLISHED else "",
        "aliases": page.alias_names,
        "summary": page.summary,
        "folder": page.folder.path if page.folder else "",
        "made": page.made_by if page.made_by in (WikiPage.Mode.RULES, WikiPage.Mode.MODEL, WikiPage.Mode.AGENT) else "",
        "model": page.model_name,
        "sources": [_source(source) for source in sources],
        "claims": [_claim(claim) for claim in claims],
    }
    more = {name: page.metadata[name] for name in sorted(page.metadata) if name not in frontmatter.OWN}
    return {name: value for name, value in known.items() if value} | more


def _source(source: PageSource) -> dict[str, Any]:
    return {"document": str(source.document_uid), "title": source.title, "version": source.document_version}


def _claim(claim: PageClaim) -> dict[str, Any]:
    row = {
        "mark": claim.anchor,
        "text": claim.text,
        "document": str(claim.document_uid),
        "title": claim.document_title,
        "version": claim.document_version,
        "passages": list(claim.chunk_uids),
        "quote": claim.quote,
    }
    return {name: value for name, value in row.items() if value not in ("", [])}
