"""Routes of evaluations (contract content 10) and what the product adds: sets, runs, results, comparisons."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from apps.common.api.views import ApiView, Empty, Op, PageQuery
from apps.evaluation import selectors, services
from apps.evaluation.api import serializers as s
from apps.knowledge.selectors import base_get

TAGS = ("evaluation",)
SETTLED = (400, 401, 403, 404, 409)


class EvaluationView(ApiView):
    operations = {
        "POST": Op(
            "evaluation.manage",
            "Evaluate a base with a question set",
            body=s.EvaluationIn,
            reply=s.EvaluationOut,
            errors=SETTLED,
            description="Nothing is made beside the run: the base itself is asked. `params.chat_model_id` says who answers.",
            examples={"default": {"dataset_id": "default"}},
            tags=TAGS,
        ),
        "GET": Op("evaluation.read", "Read an evaluation", query=s.TaskQuery, reply=s.EvaluationOut, tags=TAGS),
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        given = {name: body.get(name) or "" for name in ("dataset_id", "knowledge_base_id", "chat_id")}
        return self.render(services.evaluation_ask(actor=self.actor, **given))

    def get(self, request: Any) -> Response:
        return self.render(selectors.run_get(actor=self.actor, run_id=self.asked()["task_id"]))


class SetsView(ApiView):
    operations = {
        "GET": Op("evaluation.manage", "List question sets", query=PageQuery, reply=s.QuestionSetOut, shape="page", tags=TAGS),
        "POST": Op(
            "evaluation.manage",
            "Make a question set",
            body=s.QuestionSetIn,
            reply=s.QuestionSetOut,
            status=201,
            errors=SETTLED,
            description="A question with nothing expected is one whose right answer is “not found”.",
            examples={
                "two": {
                    "name": "Support",
                    "questions": [
                        {"question": "How often is the sensor calibrated?", "expected_documents": ["sensor.md"]},
                        {"question": "What does the roof cost?"},
                    ],
                }
            },
            tags=TAGS,
        ),
    }

    def get(self, request: Any) -> Response:
        asked = self.asked()
        return self.page(selectors.set_list(actor=self.actor), asked["page"] or 1, asked["page_size"] or 20)

    def post(self, request: Any) -> Response:
        body = self.read()
        questions = services.questions_of(enumerate(body["questions"], 1))
        return self.render(services.set_create(actor=self.actor, name=body["name"], questions=questions))


class SetFileView(ApiView):
    parser_classes = (MultiPartParser,)
    operations = {
        "POST": Op(
            "evaluation.manage",
            "Upload a question set",
            body=s.SetFileIn,
            reply=s.QuestionSetOut,
            status=201,
            errors=SETTLED,
            multipart=True,
            description="At most 10 MB and 5,000 questions. A row that is wrong is named; nothing is stored then.",
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        file = body["file"]
        questions = services.questions_read(file.name, file.read(services.MAX_BYTES + 1))
        name = body.get("name") or PurePosixPath(file.name).stem
        return self.render(services.set_create(actor=self.actor, name=name, questions=questions, file_name=file.name))


class SetDrawView(ApiView):
    operations = {
        "POST": Op(
            "evaluation.manage",
            "Draw a question set from a base",
            body=s.SetDrawIn,
            reply=s.QuestionSetOut,
            status=201,
            errors=SETTLED,
            description="One question each of documents spread over the base: a question kept with a passage, else a sentence of it.",
            tags=TAGS,
        )
    }

    def post(self, request: Any) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=body["knowledge_base_id"])
        return self.render(services.set_draw(actor=self.actor, base=base, name=body.get("name") or base.name, size=body["size"]))


class SetView(ApiView):
    operations = {
        "GET": Op("evaluation.manage", "Read a question set", query=PageQuery, reply=s.QuestionSetDetailOut, tags=TAGS),
        "DELETE": Op("evaluation.manage", "Delete a question set and its runs", shape="message", errors=SETTLED, tags=TAGS),
    }

    def get(self, request: Any, set_id: str) -> Response:
        asked = self.asked()
        found = selectors.set_get(actor=self.actor, set_id=set_id)
        size = asked["page_size"] or 20
        start = ((asked["page"] or 1) - 1) * size
        self.render_context = {"questions": selectors.question_list(actor=self.actor, question_set=found)[start : start + size]}
        return self.render(found)

    def delete(self, request: Any, set_id: str) -> Response:
        services.set_delete(actor=self.actor, question_set=selectors.set_get(actor=self.actor, set_id=set_id))
        return self.render(None)


class RunsView(ApiView):
    operations = {
        "GET": Op("evaluation.manage", "List runs", query=s.RunsQuery, reply=s.EvaluationRunOut, shape="page", tags=TAGS),
        "POST": Op(
            "evaluation.manage", "Start a run", body=s.EvaluationRunIn, reply=s.EvaluationRunOut, status=201, errors=SETTLED, tags=TAGS
        ),
    }

    def get(self, request: Any) -> Response:
        asked = self.asked()
        wanted = asked.get("set_id")
        chosen = selectors.set_get(actor=self.actor, set_id=wanted) if wanted else None
        return self.page(selectors.run_list(actor=self.actor, question_set=chosen), asked["page"] or 1, asked["page_size"] or 20)

    def post(self, request: Any) -> Response:
        body = self.read()
        base = base_get(actor=self.actor, kb_id=body["knowledge_base_id"])
        chosen = selectors.set_get(actor=self.actor, set_id=body["set_id"])
        more = {name: body.get(name, "") for name in ("model_id", "note")}
        return self.render(services.run_start(actor=self.actor, question_set=chosen, base=base, **more))


class RunView(ApiView):
    operations = {
        "GET": Op("evaluation.manage", "Read a run", reply=s.EvaluationRunDetailOut, tags=TAGS),
        "DELETE": Op("evaluation.manage", "Delete a run", shape="message", errors=SETTLED, tags=TAGS),
    }

    def get(self, request: Any, run_id: str) -> Response:
        return self.render(selectors.run_get(actor=self.actor, run_id=run_id))

    def delete(self, request: Any, run_id: str) -> Response:
        services.run_delete(actor=self.actor, run=selectors.run_get(actor=self.actor, run_id=run_id))
        return self.render(None)


class ResultsView(ApiView):
    operations = {
        "GET": Op(
            "evaluation.manage",
            "Read the results of a run by question",
            query=s.ResultsQuery,
            reply=s.EvaluationResultOut,
            shape="page",
            tags=TAGS,
        )
    }

    def get(self, request: Any, run_id: str) -> Response:
        asked = self.asked()
        run = selectors.run_get(actor=self.actor, run_id=run_id)
        rows = selectors.result_list(actor=self.actor, run=run, only_bad=asked["only_bad"])
        return self.page(rows, asked["page"] or 1, asked["page_size"] or 20)


class CancelView(ApiView):
    operations = {
        "POST": Op(
            "evaluation.manage",
            "Stop a run",
            body=Empty,
            reply=s.EvaluationRunOut,
            description="What was measured by then stays. One that has ended stays as it is.",
            tags=TAGS,
        )
    }

    def post(self, request: Any, run_id: str) -> Response:
        run = selectors.run_get(actor=self.actor, run_id=run_id)
        services.run_cancel(actor=self.actor, run=run)
        return self.render(selectors.run_get(actor=self.actor, run_id=run_id))


class CompareView(ApiView):
    operations = {
        "GET": Op("evaluation.manage", "Compare two runs of one set", query=s.CompareQuery, reply=s.EvaluationComparisonOut, tags=TAGS)
    }

    def get(self, request: Any, run_id: str) -> Response:
        after = selectors.run_get(actor=self.actor, run_id=run_id)
        before = selectors.run_get(actor=self.actor, run_id=self.asked()["with"])
        return self.render(selectors.compare(actor=self.actor, before=before, after=after))
