"""What others may ask of search: finding passages, why each is there, why one is not."""

from apps.retrieval.explain import highlights, snippet
from apps.retrieval.search import Options, Passage, Results, Scope, search
from apps.retrieval.whynot import Cause, WhyNot, why_not

__all__ = ["Cause", "Options", "Passage", "Results", "Scope", "WhyNot", "highlights", "search", "snippet", "why_not"]
