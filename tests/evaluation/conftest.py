"""A library with two manuals and a set of questions about them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import work_all
from tests.support.library import Library

SENSOR = """# 传感器 TH01

安装完成后应在常温下静置三十分钟，再进行零点检查。传感器应每季度校准一次，校准记录保存两年。偏差超过 0.5 度的传感器应更换探头。
"""
PUMP = """# Pump P7

The red pump is serviced every six months by the maintenance team. Its filter is washed with warm water after each season.
"""
QUESTIONS = [
    {"question": "传感器多久校准一次？", "expected_documents": ["传感器-TH01.md"], "expected_answer": "每季度校准一次"},
    {
        "question": "How often is the red pump serviced?",
        "expected_passages": ["serviced every six months"],
        "expected_answer": ["six months"],
    },
    {"question": "Who won the chess tournament in Reykjavik?"},
]


class Lab(Library):
    """A library that is asked over REST."""

    def call(self, method: str, path: str, body: Any = None, client: Any = None) -> Any:
        send = getattr(client or self.client, method)
        extra: dict[str, Any] = {"headers": {"X-Tenant-ID": str(self.space.pk), "Accept-Language": "en"}}
        if method == "get":
            return send(f"/api/v1/{path}", body or {}, **extra)
        return send(f"/api/v1/{path}", json.dumps({} if body is None else body), content_type="application/json", **extra)

    def made(self, name: str = "Manuals", questions: Any = None) -> str:
        answer = self.call("post", "evaluation/sets", {"name": name, "questions": QUESTIONS if questions is None else questions})
        assert answer.status_code == 201, answer.content
        return str(answer.json()["data"]["id"])

    def started(self, set_id: str, **more: str) -> str:
        body = {"set_id": set_id, "knowledge_base_id": str(self.base.uid), "model_id": "extractive", **more}
        answer = self.call("post", "evaluation/runs", body)
        assert answer.status_code == 201, answer.content
        return str(answer.json()["data"]["id"])

    def run(self, set_id: str, **more: str) -> dict[str, Any]:
        """A run after its work was done."""
        run_id = self.started(set_id, **more)
        work_all("evaluate")
        return dict(self.call("get", f"evaluation/runs/{run_id}").json()["data"])

    def results(self, run_id: str, **asked: Any) -> list[dict[str, Any]]:
        return list(self.call("get", f"evaluation/runs/{run_id}/results", asked).json()["data"])


@pytest.fixture
def lab(db: None) -> Lab:
    made = Lab.make()
    made.add("传感器-TH01.md", SENSOR)
    made.add("pump.md", PUMP)
    return made
