"""`search_knowledge_base`: what a turn is given to answer from. Chat before it answers and a model's tool call the same function."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from django.db.models import Q

from apps.common.actor import Actor
from apps.common.registry import Registry
from apps.knowledge.models import Chunk, Document
from apps.knowledge.selectors import as_uuid
from apps.retrieval.explain import snippet as excerpt
from apps.retrieval.grounding.refs import Reference, question_of
from apps.retrieval.search import Options, Passage, Results, Scope, search
from apps.retrieval.tokens import document_tokens, fold, query_tokens

HitReason = Literal["explicit", "title", "kb_meta", "recent_synthesis", "filename", "body"]
ORDER: tuple[HitReason, ...] = ("explicit", "title", "kb_meta", "recent_synthesis", "filename", "body")
MAX_PAGES = 6
SNIPPET_CHARS = 600
DEFAULT_BUDGET = 4000
META_FILES = ("purpose.md", "index.md", "overview.md")
SYNTHESIS = "wiki/synthesis/sessions"
CANDIDATES = 12
BESIDE_NAMED = 3  # passages that come by themselves where a message names what to read
_GENERAL = re.compile(
    r"总结|概括|概述|综述|介绍一?下|整体|全部|这个(?:知识)?库|讲了?(?:些)?什么|有(?:哪些|什么)(?:内容|文章|资料|文档)"
    r"|这些(?:文章|文档|资料|内容)|这批|刚刚|刚才|最近|我(?:的|自媒体|创作)|\bsummar|\boverview\b|\bthese (?:articles|documents|files)\b"
    r"|\bwhat is in (?:here|this|the)\b|\brecent",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class KnowledgeHit:
    """One passage for a turn. `path`: folder and file name inside its base; `mtime`: when its document last changed."""

    path: str
    title: str
    snippet: str
    mtime: datetime
    hit_reason: HitReason
    score: float
    chunk: Chunk = field(repr=False)
    document: Document = field(repr=False)
    passage: Passage | None = field(default=None, repr=False)  # how it was found, when the search found it


@dataclass(slots=True)
class Found:
    """Hits best first; `missing`: references that lead nowhere, as they were written; `results`: what the search behind it did."""

    hits: list[KnowledgeHit] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    found_refs: list[str] = field(default_factory=list)
    results: Results | None = None


#: name -> (actor, reference, where) -> passages it names, [] when it names nothing; asked in order of their names until one knows
Resolver = Callable[[Actor, Reference, Scope], list[Chunk]]
resolvers: Registry[Resolver] = Registry("resolver of references")


def is_general(message: str) -> bool:
    """Whether a message asks about a base as a whole, or about what came in lately."""
    return bool(_GENERAL.search(message))


def search_knowledge_base(
    *,
    actor: Actor,
    query: str,
    scope: Scope,
    explicit_refs: Sequence[Reference] = (),
    max_pages: int = MAX_PAGES,
    snippet_max_chars: int = SNIPPET_CHARS,
    total_budget_chars: int = DEFAULT_BUDGET,
) -> Found:
    """What the bases of `scope` hold about `query`: what was named first, then by title, about the base, lately added, by name, by text.

    An excerpt has at most `snippet_max_chars`; all of them `total_budget_chars`, except that what was named is always among them, cut
    short where it must be. An empty base gives no hits.
    Raises: what `search` raises.
    """
    found = Found()
    named, picked = _explicit(actor, explicit_refs, scope, found)
    text = question_of(query)[:4000]
    rest = _inside(actor, [chunk for chunk in named if chunk.pk not in picked], text)
    named = [rest[chunk.document_id][0].chunk if rest.get(chunk.document_id) else chunk for chunk in named]
    taken = {chunk.pk for chunk in named}
    hits = [_hit(chunk, "explicit", float(len(named) - at), text, snippet_max_chars) for at, chunk in enumerate(named)]
    if named:
        max_pages = len(named) + BESIDE_NAMED
    if text.strip():
        found.results = search(actor=actor, query=text, scope=scope, options=Options(limit=CANDIDATES))
        more = [passage for passages in rest.values() for passage in passages]
        general = is_general(text)
        if general:
            for chunk, reason in _of_the_base(actor, scope, max_pages):
                if chunk.pk not in taken:
                    taken.add(chunk.pk)
                    hits.append(_hit(chunk, reason, 1.0, text, snippet_max_chars))
        for passage in [*more, *found.results.hits]:
            if passage.chunk.pk not in taken:
                taken.add(passage.chunk.pk)
                reason = reason_of(passage.document, text)
                hits.append(_hit(passage.chunk, reason, passage.score, text, snippet_max_chars, passage))
    hits.sort(key=lambda hit: ORDER.index(hit.hit_reason))  # stable: the search's own order stays within a reason
    found.hits = _within(hits[: max(max_pages, len(named))], total_budget_chars)
    return found


def reason_of(document: Document, query: str) -> HitReason:
    """Whether a found passage is there by its document's title or file name, or by its text."""
    asked = set(query_tokens(query).tokens)
    if not asked:
        return "body"
    if _names(document.title, asked):
        return "title"
    name = document.file_name
    return "filename" if name and name != document.title and _names(name, asked) else "body"


def _names(title: str, asked: set[str]) -> bool:
    """Whether the question holds most of what a title says. One pair of Chinese characters may be chance, so it is not enough."""
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}\Z", "", title)
    words = [token for token in dict.fromkeys(document_tokens(stem)) if len(token) > 1]
    if not words:
        return False
    held = [word for word in words if word in asked]
    return len(held) >= max(1, len(words) / 2) and sum(map(len, held)) >= 4


def path_of(document: Document) -> str:
    """Folder and file name (or title) inside the base."""
    return "/".join(part for part in (document.folder_path, document.file_name or document.title) if part)


def _hit(chunk: Chunk, reason: HitReason, score: float, text: str, room: int, passage: Passage | None = None) -> KnowledgeHit:
    document = chunk.document
    shown = excerpt(chunk.content, text, room).text if reason in ("body", "filename") and text else chunk.content.strip()[:room]
    return KnowledgeHit(path_of(document), document.title, shown, document.updated_at, reason, round(score, 6), chunk, document, passage)


def _within(hits: list[KnowledgeHit], budget: int) -> list[KnowledgeHit]:
    """As many as the budget holds. What was named stays, sharing the budget; the rest stops where it is used up."""
    named = sum(hit.hit_reason == "explicit" for hit in hits)
    kept: list[KnowledgeHit] = []
    left = budget
    for at, hit in enumerate(hits):
        if hit.hit_reason == "explicit":
            room = max(1, left // max(1, named - at))
            hit = _cut(hit, room)
        elif left <= 0:
            break
        else:
            hit = _cut(hit, left)
        kept.append(hit)
        left -= len(hit.snippet)
    return kept


def _cut(hit: KnowledgeHit, room: int) -> KnowledgeHit:
    return hit if len(hit.snippet) <= room else replace(hit, snippet=hit.snippet[:room])


def _explicit(actor: Actor, refs: Sequence[Reference], scope: Scope, found: Found) -> tuple[list[Chunk], set[int]]:
    """The passages that stand for what was named, and which of them were named themselves (not their document)."""
    named: dict[int, Chunk] = {}
    picked: set[int] = set()
    for ref in refs:
        chunks: list[Chunk] = []
        for _name, resolve in resolvers:
            if chunks := resolve(actor, ref, scope):
                break
        if not chunks:
            found.missing.append(ref.label if ref.kind in ("document", "passage") else ref.value)
            continue
        found.found_refs.append(ref.value)
        for chunk in chunks:
            named.setdefault(chunk.pk, chunk)
            if ref.kind == "passage":
                picked.add(chunk.pk)
    return list(named.values()), picked


def _inside(actor: Actor, named: Sequence[Chunk], text: str) -> dict[int, list[Passage]]:
    """For documents that were named: what in them fits the question best, by document."""
    documents = {chunk.document_id: chunk.document.uid for chunk in named}
    if not documents or not text.strip():
        return {}
    results = search(actor=actor, query=text, scope=Scope(document_uids=tuple(documents.values())), options=Options(limit=CANDIDATES))
    found: dict[int, list[Passage]] = {pk: [] for pk in documents}
    for passage in results.hits:
        if passage.exact or passage.text_leg is not None:
            found[passage.document.pk].append(passage)
    return found


def _readable(actor: Actor, scope: Scope) -> Any:
    """Passages of the scope that may be shown, as search would show them."""
    rows = Chunk.objects.visible_to(actor).select_related("document", "document__kb", "parent")
    rows = rows.filter(is_enabled=True, index_status=Chunk.IndexStatus.READY, document__enabled=True).exclude(chunk_type=Chunk.Type.PARENT)
    return rows if scope.kb_uids is None else rows.filter(kb__uid__in=scope.kb_uids)


def _first_of(actor: Actor, scope: Scope, documents: Any) -> list[Chunk]:
    """The first passage of each document, in the order of the documents."""
    pks = list(documents)
    first: dict[int, Chunk] = {}
    for chunk in _readable(actor, scope).filter(document_id__in=pks, chunk_index__lt=3).order_by("chunk_index"):
        if chunk.document.is_answerable:
            first.setdefault(chunk.document_id, chunk)
    return [first[pk] for pk in pks if pk in first]


def _documents(actor: Actor, scope: Scope) -> Any:
    rows = Document.objects.visible_to(actor).filter(enabled=True)
    return rows if scope.kb_uids is None else rows.filter(kb__uid__in=scope.kb_uids)


def _of_the_base(actor: Actor, scope: Scope, count: int) -> list[tuple[Chunk, HitReason]]:
    """What a base says about itself (purpose, index, overview), then what came in last: sessions of the wiki first, else any document."""
    rows = _documents(actor, scope)
    meta = (
        rows.filter(file_name__in=META_FILES, folder_path__in=("", "wiki"))
        .order_by("folder_path", "file_name")
        .values_list("pk", flat=True)
    )
    sessions = Q(folder_path=SYNTHESIS) | Q(folder_path__startswith=SYNTHESIS + "/")
    lately = list(rows.filter(sessions).order_by("-updated_at", "-pk").values_list("pk", flat=True)[:count])
    if len(lately) < count:
        rest = rows.exclude(sessions).exclude(file_name__in=META_FILES)
        lately += list(rest.order_by("-updated_at", "-pk").values_list("pk", flat=True)[: count - len(lately)])
    found: list[tuple[Chunk, HitReason]] = [(chunk, "kb_meta") for chunk in _first_of(actor, scope, meta)]
    return found + [(chunk, "recent_synthesis") for chunk in _first_of(actor, scope, lately)]


def _by_document(actor: Actor, ref: Reference, scope: Scope) -> list[Chunk]:
    uid = as_uuid(ref.value)
    if ref.kind != "document" or uid is None:
        return []
    return _first_of(actor, scope, _documents(actor, scope).filter(uid=uid).values_list("pk", flat=True))


def _by_passage(actor: Actor, ref: Reference, scope: Scope) -> list[Chunk]:
    uid: uuid.UUID | None = as_uuid(ref.value)
    if ref.kind != "passage" or uid is None:
        return []
    return [chunk for chunk in _readable(actor, scope).filter(uid=uid) if chunk.document.is_answerable]


def _by_path(actor: Actor, ref: Reference, scope: Scope) -> list[Chunk]:
    """A document filed under the very path of a wiki page."""
    if ref.kind != "page":
        return []
    folder, _slash, name = ref.value.rpartition("/")
    rows = _documents(actor, scope).filter(folder_path=folder).filter(Q(file_name=name) | Q(title=name))
    return _first_of(actor, scope, rows.order_by("pk").values_list("pk", flat=True)[:1])


def _by_title(actor: Actor, ref: Reference, scope: Scope) -> list[Chunk]:
    """The document of that title or file name, with or without its extension; the newest of several."""
    if ref.kind != "title":
        return []
    wanted = fold(ref.value).casefold()
    stem = ref.value.rpartition("/")[2]
    rows = _documents(actor, scope).filter(Q(title__istartswith=stem) | Q(file_name__istartswith=stem)).order_by("-updated_at", "-pk")
    for pk, title, name in rows.values_list("pk", "title", "file_name")[:50]:
        forms = {form for text in (title, name) for form in (text, re.sub(r"\.[A-Za-z0-9]{1,5}\Z", "", text))}
        if wanted in {fold(form).casefold() for form in forms} or fold(stem).casefold() in {fold(form).casefold() for form in forms}:
            return _first_of(actor, scope, [pk])
    return []


for _name, _resolver in (("document", _by_document), ("passage", _by_passage), ("path", _by_path), ("title", _by_title)):
    resolvers.add(_name, _resolver)
