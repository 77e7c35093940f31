"""Processing wishes of an upload, an address, a text, a reparse: kept and honoured, or refused by name (contract knowledge 4.5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.common.scope import unscoped
from apps.knowledge.models import Document

KEPT = {
    "summary_enabled": False,
    "enable_multimodel": True,
    "chunking_config": {"chunk_size": 300, "chunk_overlap": 20},
    "question_generation_config": {"enabled": True, "question_count": 2},
    "vlm_config": {"enabled": False, "description_language": "zh-CN"},
}
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"summary_enabled": "yes"}, "summary_enabled", "true or false"),
    ({"vlm_config": []}, "vlm_config", "JSON object"),
    ({"parser_engine_rules": {}}, "parser_engine_rules", "JSON list"),
    ({"encoding": 7}, "encoding", "Send a text"),
    ({"chunking_config": {"chunk_size": "many"}}, "chunking_config.chunk_size", "whole number"),
    ({"chunking_config": {"chunk_size": 100, "chunk_overlap": 100}}, "chunking_config.chunk_overlap", "overlap must be smaller"),
    ({"chunking_config": {"strategy": "magic"}}, "chunking_config.strategy", "Unknown splitting strategy"),
    ({"vlm_config": {"enabled": True, "description_language": "zh-CN"}}, "vlm_config.model_id", "none is chosen here"),
    ({"vlm_config": {"model_id": "5b0c9d5e-7c5e-4b0f-9a37-0c1f5d8f3b52"}}, "vlm_config.model_id", "no such vision model"),
    ({"vlm_config": {"description_language": 7}}, "vlm_config.description_language", "by its code"),
    ({"vlm_config": {"custom_instructions": "x" * 4001}}, "vlm_config.custom_instructions", "4000"),
    ({"image_actions": []}, "image_actions", "JSON object"),
    ({"image_actions": {"crop": {}}}, "image_actions.crop", "other actions"),
    ({"image_actions": {"ocr": {"on": [{"prop": "contain.text", "is": "much"}]}}}, "image_actions.ocr.on[0]", "a value it cannot have"),
    ({"parser_engine_rules": [{"file_types": ["pdf"], "engine": "magic"}]}, "parser_engine_rules[0].engine", "no such way"),
    ({"parser_engine_rules": [{"file_types": ["md"], "engine": "ocr"}]}, "parser_engine_rules[0].file_types", ".md cannot be read"),
    ({"parser_engine_rules": [{"engine": "text"}]}, "parser_engine_rules[0].file_types", "needs the file types"),
    ({"image_pipeline": "deep"}, "image_pipeline", "no other pipelines"),
    ({"image_pipeline_params": {"depth": "2"}}, "image_pipeline_params", "no other pipelines"),
    ({"parser_engine_overrides": {"pdf": "magic"}}, "parser_engine_overrides", "Choose one with parser_engine_rules"),
    ({"asr_config": {"enabled": True}}, "asr_config", "Recordings"),
    ({"graph_enabled": True}, "graph_enabled", "not extracted here"),
    ({"extract_config": {"enabled": True}}, "extract_config", "not extracted here"),
]


def overrides(document_id: str) -> Any:
    with unscoped("test look"):
        return (Document.objects.get(uid=document_id).metadata or {}).get("process_overrides")


def test_wishes_are_kept_and_used_again_by_a_reparse(world: Any) -> None:
    made = world.member.upload(world.base, b"text", process_config=json.dumps({**KEPT, "unknown": 1, "asr_config": None})).json()["data"]
    assert overrides(made["id"]) == KEPT
    with unscoped("test data"):
        Document.objects.filter(uid=made["id"]).update(parse_status="completed")
    assert world.member.post(f"knowledge/{made['id']}/reparse").status_code == 200
    assert overrides(made["id"]) == KEPT, "left out, the stored ones hold"
    assert world.member.post(f"knowledge/{made['id']}/reparse", {"process_config": {"summary_enabled": True}}).status_code == 200
    assert overrides(made["id"]) == {"summary_enabled": True}


@pytest.mark.parametrize(("config", "field", "words"), REFUSED, ids=[field for _config, field, _words in REFUSED])
def test_what_cannot_be_done_is_refused_by_name(world: Any, config: dict[str, Any], field: str, words: str) -> None:
    uploaded = world.member.upload(world.base, b"text", process_config=json.dumps(config))
    written = world.member.post(f"knowledge-bases/{world.base.uid}/knowledge/manual", {"content": "x", "process_config": config})
    for answered in (uploaded, written):
        error = answered.json()["error"]
        assert (answered.status_code, error["details"]["field"]) == (400, f"process_config.{field}"), answered.content
        assert words in error["message"]
    with unscoped("test look"):
        assert Document.objects.count() == 0


def test_what_an_upload_says_of_its_pictures_is_kept(world: Any) -> None:
    config = {"image_attrs_enabled": True, "image_actions": {"ocr": {"on": [{"prop": "system:contain.data_visual", "is": True}]}}}
    made = world.member.upload(world.base, b"text", process_config=json.dumps(config))
    assert made.status_code == 200
    rule = {"prop": "contain.data_visual", "is": True}
    assert overrides(made.json()["data"]["id"]) == {**config, "image_actions": {"ocr": {"on": [rule], "on_unobserved": True}}}
