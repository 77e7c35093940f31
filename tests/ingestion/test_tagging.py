"""Tags chosen by the chat model of a base, among those it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.common.scope import space_scope, unscoped
from apps.knowledge.models import Document, DocumentTag, Tag
from apps.knowledge.services import base_settings_update, base_update, tag_create
from apps.llm.models import Model
from tests.support.endpoint import Endpoint, answer, serving
from tests.support.kit import Kit, work_all

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def endpoint(settings: Any) -> Iterator[Endpoint]:
    settings.MODEL_ALLOW = ["127.0.0.0/8"]
    with serving() as made:
        yield made


def chooses(kit: Kit, endpoint: Endpoint, **config: Any) -> dict[str, Tag]:
    with space_scope(kit.space.pk):
        row = Model.objects.create(space=kit.space, name="teller", type=Model.Type.CHAT, base_url=endpoint.url)
        base_settings_update(actor=kit.actor, base=kit.base, values={"llmModelId": str(row.uid)})
        base_update(actor=kit.actor, base=kit.base, name="Base", config={"auto_tag_config": {"enabled": True, **config}})
        return {name: tag_create(actor=kit.actor, base=kit.base, name=name) for name in ("Pumps", "阀门", "Contracts")}


def tags_of(document: Document) -> list[str]:
    with unscoped("test look"):
        return sorted(DocumentTag.objects.filter(document=document).values_list("tag__name", flat=True))


def test_the_model_chooses_among_the_tags_of_the_base_and_no_others(kit: Kit, endpoint: Endpoint) -> None:
    chooses(kit, endpoint, max_tags=2)
    endpoint.says = 'Here: ["pumps", "Invented", "阀门", "Contracts"]'
    document = kit.upload("a.md", "# Pump\n\nThe valve of the pump.", process_config={"summary_enabled": False})
    work_all()
    assert tags_of(document) == ["Pumps", "阀门"]
    (asked,) = endpoint.requests
    assert (
        '["Pumps", "阀门", "Contracts"]' in asked["messages"][-1]["content"]
        and "The valve of the pump." in asked["messages"][-1]["content"]
    )
    with unscoped("test look"):
        assert Tag.objects.filter(kb=kit.base).count() == 3


@pytest.mark.parametrize(("skip", "asked", "tags"), [(True, 0, ["Contracts"]), (False, 1, ["Contracts", "Pumps"])])
def test_documents_that_have_tags_are_left_alone_where_that_is_wished(
    kit: Kit, endpoint: Endpoint, skip: bool, asked: int, tags: list[str]
) -> None:
    known = chooses(kit, endpoint, skip_if_tagged=skip)
    endpoint.says = '["Pumps"]'
    document = kit.upload("a.md", "Text.", tag_ids=[str(known["Contracts"].uid)], process_config={"summary_enabled": False})
    work_all()
    assert (len(endpoint.requests), tags_of(document)) == (asked, tags)


@pytest.mark.parametrize("said", ["I cannot say.", "[1, null]", "[broken"])
def test_an_answer_without_a_tag_gives_none(kit: Kit, endpoint: Endpoint, said: str) -> None:
    chooses(kit, endpoint)
    endpoint.says = said
    document = kit.upload("a.md", "Text.", process_config={"summary_enabled": False})
    work_all()
    assert (tags_of(document), kit.reload(document).parse_status) == ([], "completed")


def test_a_model_that_fails_leaves_the_document_as_it_is(kit: Kit, endpoint: Endpoint) -> None:
    chooses(kit, endpoint)
    endpoint.behave = lambda _body, handler: answer(handler, 401, {"error": "no"})
    document = kit.upload("a.md", "Text.", process_config={"summary_enabled": False})
    work_all()
    assert (tags_of(document), kit.reload(document).parse_status) == ([], "completed")
