"""The gallery tab: pictures of a base, filters, what the viewer shows, the way to the passage."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from apps.knowledge.models import DocumentImage
from tests.knowledge.conftest import World
from tests.knowledge.test_images_api import make_image


def test_the_gallery_filters_and_leads_to_the_passage(db: Any, settings: Any, tmp_path: Any) -> None:
    from tests.support.filestore import use_fresh_store

    use_fresh_store(settings, tmp_path)
    world = World()
    address = reverse("base-images", args=[world.space.pk, world.base.uid])
    empty = world.member.get(address).content.decode()
    assert "No images yet" in empty and "data-image" not in empty
    first: DocumentImage = make_image(world, world.base, "one.pdf", caption="Pump <b>", ocr_text="ERR-4021", position={"page": 3})
    second: DocumentImage = make_image(world, world.base, "two.md", enabled=False)
    make_image(world, world.other_base, "foreign.md")

    page = world.member.get(address).content.decode()
    assert page.count("data-image ") == 2 and "foreign.md" not in page
    assert f"files?file_path=resource%3A%2F%2F{first.uid}" in page
    assert 'data-text="ERR-4021"' in page and "Page 3" in page and "Pump &lt;b&gt;" in page
    assert f"?chunk={first.chunk.uid}" in page
    for query, shown, hidden in (
        (f"document={first.document.uid}", first, second),
        ("text=yes", first, second),
        ("text=no", second, first),
        ("enabled=yes", first, second),
        ("enabled=no", second, first),
        ("q=4021", first, second),
    ):
        found = world.member.get(f"{address}?{query}", headers={"HX-Request": "true", "HX-Target": "images"}).content.decode()
        assert str(shown.uid) in found and str(hidden.uid) not in found, query
        assert found.count("<html") == 0
    none = world.member.get(f"{address}?q=nothing-like-it&page=x&text=odd").content.decode()
    assert "No image matches" in none and "Clear filters" in none
    assert world.outsider.get(address).status_code == 404
