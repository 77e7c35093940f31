"""A base is copied with its wiki: pages, folders, versions, links within the copy, claims on its own documents."""

from __future__ import annotations

from apps.common.scope import space_scope
from apps.knowledge.models import Chunk, KnowledgeBase
from apps.wiki.models import PageClaim, PageLink, PageSource, WikiFolder, WikiPage
from apps.wiki.services import ClaimDraft, PageChange, page_change, page_rename
from tests.support.kit import work_all
from tests.wiki.conftest import WikiWorld


def test_the_copy_is_a_wiki_of_its_own(wiki: WikiWorld) -> None:
    document = wiki.make_document(wiki.wiki, "manual.txt", chunks=2)
    folder = wiki.member.post(wiki.path("folders"), {"name": "Plant"}).json()["id"]
    wiki.member.post(wiki.path("folders"), {"name": "Empty"})
    with space_scope(wiki.space.pk):
        plant = WikiFolder.objects.get(uid=folder)
        chunk = Chunk.objects.filter(document=document).order_by("pk").first()
    pump = wiki.add("Pump", "In [[hall]].[^c1]", folder=plant, aliases=("P1",))
    wiki.add("Hall", "Holds [[pump]] and [[nowhere]].")
    with space_scope(wiki.space.pk):
        claim = ClaimDraft("c1", "In the hall.", document, (chunk.pk,), (str(chunk.uid),), "passage 0")
        page_change(actor=wiki.member.actor, page=pump, change=PageChange(summary="s"), claims=[claim])
        page_rename(actor=wiki.member.actor, page=pump, slug="machines/pump")
    started = wiki.admin.post("knowledge-bases/copy", {"source_id": str(wiki.wiki.uid)})
    assert started.status_code in (200, 202), started.content
    work_all("copy")
    with space_scope(wiki.space.pk):
        target = KnowledgeBase.objects.exclude(pk__in=[wiki.wiki.pk, wiki.second_wiki.pk, wiki.base.pk]).get()
        pages = {page.title: page for page in WikiPage.objects.filter(kb=target)}
        assert {title: (page.slug, page.folder.path if page.folder else "") for title, page in pages.items()} == {
            "Pump": ("machines/pump", "Plant"),
            "Hall": ("hall", ""),
        }
        assert sorted(WikiFolder.objects.filter(kb=target).values_list("path", flat=True)) == ["Empty", "Plant"]
        links = PageLink.objects.filter(kb=target).values_list("page__title", "key", "target_id")
        assert set(links) == {
            ("Pump", "hall", pages["Hall"].pk),
            ("Hall", "pump", pages["Pump"].pk),
            ("Hall", "nowhere", None),
        }
        assert pages["Pump"].alias_names == ["P1"] and pages["Pump"].revisions.count() == 1
        copied = PageClaim.objects.get(page=pages["Pump"])
        assert copied.document.kb_id == target.pk and copied.document_uid == copied.document.uid
        assert Chunk.objects.get(pk=copied.chunk_ids[0]).document_id == copied.document_id
        assert PageSource.objects.get(page=pages["Pump"]).document.kb_id == target.pk
        assert WikiPage.objects.filter(kb=wiki.wiki).count() == 2 and wiki.links()[("Hall", "pump")] == "Pump"
