"""The bytes beside SQLite's word index."""

from __future__ import annotations

import pytest

from apps.retrieval.plugins.sqlite_words import packed, with_passage

PASSAGES = (["pump", "red", "pump"], [], ["阀门", "red"], ["a", "b", "a", "b", "c"])


@pytest.mark.parametrize("at", range(len(PASSAGES)))
@pytest.mark.parametrize("tokens", [[], ["pump"], ["new", "new", "words", "words", "words", "red"]])
def test_a_replaced_passage_gives_what_packing_all_anew_gives(at: int, tokens: list[str]) -> None:
    others = [list(passage) for passage in PASSAGES]
    others[at] = tokens
    assert with_passage(packed(PASSAGES), at, tokens) == packed(others)
