"""Translations without gettext's own programs: `messages.py compile | check | extract`.

compile  locale/*/LC_MESSAGES/*.po to .mo, where the .po changed
check    fail when a text of the code or a template has no translation in a language, or a translation cannot be used
extract  bring the .po files up to date with code and templates
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "locale"
SOURCE_LANGUAGE = "en"  # the texts in code are English: an empty translation there means "as written"
KEYWORDS = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}
PLACEHOLDER = re.compile(r"%\(\w+\)[sdif]|%[sdif]|\{\w*\}")


def po_files() -> list[Path]:
    return sorted(LOCALE.glob("*/LC_MESSAGES/django.po"))


def language_of(path: Path) -> str:
    return path.parent.parent.name


def load(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=language_of(path), abort_invalid=True)


def texts() -> Iterator[tuple[str, int, object, str | None]]:
    """Every translatable text: (file, line, message id or (singular, plural), context)."""
    for folder in ("apps", "kbportal"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield from _from_source(path, path.read_bytes())
    templates = [*(ROOT / "templates").rglob("*"), *(ROOT / "apps").rglob("templates/**/*")]
    for path in sorted(path for path in templates if path.is_file() and path.suffix in (".html", ".txt")):
        yield from _from_source(path, _as_python(path))


def _as_python(path: Path) -> bytes:
    """A template as Django's own makemessages sees it; line starts are trimmed, for a template's indentation is not Python's."""
    from django.conf import settings

    if not settings.configured:
        settings.configure(USE_I18N=True)
    from django.utils.translation.template import templatize

    source = templatize(path.read_text(encoding="utf-8"), origin=str(path))
    return "\n".join(line.strip() for line in source.split("\n")).encode()


def _from_source(path: Path, source: bytes) -> Iterator[tuple[str, int, object, str | None]]:
    for line, message, _comments, context in extract("python", BytesIO(source), keywords=KEYWORDS, options={"encoding": "utf-8"}):
        if message:
            yield str(path.relative_to(ROOT)), line, message, context


def template_catalog() -> Catalog:
    catalog = Catalog(project="kbportal", charset="utf-8", fuzzy=False)
    for file, _line, message, context in texts():
        catalog.add(message, locations=[(file, 0)], context=context)
    return catalog


def compile_changed() -> int:
    for path in po_files():
        target = path.with_suffix(".mo")
        if target.exists() and target.stat().st_mtime >= path.stat().st_mtime:
            continue
        # Written beside and renamed: a running portal never reads half a file.
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            write_mo(file, load(path))
        Path(file.name).chmod(0o644)
        Path(file.name).replace(target)
    return 0


def problems(path: Path, wanted: Catalog) -> Iterator[str]:
    catalog = load(path)
    language = language_of(path)
    for message in wanted:
        if not message.id:
            continue
        found = catalog.get(_key(message.id), message.context)
        shown = repr(_key(message.id))[:90]
        where = message.locations[0][0] if message.locations else "?"
        if found is None:
            if language != SOURCE_LANGUAGE:
                yield f"{language}: no entry for {shown} ({where})"
            continue
        strings = found.string if isinstance(found.string, (list, tuple)) else [found.string]
        if found.fuzzy:
            yield f"{language}: {shown} is marked fuzzy ({where})"
        elif not all(strings) and language != SOURCE_LANGUAGE:
            yield f"{language}: {shown} is not translated ({where})"
        else:
            ids = message.id if isinstance(message.id, (list, tuple)) else [message.id]
            allowed = {mark for text in ids for mark in PLACEHOLDER.findall(text)}
            for text in filter(None, strings):
                if extra := set(PLACEHOLDER.findall(text)) - allowed:
                    yield f"{language}: {shown} uses {', '.join(sorted(extra))}, which the text does not have ({where})"


def _key(message_id: object) -> str:
    return str(message_id[0]) if isinstance(message_id, (list, tuple)) else str(message_id)


def check() -> int:
    wanted = template_catalog()
    languages = {language_of(path) for path in po_files()}
    found = [line for path in po_files() for line in problems(path, wanted)]
    if len(wanted) and "zh_Hans" not in languages:
        found.append("zh_Hans: locale/zh_Hans/LC_MESSAGES/django.po does not exist; run: make translations")
    for line in found:
        sys.stdout.write(line + "\n")
    sys.stdout.write(f"{len(wanted)} texts, {len(found)} problems\n")
    return 1 if found else 0


def update() -> int:
    wanted = template_catalog()
    for language in ("zh_Hans", "en"):
        path = LOCALE / language / "LC_MESSAGES" / "django.po"
        path.parent.mkdir(parents=True, exist_ok=True)
        catalog = load(path) if path.exists() else Catalog(locale=language, project="kbportal", charset="utf-8", fuzzy=False)
        catalog.update(wanted, no_fuzzy_matching=True, update_creation_date=False)
        catalog.obsolete.clear()
        with path.open("wb") as file:
            write_po(file, catalog, width=120, sort_by_file=True, omit_header=False)
    return 0


if __name__ == "__main__":
    commands = {"compile": compile_changed, "check": check, "extract": update}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    sys.exit(commands[sys.argv[1]]())
