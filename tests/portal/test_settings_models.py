"""The settings page on models and questions: the catalogue's chat models to choose from, faults beside the input, truth on half a save."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apps.common.errors import InvalidInput
from apps.common.scope import unscoped
from apps.llm.models import Model
from tests.portal.test_documents import text_of
from tests.support.shelf import Shelf

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def model(shelf: Shelf, kind: str = Model.Type.CHAT, **values: Any) -> Model:
    with unscoped("test data"):
        return Model.objects.create(
            **{"space": shelf.space, "name": f"{kind} model", "type": kind, "base_url": "http://127.0.0.1:9/v1", **values}
        )


def form(**values: Any) -> dict[str, Any]:
    return {"name": "Handbook", "strategy": "auto", "chunk_size": 512, "chunk_overlap": 80, "separators": "\\n", "words": "on", **values}


def test_chat_models_are_offered_and_the_choice_and_questions_are_kept(shelf: Shelf) -> None:
    chat, _vision, _foreign = model(shelf), model(shelf, Model.Type.VISION), model(shelf, space=shelf.other, name="theirs")
    page = shelf.admin.get(shelf.url("settings")).content.decode()
    offered = page.partition('name="summary_model"')[2].partition("</select>")[0]
    assert "KnowledgeQA model" in offered and "VLLM model" not in offered and "theirs" not in page
    sent = form(summary_model=str(chat.uid), questions="on", question_count=5, question_instructions="Short ones.")
    assert shelf.admin.post(shelf.url("settings"), sent).status_code == 302
    base = shelf.fresh(shelf.base)
    assert base.summary_model_id == str(chat.uid)
    assert base.options["question_generation_config"] == {"enabled": True, "question_count": 5, "custom_instructions": "Short ones."}
    told = shelf.admin.get(f"/api/v1/initialization/config/{base.uid}", headers={"X-Tenant-ID": str(shelf.space.pk)}).json()["data"]
    assert told["llm"] == {
        "source": "remote",
        "modelId": str(chat.uid),
        "modelName": "KnowledgeQA model",
        "baseUrl": "",
        "credentials": {"apiKey": False},
    }


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"questions": "on"}, "Questions need a language model."),
        ({"question_count": "11"}, "less than or equal to 10"),
        ({"summary_model": str(uuid.uuid4())}, "Select a valid choice."),
    ],
)
def test_faults_stand_beside_their_input_and_nothing_is_saved(shelf: Shelf, values: dict[str, str], said: str) -> None:
    answer = shelf.admin.post(shelf.url("settings"), form(name="Other", **values))
    assert answer.status_code == 422 and said in text_of(answer)
    assert shelf.fresh(shelf.base).name == "Handbook"


def test_half_a_save_says_which_half(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_values: Any) -> Any:
        raise InvalidInput("That model was removed a moment ago.", field="llmModelId")

    monkeypatch.setattr("apps.portal.views.bases.base_settings_update", refuse)
    answer = shelf.admin.post(shelf.url("settings"), form(name="Renamed"))
    said = text_of(answer)
    assert answer.status_code == 422 and "Saved in part: name, ways of finding and splitting are saved" in said
    assert "That model was removed a moment ago." in said
    assert shelf.fresh(shelf.base).name == "Renamed"


def test_a_model_that_is_gone_stays_chosen_until_somebody_chooses(shelf: Shelf) -> None:
    with unscoped("test data"):
        type(shelf.base).objects.filter(pk=shelf.base.pk).update(summary_model_id=str(uuid.uuid4()))
    assert "A model that is gone" in text_of(shelf.admin.get(shelf.url("settings")))


def test_changing_another_setting_leaves_the_language_model(shelf: Shelf) -> None:
    chat = model(shelf)
    shelf.admin.post(shelf.url("settings"), form(summary_model=str(chat.uid)))
    answer = shelf.admin.put(
        f"/api/v1/initialization/config/{shelf.base.uid}",
        {"documentSplitting": {"chunkSize": 300}},
        content_type="application/json",
        headers={"X-Tenant-ID": str(shelf.space.pk)},
    )
    assert answer.status_code == 200 and shelf.fresh(shelf.base).summary_model_id == str(chat.uid)


def test_pictures_are_described_as_the_page_says(shelf: Shelf) -> None:
    vision = model(shelf, Model.Type.VISION)
    sent = form(
        describe="on", vision_model=str(vision.uid), description_language="zh", picture_instructions="Name the parts.", observe="on",
        read_pictures="observed",
    )  # fmt: skip
    assert shelf.admin.post(shelf.url("settings"), sent).status_code == 302
    options = shelf.fresh(shelf.base).options
    assert options["vlm_config"] == {
        "enabled": True, "model_id": str(vision.uid), "description_language": "zh", "custom_instructions": "Name the parts.",
    }  # fmt: skip
    rules = options["image_processing_config"]["image_actions"]["ocr"]
    assert (
        options["image_processing_config"]["image_attrs_enabled"] is True
        and rules["on_unobserved"] is True
        and {"prop": "contain.text", "is": "none"} not in rules["on"]
    )
    address = f"/api/v1/initialization/config/{shelf.base.uid}"
    told = shelf.admin.get(address, headers={"X-Tenant-ID": str(shelf.space.pk)}).json()["data"]["multimodal"]
    assert (told["enabled"], told["vlm"]["modelId"], told["descriptionLanguage"]) == (True, str(vision.uid), "zh")
    assert told["customInstructions"] == "Name the parts."
    page = shelf.admin.get(shelf.url("settings")).content.decode()
    assert f'<option value="{vision.uid}" selected>' in page and '<option value="observed" selected>' in page


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"describe": "on"}, "Descriptions need a vision model."),
        ({"tags": "on"}, "Proposals of tags need a language model."),
        ({"words_share": "101"}, "less than or equal to 100"),
        ({"read_pdf": "text"}, "Select a valid choice."),
        ({"picture_instructions": "x" * 4001}, "at most 4000 characters"),
    ],
)
def test_what_cannot_work_is_said_beside_its_input(shelf: Shelf, values: dict[str, str], said: str) -> None:
    answer = shelf.admin.post(shelf.url("settings"), form(**values))
    assert answer.status_code == 422 and said in text_of(answer)
    assert shelf.fresh(shelf.base).options.get("vlm_config") in (None, {}), "nothing of it is saved"


def test_ways_of_reading_are_kept_and_rules_of_other_types_stay(shelf: Shelf) -> None:
    other = {"file_types": ["txt"], "engine": "builtin"}
    with unscoped("test data"):
        type(shelf.base).objects.filter(pk=shelf.base.pk).update(chunking_config={"parser_engine_rules": [other]})
    assert shelf.admin.post(shelf.url("settings"), form(read_pdf="ocr", read_markdown="text")).status_code == 302
    rules = shelf.fresh(shelf.base).chunking_config["parser_engine_rules"]
    assert [(rule["file_types"][0], rule["engine"], rule.get("xlsx_first_row_as_header")) for rule in rules] == [
        ("pdf", "ocr", None), ("md", "text", None), ("xlsx", "builtin", False), ("txt", "builtin", None),
    ]  # fmt: skip
    page = shelf.admin.get(shelf.url("settings")).content.decode()
    chosen = page.partition('name="read_pdf"')[2].partition("</select>")[0]
    assert '<option value="ocr" selected>' in chosen
    assert shelf.admin.post(shelf.url("settings"), form(header_row="on")).status_code == 302
    assert shelf.fresh(shelf.base).chunking_config["parser_engine_rules"] == [other]


def test_weights_and_fusion_of_the_base_rank_its_hits(shelf: Shelf) -> None:
    from apps.retrieval.search import _weights

    assert shelf.admin.post(shelf.url("settings"), form(vectors="on", words_share="80", fusion="rrf")).status_code == 302
    base = shelf.fresh(shelf.base)
    assert base.retrieval_config == {"fusion": "rrf", "weights": [0.8, 0.2]} and _weights([base]) == (0.8, 0.2)
    headers = {"X-Tenant-ID": str(shelf.space.pk)}
    address = f"/api/v1/initialization/config/{base.uid}"
    assert shelf.admin.get(address, headers=headers).json()["data"]["retrieval"] == {"fusion": "rrf", "weights": [0.8, 0.2]}
    for retrieval, field in (({"fusion": "best"}, "fusion"), ({"weights": [0, 0]}, "weights"), ({"weights": [1, "2"]}, "weights")):
        body = {"retrieval": retrieval}
        refused = shelf.admin.put(address, body, content_type="application/json", headers=headers)
        assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (400, f"retrieval.{field}")


def test_tags_are_proposed_as_the_page_says(shelf: Shelf) -> None:
    chat = model(shelf)
    sent = form(summary_model=str(chat.uid), tags="on", tag_count="2", tag_untagged="on")
    assert shelf.admin.post(shelf.url("settings"), sent).status_code == 302
    assert shelf.fresh(shelf.base).options["auto_tag_config"] == {"enabled": True, "max_tags": 2, "skip_if_tagged": True}
