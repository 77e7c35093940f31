"""Codes and two-character words are found, always, through the one search function; benchmarks/exactness.py asks many more on every engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.common.scope import space_scope
from apps.knowledge.models import Tag
from apps.knowledge.services import tag_update
from apps.retrieval.engine import forget_engine
from tests.support import exactness
from tests.support.kit import Kit, make_kit
from tests.support.rows import Filed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kit(settings: Any, tmp_path: Path) -> Iterator[Kit]:
    (tmp_path / "index").mkdir()
    settings.DATA_DIR = tmp_path
    forget_engine()
    yield make_kit()
    forget_engine()


def test_codes_among_near_neighbours_come_first(kit: Kit) -> None:
    tally = exactness.check_codes(kit, 2, misleading=False, distractors=60)
    assert (tally.asked, tally.misses) == (80, [])


def test_odd_questions_come_first(kit: Kit) -> None:
    tally = exactness.check_odd(kit, misleading=False)
    assert tally.misses == [] and tally.asked >= 50


def test_two_characters_of_a_title_a_body_or_a_tag_find_the_document(kit: Kit) -> None:
    tallies = exactness.check_bigrams(kit, 60, misleading=False)
    assert {where: (tally.asked, tally.misses) for where, tally in tallies.items()} == {
        "title": (20, []),
        "body": (20, []),
        "tag": (20, []),
    }


def test_a_renamed_tag_is_found_by_its_new_name_only(kit: Kit) -> None:
    with space_scope(kit.space.pk):
        tag = Tag.objects.create(space=kit.space, kb=kit.base, name="这是一个测试文档")
        (document,) = exactness.fill(kit, [Filed("a.md", ["plain English text"], [tag])], misleading=False)
    assert [hit.document.pk for hit in exactness.ask(kit, "测试").hits] == [document.pk]
    with space_scope(kit.space.pk):
        tag_update(actor=kit.actor, tag=tag, name="归档资料")
    assert exactness.ask(kit, "测试").hits == []
    assert [hit.document.pk for hit in exactness.ask(kit, "归档").hits] == [document.pk]
