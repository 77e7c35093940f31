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
    ({"vlm_config": {"enabled": True, "description_language": "zh-CN"}}, "vlm_config", "read by OCR"),
    ({"vlm_config": {"custom_instructions": "x" * 4001}}, "vlm_config.custom_instructions", "4000"),
    ({"image_actions": [{"name": "crop"}]}, "image_actions", "read by OCR"),
    ({"image_pipeline": "deep"}, "image_pipeline", "no other pipelines"),
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


def test_a_picture_has_no_attributes_taken_from_it(world: Any) -> None:
    from io import BytesIO

    from PIL import Image

    held = BytesIO()
    Image.new("RGB", (8, 8), (200, 30, 30)).save(held, "PNG")
    config = json.dumps({"image_attrs_enabled": True})
    assert world.member.upload(world.base, b"text", process_config=config).status_code == 200, "it says nothing about a text"
    refused = world.member.upload(world.base, held.getvalue(), "red.png", process_config=config)
    assert (refused.status_code, refused.json()["error"]["details"]["field"]) == (400, "process_config.image_attrs_enabled")
    assert world.member.upload(world.base, held.getvalue(), "red.png").status_code == 200
