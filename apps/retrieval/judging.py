"""What becomes of question pairs among the candidates of one search: each is one hit at most, and none that its negatives keep out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from apps.common.actor import Actor
from apps.knowledge.models import Chunk
from apps.retrieval.pairs import PairFacts, facts_of, nearest_question, pair_of, vetoed_by
from apps.retrieval.plugins.protocol import Vector
from apps.retrieval.services import meaning_hash, stored_vectors

Vectors = dict[str, list[tuple[Vector, Vector]]]


class Judge:
    """Knows the first passages of the pairs looked at. `asked`: the question's vector in each vector space that was asked."""

    def __init__(self, actor: Actor, text: str, asked: Mapping[str, Vector]) -> None:
        self._actor = actor
        self._text = text
        self._asked = asked
        self._heads: dict[int, Chunk] = {}
        self._vetoes: dict[int, str] = {}
        self._vectors: dict[int, Vectors] = {}
        self._had: set[int] = set()

    def look_at(self, chunks: Iterable[Chunk]) -> None:
        """Load what is needed of the pairs among these passages, in a constant number of queries."""
        pairs = [chunk for chunk in chunks if chunk.chunk_type == Chunk.Type.FAQ and chunk.document_id not in self._heads]
        self._heads |= {chunk.document_id: chunk for chunk in pairs if chunk.chunk_index == 0}
        if lacking := {chunk.document_id for chunk in pairs} - self._heads.keys():
            rows = Chunk.objects.visible_to(self._actor).select_related("document", "document__kb", "parent")
            heads = rows.filter(document_id__in=lacking, chunk_type=Chunk.Type.FAQ, chunk_index=0)
            self._heads |= {chunk.document_id: chunk for chunk in heads}
        judged = {chunk.document_id: pair_of(self._heads[chunk.document_id]) for chunk in pairs if chunk.document_id in self._heads}
        self._compare({key: pair for key, pair in judged.items() if pair.negatives and self._text})
        for key, pair in judged.items():
            self._vetoes[key] = vetoed_by(self._text, pair, self._vectors.get(key)) if self._text else ""

    def _compare(self, pairs: Mapping[int, PairFacts]) -> None:
        """Read the vectors of the questions of pairs with negatives."""
        texts = {key: (*pair.questions, *pair.negatives) for key, pair in pairs.items()}
        hashes = {text: meaning_hash(text) for each in texts.values() for text in each}
        for space, vector in self._asked.items() if hashes else ():
            found = stored_vectors(self._actor.space, space, hashes.values())
            for key, each in texts.items():
                kept = self._vectors.setdefault(key, {})
                for text in each:
                    if (other := found.get(hashes[text])) is not None and other.shape == vector.shape:
                        kept.setdefault(text, []).append((vector, other))

    def had(self, chunk: Chunk) -> bool:
        """Whether another passage of this pair was taken already; from now on this one was."""
        if chunk.chunk_type != Chunk.Type.FAQ:
            return False
        seen = chunk.document_id in self._had
        self._had.add(chunk.document_id)
        return seen

    def negative_of(self, chunk: Chunk) -> str:
        """The negative question that keeps the pair of this passage out; "" when none does."""
        return self._vetoes.get(chunk.document_id, "") if chunk.chunk_type == Chunk.Type.FAQ else ""

    def head_of(self, chunk: Chunk) -> Chunk:
        """The passage that is shown: for a pair its first."""
        return self._heads.get(chunk.document_id, chunk) if chunk.chunk_type == Chunk.Type.FAQ else chunk

    def question_of(self, chunk: Chunk) -> str:
        """Which of a pair's questions was met; "" for other passages."""
        if chunk.chunk_type != Chunk.Type.FAQ:
            return ""
        head = self.head_of(chunk)
        questions: Sequence[str] = pair_of(head).questions
        own = str(facts_of(chunk).get("question") or "")
        if own and facts_of(chunk).get("is_separate"):
            return own
        return nearest_question(self._text, questions, self._vectors.get(chunk.document_id)) if self._text else questions[0]
