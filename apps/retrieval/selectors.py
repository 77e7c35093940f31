"""What other contexts read of retrieval: the one search, why something is missing from it, and what a text has of a question."""

from apps.retrieval.explain import Snippet, Term, highlights, snippet
from apps.retrieval.probe import probe_vectors, probe_words
from apps.retrieval.search import Options, Passage, Results, Scope, search
from apps.retrieval.whynot import Cause, WhyNot, why_not

__all__ = [
    "Cause",
    "Options",
    "Passage",
    "Results",
    "Scope",
    "Snippet",
    "Term",
    "WhyNot",
    "highlights",
    "probe_vectors",
    "probe_words",
    "search",
    "snippet",
    "why_not",
]
