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
    assert "KnowledgeQA model" in page and "VLLM model" not in page and "theirs" not in page
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
