"""The words of a text, for documents and for questions, the same for every search engine.

A text is folded character by character (NFKC, traditional to simplified Chinese), so that every character of the folded text can
be traced to its place in the original and so that folding never depends on the neighbours: a two-character word cut out of a
sentence folds as it did inside the sentence. Runs of Chinese characters, kana and hangul become overlapping pairs plus their last
character; other words keep their inner punctuation and also give their parts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from apps.retrieval.stopwords import STOP_WORDS

TOKENISER_VERSION = 1
MAX_QUERY_TOKENS = 48
MAX_JOINED_PARTS = 5  # a word of fewer parts also gives its parts joined

# 々 〆 〇, hiragana, katakana without its middle dot, bopomofo, extension A to the compatibility forms, hangul, the supplementary planes
CJK = (
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
CONNECTORS = "-_./:@#+'"
_MARKS = "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
_LETTER = rf"(?:[^\W_{CJK}]|[{_MARKS}])"
_TOKEN = re.compile(rf"([{CJK}]+)|{_LETTER}+(?:[-_./:@#+']{{1,3}}{_LETTER}+)*(?:\+\+|\#)?")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PART_ANY = re.compile(rf"[0-9]+|(?:[^\W_0-9]|[{_MARKS}])+")  # camel case is told apart in ASCII only
# A character that composes with the one before it, so the two must be normalised together: combining marks (also the half-width
# voicing marks of katakana, whose own combining class is 0) and the vowels and finals of conjoining hangul.
_JOINS = re.compile(
    r"[\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u3099\u309a\uff9e\uff9f\u1160-\u11ff\ud7b0-\ud7ff\u0900-\u0dff]"
)
_ORDINARY = re.compile(r"\d+(?:'?s|st|nd|rd|th)|\d{4}[-/]\d{2,4}")  # 90s, 19th, 1945-1949


@dataclass(frozen=True, slots=True)
class Span:
    """A token and where it stands in the original text, as [start, end) in characters."""

    token: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Code:
    """A code-like word of a question, as two token sequences.

    `whole` stands in a passage that holds exactly this word (one token, or several where Chinese is part of the code); `parts` also
    in one that holds it inside a longer word or written apart (`err`, `4021`), `joined` in one that writes it together (`err4021`).
    Both may be empty: `joined` is where it would not be clear any more what it was (`10.0.12.7` and `10.0.1.27`).
    """

    whole: tuple[str, ...]
    parts: tuple[str, ...] = ()
    joined: str = ""


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """What a question asks of the words.

    `tokens`: without duplicates and stop words, at most MAX_QUERY_TOKENS. `prefix`: a lone Chinese character, to be matched as the
    beginning of a token; set only when there is no token. `codes`: its code-like words. `phrase`: the token sequence that a passage
    quoting the question word for word contains; empty when the question is too long to be a quotation. `words`: the whole words,
    without their parts. `only_codes`: nothing but codes was asked.
    """

    tokens: tuple[str, ...] = ()
    prefix: str = ""
    codes: tuple[Code, ...] = ()
    phrase: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    only_codes: bool = False

    def __bool__(self) -> bool:
        return bool(self.tokens or self.prefix)


class _FoldTable(dict[int, str]):
    """Code point -> folded text, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        simplify = _simplifier()
        folded = unicodedata.normalize("NFKC", chr(code)) if not 0xD800 <= code <= 0xDFFF else " "
        folded = "".join(simplify(c) for c in folded)
        self[code] = folded
        return folded


_FOLDED = _FoldTable()


@lru_cache(maxsize=1)
def _simplifier():
    """A function from one character to its simplified form; the identity where OpenCC is not installed."""
    try:
        from opencc import OpenCC
    except ImportError:
        return str
    converter = OpenCC("t2s")

    def simplify(character: str) -> str:
        if character < "\u3400":
            return character
        simple = converter.convert(character)
        return simple if len(simple) == 1 else character

    return simplify


def tokeniser_id() -> str:
    """What an index remembers of the tokeniser that filled it; another value means the index must be built again."""
    return f"{TOKENISER_VERSION}/{'t2s' if _simplifier() is not str else 'plain'}/{unicodedata.unidata_version}"


def fold(text: str) -> str:
    """The text in compatibility form and simplified Chinese, case kept. A lone surrogate becomes a space."""
    if _JOINS.search(text):
        return "".join(part for part, _ in _clusters(text))
    return text.translate(_FOLDED)


def _clusters(text: str) -> Iterator[tuple[str, int]]:
    """(folded cluster, index of its first character) for text in which some characters compose with their predecessor."""
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and _JOINS.match(text, end):
            continue
        piece = text[start:end]
        whole = piece if len(piece) == 1 else unicodedata.normalize("NFKC", piece.encode("utf-8", "replace").decode("utf-8"))
        yield whole.translate(_FOLDED), start
        start = end


def _fold_with_offsets(text: str) -> tuple[str, list[int] | None]:
    """Folded text and, for each of its characters plus the end, the index in `text` it came from; None where both are the same."""
    if not _JOINS.search(text):
        folded = text.translate(_FOLDED)
        if len(folded) == len(text) and all(len(_FOLDED[code]) == 1 for code in set(map(ord, text))):
            return folded, None
    pieces: list[str] = []
    offsets: list[int] = []
    for piece, start in _clusters(text):
        pieces.append(piece)
        offsets.extend([start] * len(piece))
    offsets.append(len(text))
    return "".join(pieces), offsets


def stem(word: str) -> str:
    """The singular of an English plural, by rule: `policies` policy, `boxes` box, `errors` error; anything else unchanged."""
    if len(word) < 4 or word[-1] != "s" or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word if word.endswith(("ss", "us", "is")) else word[:-1]


def _parts(word: str) -> list[re.Match[str]]:
    return list((_PART if word.isascii() else _PART_ANY).finditer(word))


@lru_cache(maxsize=65536)
def _word_tokens(word: str) -> tuple[tuple[str, int, int], ...]:
    """(token, start, end) within a word: the whole, its parts in order, its parts joined."""
    whole = stem(word.casefold())
    if word.isascii() and word.isalpha() and (word.islower() or word.isupper() or word.istitle()):
        return ((whole, 0, len(word)),)
    parts = [(stem(m.group().casefold()), m.start(), m.end()) for m in _parts(word)]
    if len(parts) < 2 and (not parts or parts[0][0] == whole):
        return ((whole, 0, len(word)),)
    tokens = [(whole, 0, len(word)), *parts]
    if 1 < len(parts) < MAX_JOINED_PARTS:
        joined = stem("".join(m.group() for m in _parts(word)).casefold())
        if joined != whole:
            tokens.append((joined, 0, len(word)))
    return tuple(tokens)


def document_tokens(text: str) -> list[str]:
    """The tokens of a passage in reading order, as an engine stores them; none contains white space or a control character."""
    tokens: list[str] = []
    add = tokens.extend
    for match in _TOKEN.finditer(fold(text)):
        run = match.group()
        if match.lastindex:
            add([run[i : i + 2] for i in range(len(run) - 1)])
            tokens.append(run[-1])
        else:
            add([token for token, _, _ in _word_tokens(run)])
    return tokens


def text_tokens(text: str) -> set[str]:
    """The different words of a text that tell something: without stop words and single Chinese characters."""
    return {token for token in document_tokens(text) if token not in STOP_WORDS and (len(token) > 1 or token.isascii())}


def wanted_tokens(question: str) -> tuple[str, ...]:
    """What a question asks for, word by word; empty when it holds nothing that can be looked up."""
    return query_tokens(question).tokens


def document_spans(text: str) -> list[Span]:
    """The tokens of `document_tokens(text)`, same order, each with its place in the original text.

    Units: characters of `text` as passed in, before any folding.
    """
    folded, offsets = _fold_with_offsets(text)
    spans: list[Span] = []
    for match in _TOKEN.finditer(folded):
        run, base = match.group(), match.start()
        if match.lastindex:
            pieces = [(run[i : i + 2], i, i + 2) for i in range(len(run) - 1)] + [(run[-1], len(run) - 1, len(run))]
        else:
            pieces = list(_word_tokens(run))
        for token, start, end in pieces:
            start, end = base + start, base + end
            if offsets is not None:
                start, end = offsets[start], _end_offset(offsets, end)
            spans.append(Span(token, start, end))
    return spans


def _end_offset(offsets: list[int], end: int) -> int:
    """Where the original of folded[:end] ends: a character that folds to several is covered whole."""
    last = offsets[end - 1]
    while end < len(offsets) - 1 and offsets[end] == last:
        end += 1
    return offsets[end]


@lru_cache(maxsize=1024)
def query_tokens(text: str) -> QueryTokens:
    """The tokens, codes and quotation of a question; falsy when it holds nothing that can be looked up."""
    folded = fold(text)
    matches = list(_TOKEN.finditer(folded))
    found: list[str] = []
    phrase: list[str] = []
    words: list[str] = []
    codes: dict[tuple[str, ...], Code] = {}
    prefix, other = "", False
    for match in matches:
        run = match.group()
        if match.lastindex:
            pairs = [run[i : i + 2] for i in range(len(run) - 1)]
            phrase += [*pairs, run[-1]]
            found += pairs
            prefix = prefix or (run if len(run) == 1 else "")
            other = True
            continue
        tokens = [token for token, _, _ in _word_tokens(run)]
        phrase += tokens
        found += tokens
        words.append(tokens[0])
        if is_code(run):
            codes.setdefault((tokens[0],), _code(run, tokens))
        else:
            other = True
    if matches and matches[-1].lastindex and len(matches[-1].group()) > 1:
        phrase.pop()  # the passage may go on where the question ends
    for whole in _mixed_codes(folded, matches):
        codes.setdefault(whole, Code(whole))
    unique = list(dict.fromkeys(found))
    kept = [t for t in unique if t not in STOP_WORDS] or unique
    return QueryTokens(
        tokens=tuple(kept[:MAX_QUERY_TOKENS]),
        prefix="" if kept else prefix,
        codes=tuple(codes.values()),
        phrase=tuple(phrase) if len(phrase) <= MAX_QUERY_TOKENS else (),
        words=tuple(dict.fromkeys(words)),
        only_codes=bool(codes) and not other,
    )


def _code(word: str, tokens: list[str]) -> Code:
    pieces = [m.group() for m in _parts(word)]
    if len(pieces) < 2:
        return Code((tokens[0],))
    clear = len(pieces) < MAX_JOINED_PARTS and not any(a.isdigit() and b.isdigit() for a, b in zip(pieces, pieces[1:], strict=False))
    joined = stem("".join(pieces).casefold()) if clear else ""
    return Code((tokens[0],), tuple(stem(piece.casefold()) for piece in pieces), joined)


def _mixed_codes(folded: str, matches: list[re.Match[str]]) -> Iterator[tuple[str, ...]]:
    """Token sequences of codes with Chinese in them (`传感器-温度-TH01`): runs and words with nothing but connectors between them.

    Where such a chain begins or ends inside a sentence cannot be seen, so only the pair of characters next to the connector counts.
    """
    chain: list[re.Match[str]] = []
    for match in [*matches, None]:
        gap = folded[chain[-1].end() : match.start()] if chain and match else ""
        if match and (not chain or (gap and len(gap) <= 3 and not gap.strip(CONNECTORS))):
            chain.append(match)
            continue
        if len(chain) > 1 and any(m.lastindex for m in chain) and any(c.isdigit() for m in chain for c in m.group()):
            sequence: list[str] = []
            for at, part in enumerate(chain):
                run = part.group()
                if not part.lastindex:
                    sequence += [token for token, _, _ in _word_tokens(run)]
                    continue
                pairs = [run[i : i + 2] for i in range(len(run) - 1)]
                if at == len(chain) - 1:
                    sequence += pairs[:1] or [run]
                else:
                    sequence += [*(pairs[-1:] if at == 0 else pairs), run[-1]]
            yield tuple(sequence)
        chain = [match] if match else []


def is_code(word: str) -> bool:
    """Whether a word looks like an identifier that must match as a whole: ERR-4021, v1.10.2, load_bar, a@b.cn, C++, 13800138000.

    Ordinary hyphenated words, ordinals, decades, decimals, years and spans of years are not codes.
    """
    lower = word.casefold()
    if lower[-1] in "+#":
        return True
    has_digit = any(c.isdigit() for c in lower)
    has_letter = any(c.isalpha() for c in lower)
    inner = [c for c in lower if c in CONNECTORS]
    if _ORDINARY.fullmatch(lower):
        return False
    if has_digit and has_letter:
        return True
    if has_digit:
        return len(inner) > 1 or (bool(inner) and len(lower) > 6) or len(lower) > 5
    if "_" in inner or "@" in inner:
        return True
    if not inner:  # camel case: ConnectionResetError, NodeJS
        return len(word) > 4 and word.isascii() and len(_parts(word)) > 1
    return "." in inner and max(map(len, re.split(r"[-_./:@#+']+", lower))) > 1
