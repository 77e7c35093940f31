"""Pages that search: the retrieval test of a base and the search over a space."""
