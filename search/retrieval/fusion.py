"""Reciprocal rank fusion: one ranking from several, by ranks alone.

Cormack, Clarke and Buettcher (2009): score(d) = sum over the lists that hold d of 1 / (k + rank), k = 60.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexer.stores.documents import Selection
from search.ranking import QueryCost, ScoredDocument, ordered
from search.retrieval.retriever import Retrieved, Retriever, cut

K = 60.0
#: Each list is read to this depth, however many documents are shown: the first 10 are then a prefix of the first 100.
DEPTH = 100


def reading_depth(depth: int) -> int:
    """Return how far each list is read when `depth` fused documents are wanted."""
    return DEPTH if depth <= DEPTH else 2 * depth


def fuse(rankings: Sequence[Sequence[ScoredDocument]], *, k: float = K) -> list[ScoredDocument]:
    """Return the fused ranking; a document's passage is that of the list where it stands highest."""
    scores: dict[str, float] = {}
    passages: dict[str, tuple[int, int]] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking, start=1):
            scores[document.doc_id] = scores.get(document.doc_id, 0.0) + 1.0 / (k + rank)
            best = passages.get(document.doc_id)
            if best is None or rank < best[0]:
                passages[document.doc_id] = (rank, document.passage)
    # As 32-bit floats, which is how trec_eval compares them: what differs beyond that is a tie.
    rounded = ((doc_id, float(np.float32(score))) for doc_id, score in scores.items())
    return ordered([ScoredDocument(doc_id, score, passages[doc_id][1]) for doc_id, score in rounded])


@dataclass(frozen=True, slots=True)
class HybridRetriever:
    """Fuses the rankings of other retrievers."""

    name: str
    members: tuple[Retriever, ...]
    k: float = K

    def retrieve(self, query: str, depth: int, *, selection: Selection | None = None) -> Retrieved:
        """Return the fused ranking; it costs what its members cost, one after the other."""
        reach = reading_depth(depth)
        return self.combine([member.retrieve(query, reach, selection=selection) for member in self.members], depth)

    def combine(self, retrieved: Sequence[Retrieved], depth: int) -> Retrieved:
        """Fuse what the members have found already."""
        cost = QueryCost(sum(one.cost.encode_ms for one in retrieved), sum(one.cost.search_ms for one in retrieved))
        return Retrieved(cut(fuse([one.ranking for one in retrieved], k=self.k), depth), cost)
