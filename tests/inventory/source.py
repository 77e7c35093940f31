"""The tree as data: product modules, their syntax trees, and the comparison of findings with a list of reasoned exemptions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def modules(*folders: str) -> tuple[str, ...]:
    """Repository-relative paths of hand-written product modules, `apps` and `kbportal` by default; migrations are left out."""
    found = [path.relative_to(ROOT).as_posix() for folder in folders or ("apps", "kbportal") for path in (ROOT / folder).rglob("*.py")]
    return tuple(sorted(path for path in found if "/migrations/" not in path))


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=path)


def context_of(path: str) -> str:
    """`knowledge` for apps/knowledge/models/document.py; empty outside apps/."""
    parts = path.split("/")
    return parts[1] if parts[0] == "apps" and len(parts) > 2 else ""


def imports(path: str) -> Iterator[tuple[str, str]]:
    """(module, name) pairs a file imports anywhere in it; name is empty for `import module`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = path.removesuffix(".py").split("/")[: -node.level]
                base = ".".join([*package, base] if base else package)
            yield from ((base, alias.name) for alias in node.names)


def dotted(node: ast.expr) -> str:
    """`os.environ` for the expression of that text; empty for anything but names and attributes."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else node.attr
    return ""


def calls(path: str) -> Iterator[str]:
    """The dotted text of every call, and of every decorator, in a file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield dotted(node.func)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from (dotted(decorator) for decorator in node.decorator_list)


def assert_only(found: Iterable[str], exempt: dict[str, str], rule: str) -> None:
    """Every finding has an exemption with a reason, and every exemption is still needed."""
    __tracebackhide__ = True
    findings = set(found)
    unlisted = sorted(findings - set(exempt))
    stale = sorted(set(exempt) - findings)
    assert not unlisted, f"{rule}\nfound, and not among the exemptions with a reason:\n  " + "\n  ".join(unlisted)
    assert not stale, f"{rule}\nexemptions no longer needed, remove them:\n  " + "\n  ".join(stale)
    assert all(exempt.values()), f"{rule}\nan exemption without a reason"
