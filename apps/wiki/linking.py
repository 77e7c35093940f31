"""Links by id: which page an address or a name in a link means, and rows that remember it. Runs in the caller's transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from django.db.models import F

from apps.wiki import markup
from apps.wiki.models import PageAlias, PageLink, PageSlug, WikiPage
from apps.wiki.slugs import slug_of

ROWS_AT_ONCE = 500


def resolve(kb_id: int, keys: Iterable[str]) -> dict[str, int]:
    """{key: the page it means}: by an address a page has or had, else by a title or another name that only one page has."""
    wanted = sorted(set(keys))
    found: dict[str, int] = {}
    for start in range(0, len(wanted), ROWS_AT_ONCE):
        part = wanted[start : start + ROWS_AT_ONCE]
        found |= dict(PageSlug.objects.filter(kb_id=kb_id, slug__in=part).values_list("slug", "page_id"))
        if left := [key for key in part if key not in found]:
            named: dict[str, set[int]] = defaultdict(set)
            titled = WikiPage.objects.live().filter(kb_id=kb_id, title_key__in=left)
            for key, page in titled.values_list("title_key", "pk"):
                named[key].add(page)
            others = PageAlias.objects.filter(kb_id=kb_id, key__in=left, page__document__deleted_at__isnull=True)
            for key, page in others.values_list("key", "page_id"):
                named[key].add(page)
            found |= {key: next(iter(pages)) for key, pages in named.items() if len(pages) == 1}
    return found


def links_write(page: WikiPage, known: Mapping[str, int] | None = None) -> None:
    """Rows for the links of a page's text. A link that was there keeps its page; `known`: {key: the page it means}, where that is known."""
    wanted = markup.links_of(page.content)
    rows = {row.key: row for row in PageLink.objects.filter(page=page)}
    keep = {key: row.target_id for key, row in rows.items() if row.target_id is not None} | dict(known or {})
    targets = resolve(page.kb_id, [link.key for link in wanted if link.key not in keep]) | keep
    keys = {link.key for link in wanted}
    if gone := [row.pk for key, row in rows.items() if key not in keys]:
        PageLink.objects.filter(pk__in=gone).delete()
    fresh, changed = [], []
    for place, link in enumerate(wanted):
        values = (targets.get(link.key), link.label[:512], place)
        if (row := rows.get(link.key)) is None:
            row = PageLink(space_id=page.space_id, kb_id=page.kb_id, page=page, key=link.key)
            fresh.append(row)
        elif (row.target_id, row.label, row.place) == values:
            continue
        else:
            changed.append(row)
        row.target_id, row.label, row.place = values
    PageLink.objects.bulk_create(fresh, batch_size=ROWS_AT_ONCE)
    PageLink.objects.bulk_update(changed, ["target", "label", "place"], batch_size=ROWS_AT_ONCE)


def links_mend(page: WikiPage) -> int:
    """Broken links of the base that mean this page now lead to it; how many."""
    keys = set(PageSlug.objects.filter(page=page).values_list("slug", flat=True))
    names = {page.title_key, *PageAlias.objects.filter(page=page).values_list("key", flat=True)} - {""}
    broken = PageLink.objects.filter(kb_id=page.kb_id, target__isnull=True, key__in=keys | names).values_list("key", flat=True)
    meant = {key for key, target in resolve(page.kb_id, set(broken)).items() if target == page.pk}
    return int(PageLink.objects.filter(kb_id=page.kb_id, target__isnull=True, key__in=meant).update(target=page)) if meant else 0


def turned(page_ids: Iterable[int]) -> dict[int, dict[str, str]]:
    """{page: {key in its text: the address the linked page has now}} where these differ. One query."""
    rows = PageLink.objects.filter(page_id__in=list(page_ids), target__isnull=False).exclude(key=F("target__slug"))
    found: dict[int, dict[str, str]] = defaultdict(dict)
    for page, key, slug in rows.values_list("page_id", "key", "target__slug"):
        found[page][key] = slug
    return dict(found)


def current_text(text: str, slugs: Mapping[str, str]) -> str:
    """A text with its links under the addresses their pages have now; a link without a label goes on reading as it did."""
    if not slugs:
        return text

    def written(link: markup.Link) -> str | None:
        slug = slugs.get(link.key)
        if slug is None:
            return None
        return markup.written_link(slug, link.label or ("" if slug_of(link.target) == link.target else link.target), link.heading)

    return markup.with_links(text, written)


def shown_content(page: WikiPage) -> str:
    """A page's text as it is handed out: every link under the address its page has now."""
    return current_text(page.content, turned([page.pk]).get(page.pk, {}))


def contents_of(pages: Iterable[WikiPage]) -> dict[int, str]:
    """`shown_content` of many pages, by primary key, with one query."""
    rows = list(pages)
    slugs = turned(page.pk for page in rows)
    return {page.pk: current_text(page.content, slugs.get(page.pk, {})) for page in rows}
