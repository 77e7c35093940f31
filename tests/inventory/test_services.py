"""Public services are keyword-only and take the actor first."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch

from tests.inventory.source import assert_only, modules, tree

# "module:function", or "module:*" for a module of which every function is a system step -> why it has no actor
WITHOUT_ACTOR = {
    "apps/chat/services/upkeep.py:*": "sweeps over all spaces: they settle and tidy what nobody works on",
    "apps/ingestion/services.py:*": "steps of runs: the actor was checked by the service that stored the document, nobody acts while a worker runs",
    "apps/retrieval/services.py:*": "keeps the derived index in step with rows that an actor's own service wrote",
    "apps/knowledge/services/asking.py:*": "what a model is shown and how its failures read; the services that ask it check the actor first",
    "apps/knowledge/services/chunks.py:locked_passage": "a step of services that checked the actor",
    "apps/knowledge/services/chunks.py:reindex_passage": "a step of services that checked the actor",
    "apps/knowledge/services/documents.py:locked_document": "a step of services that checked the actor",
    "apps/knowledge/services/questions.py:questions_of": "reads a passage the caller holds",
    "apps/knowledge/services/questions.py:questions_draft": "stores nothing; the service that keeps the draft checks the actor",
    "apps/knowledge/services/summaries.py:summary_draft": "stores nothing; the service that keeps the draft checks the actor",
    "apps/knowledge/services/summaries.py:summary_refresh": "follows a change whose own service checked the actor",
    "apps/llm/services/chat.py:*": "tells which chat model an id names within the open scope; who may choose it was checked before",
    "apps/llm/services/probes.py:*": "asks a model for the services that checked the actor",
    "apps/llm/services/embedders.py:*": "tells which embedder a model id names within the open scope; who may choose it was checked before",
}


def _service_modules() -> Iterator[str]:
    return (path for path in modules("apps") if fnmatch(path, "apps/*/services*.py") or fnmatch(path, "apps/*/services/*.py"))


def _public_functions(path: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in tree(path).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            yield node


def _follows(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args
    positional = arguments.posonlyargs or arguments.args or arguments.vararg
    return not positional and bool(arguments.kwonlyargs) and arguments.kwonlyargs[0].arg == "actor"


def test_services_are_keyword_only_with_the_actor_first() -> None:
    found = [(path, function.name) for path in _service_modules() for function in _public_functions(path) if not _follows(function)]
    named = [f"{path}:*" if f"{path}:*" in WITHOUT_ACTOR else f"{path}:{name}" for path, name in found]
    assert_only(named, WITHOUT_ACTOR, "a public service takes keywords only, `actor` first")


def test_services_are_annotated() -> None:
    bare = [
        f"{path}:{function.name}"
        for path in _service_modules()
        for function in _public_functions(path)
        if function.returns is None or any(argument.annotation is None for argument in function.args.kwonlyargs)
    ]
    assert bare == []
