"""robots.txt (RFC 9309): the longest rule decides, `*` and `$` are understood, and no pattern takes long to match."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

AGENT = "kbportal"
MAX_RULES = 5_000


@dataclass(frozen=True, slots=True)
class Robots:
    """`rules`: (allowed, pattern); `delay_s`: the pause the site asks for; `sitemaps`: addresses it names."""

    rules: tuple[tuple[bool, str], ...] = ()
    delay_s: float = 0.0
    sitemaps: tuple[str, ...] = ()

    def allows(self, url: str) -> bool:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        best = (-1, True)
        for allowed, pattern in self.rules:
            if _matches(pattern, target):
                best = max(best, (len(pattern), allowed))
        return best[1]


def read_robots(text: str) -> Robots:
    """The rules for us: the group that names this portal, else the one for everybody."""
    groups: dict[str, tuple[list[tuple[bool, str]], list[float]]] = {}
    agents: list[str] = []
    sitemaps: list[str] = []
    in_rules = False
    for line in text.splitlines()[: MAX_RULES * 4]:
        name, colon, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon:
            continue
        if name == "sitemap" and value:
            sitemaps.append(value)
        elif name == "user-agent":
            agents = [value.lower()] if in_rules else [*agents, value.lower()]
            in_rules = False
            for agent in agents:
                groups.setdefault(agent, ([], []))
        elif name in ("allow", "disallow", "crawl-delay"):
            in_rules = True
            for agent in agents:
                _add(groups[agent], name, value)
    rules, delays = next((groups[agent] for agent in groups if agent != "*" and agent and AGENT.startswith(agent)), None) or groups.get(
        "*", ([], [])
    )
    return Robots(tuple(rules), max(delays, default=0.0), tuple(dict.fromkeys(sitemaps)))


def _add(group: tuple[list[tuple[bool, str]], list[float]], name: str, value: str) -> None:
    rules, delays = group
    if name == "crawl-delay":
        if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value):
            delays.append(float(value))
    elif value and len(rules) < MAX_RULES:
        rules.append((name == "allow", value[:1000]))


def _matches(pattern: str, target: str) -> bool:
    end = pattern.endswith("$")
    first, *others = (pattern[:-1] if end else pattern).split("*")
    if not target.startswith(first):
        return False
    at = len(first)
    for number, piece in enumerate(others):
        if end and number == len(others) - 1:
            return len(target) - len(piece) >= at and target.endswith(piece)
        found = target.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return at == len(target) if end and not others else True
