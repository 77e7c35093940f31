"""What other contexts read of retrieval: the one search, why something is missing from it, and what a text has of a question."""

from apps.retrieval.explain import Snippet, Term, highlights, snippet
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
    "Serving",
    "Snippet",
    "Term",
    "WhyNot",
    "highlights",
    "probe_vectors",
    "probe_words",
    "search",
    "serving_of",
    "snippet",
    "why_not",
]
