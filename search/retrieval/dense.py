"""Dense retrieval: encode the query, find the nearest rows, score each document as its best passage (MaxP)."""

import time
from dataclasses import dataclass, field

import numpy as np

from indexer.encoder import Encoder, Role
from indexer.opening import VectorParts
from indexer.stores.documents import DocumentStore, Selection
from indexer.vectors import Vectors
from search.ranking import QueryCost, ScoredDocument, ordered
from search.retrieval.retriever import Retrieved, cut


@dataclass
class QueryVectors:
    """The vectors of the query being answered, by encoder, so that retrievers sharing one encode it once."""

    _query: str = ""
    _held: dict[str, tuple[Vectors, float]] = field(default_factory=dict)

    def encode(self, parts: VectorParts, query: str) -> tuple[Vectors, float]:
        """Return the (1, d) vector of a query and the milliseconds its encoding took, whoever asked first."""
        if query != self._query:
            self._query, self._held = query, {}
        key = parts.encoder.fingerprint
        if key not in self._held:
            encoder = parts.encoder
            loaded = _loading_seconds(encoder)
            started = time.perf_counter()
            vectors = encoder.encode([query], role=Role.QUERY)
            seconds = time.perf_counter() - started - (_loading_seconds(encoder) - loaded)
            self._held[key] = vectors, seconds * 1000
        return self._held[key]


@dataclass(frozen=True, slots=True)
class DenseRetriever:
    """Answers from one vector store."""

    name: str
    parts: VectorParts
    documents: DocumentStore
    query_vectors: QueryVectors

    def retrieve(self, query: str, depth: int, *, selection: Selection | None = None) -> Retrieved:
        """Return the best documents by cosine; a query of which the encoder knows nothing finds nothing."""
        encoded, encode_ms = self.query_vectors.encode(self.parts, query)
        started = time.perf_counter()
        vector = self.parts.project(encoded)
        ranking = self._search(vector, depth, selection) if np.any(vector) else []
        return Retrieved(ranking, QueryCost(encode_ms, (time.perf_counter() - started) * 1000))

    def _search(self, vector: Vectors, depth: int, selection: Selection | None) -> list[ScoredDocument]:
        allowed = None if selection is None else selection.rows
        chosen = None if selection is None else set(selection.documents.tolist())
        size = self.parts.store.size if allowed is None else len(allowed)
        fetch = depth + depth // 2 + 8
        while True:
            scores, rows = self.parts.store.search(vector, fetch, allowed=allowed)
            best = self._best_passages(scores[0], rows[0], chosen)
            exhausted = fetch >= size
            # A document that was not fetched scores at most as the last row: the cut is safe above it.
            if exhausted or (len(best) > depth and best[depth - 1].score > _clipped(scores[0, -1])):
                return cut(best, depth)
            fetch *= 2

    def _best_passages(self, scores: Vectors, rows: np.ndarray, chosen: set[int] | None) -> list[ScoredDocument]:
        unknown = self.parts.unknown
        pairs = zip(rows.tolist(), scores.tolist(), strict=True)
        # Row -1 stands where FAISS found nothing more.
        found = {row: _clipped(score) for row, score in pairs if row >= 0 and row not in unknown}
        best: dict[int, ScoredDocument] = {}
        for place in self.documents.locate(found):
            if chosen is not None and place.document not in chosen:
                continue
            score = found[place.row]
            held = best.get(place.document)
            if held is None or (score, -place.passage) > (held.score, -held.passage):
                best[place.document] = ScoredDocument(place.doc_id, score, place.passage)
        return ordered([document for document in best.values() if document.score == document.score])


def _loading_seconds(encoder: Encoder) -> float:
    """Return what loading has taken: that is opening, not the cost of a query."""
    # A look at LoadingEncoder's members would cost a query as much as its tokenising.
    return float(getattr(encoder, "loading_seconds", 0.0))


def _clipped(score: float) -> float:
    """Return a cosine without the rounding that would show 1.0000001."""
    return min(1.0, max(-1.0, float(score)))
