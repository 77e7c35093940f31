"""What other contexts read of retrieval: the one search (`search_asked` when somebody asks it, so that it is logged), why something is
missing from it, and what a text has of a question."""

from apps.retrieval.asking import search_asked
from apps.retrieval.explain import Snippet, Term, highlights, snippet
from apps.retrieval.figures import SearchFigures, index_stats, search_figures, searches_by_day, searches_by_time
from apps.retrieval.probe import probe_vectors, probe_words
from apps.retrieval.search import Options, Passage, Results, Scope, search
from apps.retrieval.services import Serving, serving_of
from apps.retrieval.whynot import Cause, WhyNot, why_not

__all__ = [
    "Cause",
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
    "probe_vectors",
    "probe_words",
    "search",
    "search_asked",
    "search_figures",
    "searches_by_day",
    "searches_by_time",
    "serving_of",
    "snippet",
    "why_not",
]
