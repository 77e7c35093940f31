"""A page as a Markdown file: what is known of it as YAML before its text. Written the same way every time, read back without loss."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FENCE = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.S | re.M)
MAX_YAML = 2_000_000
#: Members of the front matter the portal reads itself; all others of an imported file are kept in `WikiPage.metadata`.
OWN = ("title", "slug", "type", "status", "aliases", "summary", "folder", "made", "model", "sources", "claims")


class NotYaml(ValueError):
    """What stands before the text cannot be read."""


def written(front: Mapping[str, Any], content: str) -> str:
    """The file: its front matter, an empty line, the text. `parted` gives both back."""
    import yaml

    dumped = yaml.dump(dict(front), Dumper=_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=False, width=1_000_000)
    return f"---\n{dumped}---\n\n{content}\n"


def parted(text: str) -> tuple[dict[str, Any], str]:
    """(front matter, text) of a file; a file without one is text alone. Raises: NotYaml."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    found = _FENCE.match(text)
    if found is None:
        return {}, text.strip("\n")
    return _read(found[1]), text[found.end() :].strip("\n")


def _read(source: str) -> dict[str, Any]:
    import yaml

    if len(source) > MAX_YAML:
        raise NotYaml("the front matter is too long")
    try:
        value = yaml.load(source, Loader=_loader())  # noqa: S506 - a SafeLoader without references
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise NotYaml("the front matter is no YAML") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotYaml("the front matter is no set of names and values")
    return {str(name): plain(each) for name, each in value.items()}


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _dumper() -> Any:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    return Dumper


def _loader() -> Any:
    """SECURITY: references would let a small file unfold into a huge one."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):  # type: ignore[no-untyped-call]
                raise yaml.YAMLError("references are not read")
            return super().compose_node(parent, index)  # type: ignore[no-untyped-call]

    return Loader
