"""The policy table and its users say the same: no view names an unknown action, no action is there for nobody."""

from __future__ import annotations

import ast
from collections import Counter
from importlib import import_module

from apps.common.policy import rule_for, rules
from kbportal.urls import CONTEXTS
from tests.inventory.source import assert_only, context_of, modules, tree
from tests.support.routes import routes

# action -> why nothing asks for it yet
UNUSED: dict[str, str] = {}


def _words(path: str) -> set[str]:
    return {node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _asked() -> set[str]:
    """Actions given to `authorize` or `allowed` as plain words."""
    found = set()
    for path in modules("apps"):
        for node in ast.walk(tree(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("authorize", "allowed")
                and len(node.args) > 1
            ):
                found |= {part.value for part in ast.walk(node.args[1]) if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return found


def test_every_action_of_a_view_is_in_the_table() -> None:
    named = {route.action(method) for route in routes().values() for method in route.methods} | _asked()
    assert sorted(named - set(rules())) == []
    assert all(rule_for(action) for action in named)


def test_no_action_is_unused() -> None:
    """Looked for in every module but the tables; a context without routes yet is left alone."""
    used = set().union(*(_words(path) for path in modules("apps") if not path.endswith("/policies.py")))
    waiting = {name for name in CONTEXTS if not import_module(f"apps.{name}.api.urls").upstream}
    tables = {path: _words(path) & set(rules()) for path in modules("apps") if path.endswith("/policies.py")}
    unused = {action for path, actions in tables.items() if context_of(path) not in waiting for action in actions - used}
    assert_only(unused, UNUSED, "an action of the policy table is asked for somewhere")


def test_every_action_has_one_home() -> None:
    counted = Counter(word for path in modules("apps") if path.endswith("/policies.py") for word in _words(path) & set(rules()))
    assert [action for action, times in counted.items() if times > 1] == []
