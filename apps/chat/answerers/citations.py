"""Citations are checked, not trusted: marks that name no passage of the turn go, and what is cited is compared with what it cites."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from apps.chat.answerers.sentences import Sentence
from apps.retrieval.selectors import text_tokens

Level = Literal["strong", "weak", "none"]
STRONG, WEAK = 0.6, 0.35
_NUMBERS = r"\d{1,4}(?:\s*[,，、;；]\s*\d{1,4})*"
_MARK = re.compile(rf"[ \t]?(?:\[\^?\s*({_NUMBERS})\s*\]|【\s*({_NUMBERS})\s*】)")
_OPEN = re.compile(r"[ \t]?[\[【]\^?[\d\s,，、;；]{0,40}\Z|[ \t]+\Z")
_LISTED = re.compile(r"\s*[-*]\s*《(.*)》\s*[:：]\s*(\S.*?)\s*\Z")
_LIST_BEGIN = re.compile(r"\s*[-*]?\s*《?")
CITED = re.compile(r"\[(\d{1,4})\]")
REFERENCE_HEADS = ("参考页面", "Reference pages")


@dataclass(slots=True)
class MarkFilter:
    """Text passes through as it is streamed; marks come out as `[n]`, or not at all when `n` is not in `known`.

    `paths`: what a line `- 《title》：path` may name; another such line goes. What may still become a mark is held back until it is clear.
    Code is left alone. `dropped`: numbers and paths that were taken out.
    """

    known: Collection[int]
    paths: Collection[str] = ()
    dropped: list[str] = field(default_factory=list)
    _held: str = ""
    _line: str = ""  # of the line that is being written, what came through
    _code: bool = False

    def feed(self, text: str) -> str:
        """What may be shown now."""
        self._held += text
        return self._through(final=False)

    def close(self) -> str:
        """The rest."""
        return self._through(final=True)

    def _through(self, *, final: bool) -> str:
        out: list[str] = []
        while self._held:
            line, newline, rest = self._held.partition("\n")
            if not newline and not final:
                ready = self._ready(line)
                if ready:
                    self._held = self._held[len(ready) :]
                    out.append(self._marks(ready))
                    self._line += ready
                break
            self._held = rest
            whole = self._line + line
            self._line = ""
            listed = _LISTED.match(whole)
            if listed and not self._code and whole == line and listed.group(2) not in self.paths:
                self.dropped.append(listed.group(2))
                continue
            out.append(self._marks(line) + newline)
            if whole.lstrip().startswith("```"):
                self._code = not self._code
            if not newline:
                break
        return "".join(out)

    def _ready(self, line: str) -> str:
        """How much of an unfinished line may go on: not what may become a mark, nor a line of the list of pages."""
        if not self._line and _LIST_BEGIN.fullmatch(line[:8].rstrip()) or (not self._line and line.lstrip(" -*").startswith("《")):
            return ""
        if self._code:
            return "" if not self._line and line.lstrip()[:1] in ("", "`") else line
        if line.count("`") % 2:  # code in a line that may not be closed yet
            line = line[: line.rfind("`")]
        if opened := _OPEN.search(line):
            return line[: opened.start()]
        # A mark at the very end may turn out to be a link: [1](...)
        marks = [match for match in _MARK.finditer(line) if match.end() == len(line)]
        return line[: marks[0].start()] if marks else line

    def _marks(self, text: str) -> str:
        if self._code or ("`" in text and text.lstrip().startswith("```")):
            return text
        parts = re.split(r"(`[^`\n]*`)", text)
        return "".join(part if at % 2 else self._replaced(part) for at, part in enumerate(parts))

    def _replaced(self, text: str) -> str:
        def mark(match: re.Match[str]) -> str:
            if text[match.end() : match.end() + 1] == "(":
                return match.group()
            numbers = [int(number) for number in re.findall(r"\d+", match.group(1) or match.group(2))]
            kept = [number for number in dict.fromkeys(numbers) if number in self.known]
            self.dropped += [str(number) for number in numbers if number not in self.known]
            lead = match.group()[0] if match.group()[0] in " \t" and kept else ""
            return lead + "".join(f"[{number}]" for number in kept)

        return _MARK.sub(mark, text)


def cited_numbers(text: str) -> list[int]:
    """The numbers a checked answer cites, in order, each once."""
    return list(dict.fromkeys(int(number) for number in CITED.findall(body_of(text))))


def body_of(content: str) -> str:
    """An answer without its closing list of reference pages and what follows it."""
    for head in REFERENCE_HEADS:
        found = re.search(rf"(?m)^\s*(?:\*\*|#+\s*)?{head}(?:\*\*)?\s*[:：]?\s*(?:\*\*)?\s*$", content)
        if found:
            return content[: found.start()].rstrip()
    return content.rstrip()


@dataclass(frozen=True, slots=True)
class Support:
    """How much of a cited sentence its passages hold. [`start`, `end`) in the answer's body."""

    start: int
    end: int
    numbers: tuple[int, ...]
    score: float
    level: Level

    def as_row(self) -> dict[str, object]:
        return {"start": self.start, "end": self.end, "numbers": list(self.numbers), "score": self.score, "level": self.level}


def supports(content: str, passages: Mapping[int, str]) -> list[Support]:
    """One for each sentence of the answer's body that cites something, in order."""
    body = body_of(content)
    found: list[Support] = []
    for sentence in _cited_sentences(body):
        numbers = tuple(dict.fromkeys(int(number) for number in CITED.findall(sentence.text)))
        score = overlap(CITED.sub(" ", sentence.text), [passages[number] for number in numbers if number in passages])
        level: Level = "strong" if score >= STRONG else "weak" if score >= WEAK else "none"
        found.append(Support(sentence.start, sentence.end, numbers, round(score, 3), level))
    return found


def _cited_sentences(body: str) -> list[Sentence]:
    """Pieces of the answer that end with marks: what stands between two groups of marks, within a line."""
    found: list[Sentence] = []
    start = 0
    for match in re.finditer(r"(?:\[\d{1,4}\]\s*)+[。．.!！?？;；]?|\n", body):
        if match.group() != "\n":
            begin = start
            while begin < match.start() and (body[begin].isspace() or body[begin] in "-*"):
                begin += 1
            found.append(Sentence(body[begin : match.end()].rstrip(), begin, match.start() + len(match.group().rstrip())))
        start = match.end()
    return found


def overlap(claim: str, passages: Sequence[str]) -> float:
    """The share of a claim's words that stand in the passages it cites; longer words count more. 0..1"""
    tokens = text_tokens(claim)
    if not tokens or not passages:
        return 0.0
    held = set().union(*(text_tokens(text) for text in passages))
    total = sum(len(token) for token in tokens)
    return sum(len(token) for token in tokens if token in held) / total
