"""What other contexts read of retrieval: the one search (`search_asked` when somebody asks it, so that it is logged), why something is
missing from it, and what a text has of a question."""

from apps.retrieval.asking import search_asked, turn_logged
from apps.retrieval.explain import Snippet, Term, highlights, snippet
from apps.retrieval.figures import SearchFigures, index_stats, search_figures, searches_by_day, searches_by_time, turns_by_day
from apps.retrieval.grounding.decision import Decision, decide, should_use_knowledge_base
from apps.retrieval.grounding.finding import Found, KnowledgeHit, is_general, search_knowledge_base
from apps.retrieval.grounding.prompt import budget_chars, build_knowledge_context_prompt
from apps.retrieval.grounding.refs import (
    Reference,
    parse_explicit_page_refs,
    parse_references,
    pieces_of,
    question_of,
    without_references,
)
from apps.retrieval.probe import probe_vectors, probe_words
from apps.retrieval.search import Options, Passage, Results, Scope, search
from apps.retrieval.services import Serving, serving_of
from apps.retrieval.tokens import text_tokens, wanted_tokens
from apps.retrieval.whynot import Cause, WhyNot, why_not

__all__ = [
    "Cause",
    "Decision",
    "Found",
    "KnowledgeHit",
    "Reference",
    "budget_chars",
    "build_knowledge_context_prompt",
    "decide",
    "parse_explicit_page_refs",
    "parse_references",
    "pieces_of",
    "question_of",
    "search_knowledge_base",
    "should_use_knowledge_base",
    "without_references",
    "Options",
    "Passage",
    "Results",
    "Scope",
    "SearchFigures",
    "Serving",
    "Snippet",
    "Term",
    "WhyNot",
    "highlights",
    "index_stats",
    "is_general",
    "probe_vectors",
    "probe_words",
    "search",
    "search_asked",
    "search_figures",
    "searches_by_day",
    "searches_by_time",
    "serving_of",
    "snippet",
    "text_tokens",
    "turn_logged",
    "turns_by_day",
    "wanted_tokens",
    "why_not",
]
