"""What is asked before files are sent: taken names, tags of what is chosen, wishes the base can fulfil."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.knowledge.models import DocumentTag, KnowledgeBase, Tag
from apps.llm.models import Model
from tests.portal.test_documents import text_of
from tests.support.shelf import Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def ask(shelf: Shelf, *files: tuple[str, int], status: int = 200, **more: Any) -> str:
    sent = {"files": json.dumps([{"path": path, "size": size} for path, size in files]), **more}
    answer = shelf.admin.post(shelf.url("uploads/confirm"), sent, headers={"HX-Request": "true"})
    assert answer.status_code == status, answer.content[:500]
    return answer.content.decode()


def test_files_are_listed_and_taken_names_are_marked_in_their_folder_only(shelf: Shelf) -> None:
    shelf.document("guide.md")
    shelf.document("notes.md", folder_path="a/b")
    page = ask(shelf, ("guide.md", 2048), ("b/notes.md", 10), ("notes.md", 10), folder="")
    assert page.count("same name</a>") == 1 and "2.0" in page
    assert 'name="on_same_name" value="version" checked' in page
    page = ask(shelf, ("guide.md", 1), ("b/notes.md", 10), folder="a")
    assert page.count("same name</a>") == 1 and 'value="a"' in page
    page = ask(shelf, ("other.md", 1))
    assert "same name" not in page and "on_same_name" not in page


def test_tags_that_all_chosen_documents_carry_are_chosen(shelf: Shelf) -> None:
    first, second = shelf.document("a.md"), shelf.document("b.md")
    with unscoped("test data"):
        common, some = (Tag.objects.create(space=shelf.space, kb=shelf.base, name=name) for name in ("common", "some"))
        for document, tag in ((first, common), (second, common), (first, some)):
            DocumentTag.objects.create(space=shelf.space, document=document, tag=tag)
    page = ask(shelf, ("c.md", 1), ids=[str(first.uid), str(second.uid)])
    assert f'value="{common.uid}" checked' in page and f'value="{some.uid}" checked' not in page and f'value="{some.uid}"' in page
    assert " checked" not in ask(shelf, ("c.md", 1)).partition("<legend>Tags</legend>")[2].partition("</fieldset>")[0]


def test_only_what_the_base_can_do_may_be_wished(shelf: Shelf) -> None:
    page = ask(shelf, ("a.md", 1))
    assert "wish-pictures" in page and not any(name in page for name in ("wish-language", "wish-summary", "wish-questions"))
    with unscoped("test data"):
        kinds = {
            kind: Model.objects.create(space=shelf.space, name="m", type=kind, base_url="http://127.0.0.1:9/v1")
            for kind in (Model.Type.CHAT, Model.Type.VISION)
        }
        vision = {"enabled": True, "model_id": str(kinds[Model.Type.VISION].uid), "custom_instructions": "Short."}
        KnowledgeBase.objects.filter(pk=shelf.base.pk).update(
            summary_model_id=str(kinds[Model.Type.CHAT].uid), options={"vlm_config": vision}
        )
    page = ask(shelf, ("a.md", 1))
    assert all(name in page for name in ("wish-language", "wish-attributes", "wish-summary", "wish-questions"))
    wished = page.partition('name="wish-language"')[2].partition("</select>")[0].replace("&quot;", '"')
    assert (
        json.dumps(
            {
                "vlm_config": {
                    "enabled": True,
                    "model_id": vision["model_id"],
                    "custom_instructions": "Short.",
                    "description_language": "en",
                }
            }
        )
        in wished
    )


def test_names_that_are_no_names_and_lists_that_are_no_lists(shelf: Shelf) -> None:
    page = ask(shelf, ('"><script>alert(1)</script>.md', 1), ("../../etc/passwd", 1))
    assert "<script>alert" not in page
    for raw in ("", "[]", "[1]", '[{"path": "a"}]', "x", '[{"path": "a", "size": "1e999"}]'):
        answer = shelf.admin.post(shelf.url("uploads/confirm"), {"files": raw})
        assert answer.status_code == 400, raw
    many = json.dumps([{"path": f"{n}.md", "size": 1} for n in range(150)])
    assert "and 50 more" in text_of(shelf.admin.post(shelf.url("uploads/confirm"), {"files": many}))
