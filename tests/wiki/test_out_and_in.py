"""A wiki goes out as a folder of Markdown and comes in again without loss."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.common import storage
from apps.common.scope import space_scope
from apps.knowledge.models import Chunk, Document, DocumentImage, KnowledgeBase
from apps.wiki.models import WikiFolder, WikiPage
from apps.wiki.services import ClaimDraft, PageChange, page_change, page_rename
from tests.support.kit import work_all
from tests.wiki.conftest import WikiWorld

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
SHA = hashlib.sha256(PNG).hexdigest()


def export(wiki: WikiWorld, base: KnowledgeBase | None = None) -> bytes:
    answer = wiki.member.get(wiki.path("export", base))
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content)


def bring_in(wiki: WikiWorld, data: bytes, base: KnowledgeBase | None = None) -> dict[str, Any]:
    answer = send(wiki, data, base)
    assert answer.status_code == 202, answer.content
    work_all("wiki_import")
    return wiki.member.get(wiki.path("import", base)).json()


def send(wiki: WikiWorld, data: bytes, base: KnowledgeBase | None = None) -> Any:
    file = SimpleUploadedFile("vault.zip", data)
    return wiki.member.client.post(f"/api/v1/{wiki.path('import', base)}", {"file": file}, headers={"X-Tenant-ID": str(wiki.space.pk)})


def packed(files: dict[str, bytes | str]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target.getvalue()


def furnished(wiki: WikiWorld) -> None:
    """Pages of every kind, with all a page can have."""
    document = wiki.make_document(wiki.wiki, "manual.txt", chunks=2)
    with space_scope(wiki.space.pk):
        chunk = Chunk.objects.filter(document=document).order_by("pk").first()
        key = storage.write(f"{wiki.space.pk}/{wiki.wiki.uid}/{document.uid}/images/1/a.png", ContentFile(PNG))
        image = DocumentImage.objects.create(
            space_id=wiki.space.pk,
            kb=wiki.wiki,
            document=document,
            chunk=chunk,
            number=0,
            sha256=SHA,
            storage_path=key,
            media_type="image/png",
            size_bytes=len(PNG),
        )
    folders = {}
    for path in ("设备", "设备/水泵: A?", "empty", "empty/inside"):
        above, _slash, name = path.rpartition("/")
        folders[path] = wiki.member.post(wiki.path("folders"), {"name": name, "parent_id": folders.get(above, "")}).json()["id"]
    with space_scope(wiki.space.pk):
        deep = WikiFolder.objects.get(uid=folders["设备/水泵: A?"])
        top = WikiFolder.objects.get(uid=folders["设备"])
    text = (
        f"# 水泵\n\nSee [[hall|the hall]], [[nowhere]].[^c1]\n\n![pump]({image.url})\n\n```\n[[code]]\n---\n```\n\n---\nEnd: \"quoted\" 'x'"
    )
    pump = wiki.add("水泵: 'a' & \"b\"", text, slug="entity/水泵", page_type="entity", folder=deep, aliases=("Pump", "123", "yes"))
    hall = wiki.add(
        "Hall", "Holds [[entity/水泵]].", summary="Line one\nline two: with #", metadata={"tags": ["a", "b"], "n": 3, "z": {"k": None}}
    )
    wiki.add("Draft", "", status="draft", page_type="index", slug="empty", folder=top)
    wiki.add("c", "One.", slug="x/c", folder=top)
    wiki.add("c", "Two.", slug="设备/x/c")
    with space_scope(wiki.space.pk):
        page_rename(actor=wiki.member.actor, page=hall, slug="halls/main")
        claim = ClaimDraft("c1", "See the hall.", document, (chunk.pk,), (str(chunk.uid),), "passage 0")
        page_change(actor=wiki.member.actor, page=pump, change=PageChange(), claims=[claim], sources=[document])


def test_export_import_export_gives_the_same_bytes(wiki: WikiWorld) -> None:
    furnished(wiki)
    first = export(wiki)
    assert export(wiki) == first, "the same wiki, the same bytes"
    result = bring_in(wiki, first, wiki.second_wiki)
    assert (result["state"], result["counts"], result["failed"]) == ("done", {"created": 5, "changed": 0, "same": 0, "failed": 0}, [])
    second = export(wiki, wiki.second_wiki)
    names = [zipfile.ZipFile(io.BytesIO(data)).namelist() for data in (first, second)]
    assert names[0] == names[1]
    assert second == first
    again = bring_in(wiki, first)
    assert again["counts"] == {"created": 0, "changed": 0, "same": 5, "failed": 0}, "into the wiki it came from it changes nothing"
    assert export(wiki) == first


def test_what_an_export_looks_like(wiki: WikiWorld) -> None:
    furnished(wiki)
    archive = zipfile.ZipFile(io.BytesIO(export(wiki)))
    names = archive.namelist()
    assert "empty/inside/" in names and "设备/水泵_ A_/entity/水泵.md" in names and "halls/main.md" in names
    assert f"assets/{SHA}.png" in names and archive.read(f"assets/{SHA}.png") == PNG
    assert sorted(name for name in names if name.endswith("c.md") or "c (2)" in name) == ["设备/x/c (2).md", "设备/x/c.md"]
    pump = archive.read("设备/水泵_ A_/entity/水泵.md").decode()
    assert "See [[halls/main|the hall]], [[nowhere]].[^c1]" in pump, "under the address the page has now"
    assert f"![pump](../../../assets/{SHA}.png)" in pump
    assert pump.startswith("---\ntitle: '水泵: ''a'' & \"b\"'\nslug: entity/水泵\ntype: entity\naliases:\n- Pump\n- '123'\n- 'yes'\n")


def test_a_vault_from_elsewhere(wiki: WikiWorld) -> None:
    files: dict[str, bytes | str] = {
        "Vault/Pumps/Water pump.md": "---\naliases: [P1, 水泵]\ntags:\n  - machine\n---\nStands in [[Hall]]. ![[pump.png]]\n",
        "Vault/Hall.md": "# Hall\n\n![x](<media/pump.png>) and [[Water pump#Parts|it]]\n",
        "Vault/media/pump.png": PNG,
        "Vault/.obsidian/app.json": "{}",
        "Vault/broken.md": "---\na: [\n---\nx",
        "Vault/latin.md": "caf\xe9".encode("latin-1"),
        "Vault/": "",
        "Vault/Empty/": "",
    }
    result = bring_in(wiki, packed(files))
    assert result["state"] == "done"
    assert sorted(path for (path,) in [(row["path"],) for row in result["failed"]]) == ["broken.md", "latin.md"]
    pump = wiki.page("pumps/water-pump")
    assert (pump["title"], pump["aliases"], pump["category_path"]) == ("Water pump", ["P1", "水泵"], ["Pumps"])
    assert pump["page_metadata"] == {"tags": ["machine"]}
    hall = wiki.page("hall")
    with space_scope(wiki.space.pk):
        (image,) = DocumentImage.objects.filter(kb=wiki.wiki)
        assert WikiFolder.objects.filter(kb=wiki.wiki, path="Empty").exists()
        with storage.read(image.storage_path) as source:
            assert source.read() == PNG
    assert f"![pump]({image.url})" in pump["content"] and f"![x]({image.url})" in hall["content"]
    assert wiki.links() == {("Water pump", "hall"): "Hall", ("Hall", "water-pump"): "Water pump"}
    listed = wiki.member.get(f"knowledge-bases/{wiki.wiki.uid}").json()["data"]
    assert listed["knowledge_count"] == 0, "pages are no documents"


def test_a_page_that_is_there_becomes_the_next_version(wiki: WikiWorld) -> None:
    wiki.add("A", "old")
    result = bring_in(wiki, packed({"a.md": "---\ntitle: A\nslug: a\n---\n\nnew\n"}))
    assert result["counts"]["changed"] == 1
    page = wiki.page("a")
    assert (page["content"], page["version"], page["last_editor_id"]) == ("new", 2, str(wiki.member.user.pk))
    assert wiki.member.get(wiki.path("revisions/a?version=1")).json()["content"] == "old"


@pytest.mark.parametrize(
    ("data", "status", "field"),
    [(b"no zip", 400, "file"), (packed({"a.txt": "x"}), 400, "file"), (packed({}), 400, "file")],
)
def test_what_is_no_archive_of_pages(wiki: WikiWorld, data: bytes, status: int, field: str) -> None:
    answer = send(wiki, data)
    assert (answer.status_code, answer.json()["field"]) == (status, field)


def test_an_archive_that_unfolds_into_a_flood_is_refused(wiki: WikiWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.wiki import archives

    monkeypatch.setattr(archives, "MAX_UNPACKED", 1000)
    assert send(wiki, packed({f"{number}.md": "x" * 400 for number in range(4)})).status_code == 413
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]"
    result = bring_in(wiki, packed({"bomb.md": f"---\n{bomb}\n---\ntext"}))
    assert [row["path"] for row in result["failed"]] == ["bomb.md"]


def test_paths_are_names_and_lead_nowhere(wiki: WikiWorld) -> None:
    result = bring_in(wiki, packed({"../../etc/passwd.md": "text", "/abs/x.md": "text", "a\\b.md": "text"}))
    assert result["counts"]["created"] == 3
    with space_scope(wiki.space.pk):
        assert set(WikiPage.objects.values_list("slug", flat=True)) == {"etc/passwd", "abs/x", "a/b"}
        assert Document.objects.filter(type="page").count() == 3


def test_two_imports_at_once_are_not_begun(wiki: WikiWorld) -> None:
    assert send(wiki, packed({"a.md": "x"})).status_code == 202
    assert send(wiki, packed({"a.md": "x"})).status_code == 409
