"""`manage.py evaluate`: run a question set against a base and fail when a figure is too low, so that a build can depend on it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.common.actor import Actor
from apps.common.errors import DomainError
from apps.common.jobs.claims import claim_next
from apps.common.jobs.models import RunState
from apps.common.jobs.registry import job_kinds
from apps.common.jobs.tasks import work
from apps.common.scope import space_scope
from apps.evaluation.measures import NAMES
from apps.evaluation.models import EvaluationRun, QuestionSet
from apps.evaluation.selectors import compare, run_get, set_get
from apps.evaluation.services import EVALUATE, questions_read, run_start, set_create
from apps.knowledge.models import KnowledgeBase
from apps.knowledge.selectors import as_uuid, base_get

POLL_S = 0.5


class Command(BaseCommand):
    help = (
        "Ask a base the questions of a set and print the figures. With --at-least or --against it ends with code 1 when a figure is too "
        "low or fell, so that a build can fail on it. Works with or without running workers."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--space", type=int, required=True, help="Id of the space.")
        parser.add_argument("--base", required=True, help="Id or name of the knowledge base.")
        parser.add_argument("--set", required=True, help="Id or name of a question set, or a JSONL or CSV file.")
        parser.add_argument(
            "--model", default="", help="Who answers: `extractive` or the id of a chat model. Without it: the search alone."
        )
        parser.add_argument("--note", default="", help="A line to know the run by.")
        parser.add_argument(
            "--at-least", action="append", default=[], metavar="FIGURE=VALUE", help=f"Fail below this. Figures: {', '.join(NAMES)}."
        )
        parser.add_argument("--against", default="", metavar="RUN", help="Fail when a figure is lower than in this earlier run.")
        parser.add_argument("--tolerance", type=float, default=0.0, help="How much a figure may fall against the earlier run.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        wanted = dict(_threshold(text) for text in options["at_least"])
        actor = Actor.system(options["space"], "manage.py evaluate")
        with space_scope(options["space"], "manage.py evaluate"):
            try:
                run, faults = self._measured(actor, options, wanted)
            except DomainError as error:
                raise CommandError(f"{error}", returncode=2) from error
        self._tell(run, faults, as_json=options["json"])
        if faults:
            raise SystemExit(1)

    def _measured(self, actor: Actor, options: dict[str, Any], wanted: dict[str, float]) -> tuple[EvaluationRun, list[str]]:
        base = _base(actor, options["base"])
        earlier = run_get(actor=actor, run_id=options["against"]) if options["against"] else None
        chosen = _set(actor, options["set"])
        run = run_start(actor=actor, question_set=chosen, base=base, model_id=options["model"], note=options["note"])
        run = _ended(run)
        if run.state != RunState.DONE:
            raise CommandError(f"the run ended as {run.state}: {run.error or run.reason}", returncode=2)
        faults = [
            f"{name} is {run.metrics[name]:.4f}, at least {least:.4f} is wanted" if name in run.metrics else f"{name} was not measured"
            for name, least in wanted.items()
            if run.metrics.get(name, -1.0) < least
        ]
        if earlier is not None:
            figures = compare(actor=actor, before=earlier, after=run).figures
            fell = [(name, was, now) for name, (was, now) in figures.items() if now < was - options["tolerance"]]
            faults += [f"{name} fell from {was:.4f} to {now:.4f}" for name, was, now in fell]
        return run, faults

    def _tell(self, run: EvaluationRun, faults: list[str], *, as_json: bool) -> None:
        if as_json:
            told = {
                "run": str(run.uid),
                "set": str(run.question_set.uid),
                "knowledge_base": str(run.kb_uid),
                "model": run.model_id,
                "questions": run.progress_total,
                "failed": run.progress_failed,
                "metrics": run.metrics,
                "faults": faults,
                "passed": not faults,
            }
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        self.stdout.write(f"{run.question_set.name} against {run.kb_name}: {run.progress_total} questions, run {run.uid}")
        for name, value in run.metrics.items():
            self.stdout.write(f"{name:20} {value:.4f}")
        for fault in faults:
            self.stderr.write(fault)


def _threshold(text: str) -> tuple[str, float]:
    name, _equals, value = text.partition("=")
    try:
        least = float(value)
    except ValueError:
        raise CommandError(f"--at-least takes FIGURE=VALUE, as recall=0.9; not: {text}", returncode=2) from None
    if name not in NAMES:
        raise CommandError(f"there is no figure {name}; there are: {', '.join(NAMES)}", returncode=2)
    return name, least


def _base(actor: Actor, named: str) -> KnowledgeBase:
    if as_uuid(named) is not None:
        return base_get(actor=actor, kb_id=named)
    found = list(KnowledgeBase.objects.visible_to(actor).filter(name=named)[:2])
    if len(found) != 1:
        raise CommandError(f"{'no base is' if not found else 'several bases are'} called {named}; give its id", returncode=2)
    return found[0]  # type: ignore[no-any-return]


def _set(actor: Actor, named: str) -> QuestionSet:
    if as_uuid(named) is not None:
        return set_get(actor=actor, set_id=named)
    path = Path(named)
    if path.is_file():
        questions = questions_read(path.name, path.read_bytes())
        same = QuestionSet.objects.visible_to(actor).filter(name=path.stem, size=len(questions)).first()
        if same is not None and [
            (q.text, tuple(q.documents), tuple(q.passages), tuple(q.answers)) for q in same.questions.order_by("index")
        ] == [(q.text, q.documents, q.passages, q.answers) for q in questions]:
            return same  # type: ignore[no-any-return]
        taken = QuestionSet.objects.visible_to(actor).filter(name__startswith=path.stem).count()
        name = path.stem if not taken else f"{path.stem} {taken + 1}"
        return set_create(actor=actor, name=name, questions=questions, file_name=path.name)
    found = QuestionSet.objects.visible_to(actor).filter(name=named).first()
    if found is None:
        raise CommandError(f"there is neither a question set nor a file called {named}", returncode=2)
    return found  # type: ignore[no-any-return]


def _ended(run: EvaluationRun) -> EvaluationRun:
    """Works along, so that no worker is needed; whoever holds the row does it."""
    kind, wait = job_kinds.get(EVALUATE), threading.Event()
    while True:
        run.refresh_from_db()
        if not run.is_live:
            return run
        claim = claim_next(kind)
        if claim is not None:
            work(claim)
        else:
            wait.wait(POLL_S)
