"""Why each retriever of an index scored a document so."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from indexer.encoder import WordEncoder
from search.diagnostics.explain import TermExplanation, TermStatistics, WordExplanation, explain_terms, explain_words
from search.diagnostics.explain_context import ContextExplanation, explain_context
from search.errors import QueryError
from search.ranking import ScoredDocument
from search.retrieval.dense import DenseRetriever
from search.retrieval.fusion import DEPTH, HybridRetriever
from search.retrieval.lexical import LexicalRetriever
from search.retrieval.retriever import Retriever
from search.retrieval.searcher import Searcher


@dataclass(frozen=True, slots=True)
class FusionExplanation:
    """A fused score taken apart: what each member adds, 1 / (k + rank); 0 where it did not find the document."""

    score: float
    ranks: Mapping[str, int | None]
    shares: Mapping[str, float]


Explanation = WordExplanation | TermExplanation | ContextExplanation | FusionExplanation


def explain_document(searcher: Searcher, query: str, doc_id: str) -> dict[str, Explanation]:
    """Explain the score of a document, in each retriever by its best passage.

    Raises
    ------
    QueryError
        If the index holds no such document.
    """
    if searcher.index.documents.fetch(doc_id) is None:
        message = f"the index holds no document {doc_id!r}; ids are shown by: twindex query"
        raise QueryError(message)
    return {name: _explain(searcher, retriever, query, doc_id) for name, retriever in searcher.retrievers.items()}


def _explain(searcher: Searcher, retriever: Retriever, query: str, doc_id: str) -> Explanation:
    if isinstance(retriever, HybridRetriever):
        return _fusion(retriever, query, doc_id)
    if isinstance(retriever, LexicalRetriever):
        return _terms(searcher, retriever, query, doc_id)
    if not isinstance(retriever, DenseRetriever):
        message = f"{retriever.name} cannot be explained"
        raise QueryError(message)
    parts = retriever.parts
    text = searcher.index.documents.passage_text(doc_id, _best_passage(searcher, retriever, query, doc_id))
    if isinstance(parts.encoder, WordEncoder):
        return explain_words(query, text, parts.encoder, parts.whitening)
    return explain_context(query, text, parts.encoder, whitening=parts.whitening)


def _best_passage(searcher: Searcher, retriever: DenseRetriever, query: str, doc_id: str) -> int:
    selection = searcher.index.documents.select_ids([doc_id])
    ranking = retriever.retrieve(query, 1, selection=selection).ranking
    return ranking[0].passage if ranking else 0


def _terms(searcher: Searcher, retriever: LexicalRetriever, query: str, doc_id: str) -> TermExplanation:
    number = int(searcher.index.documents.select_ids([doc_id]).documents[0])
    spec = searcher.index.record(retriever.name).spec
    statistics = [
        TermStatistics(
            part.term,
            part.query_frequency,
            part.frequency,
            part.document_frequency,
            part.idf,
            part.length,
            part.average_length,
        )
        for part in retriever.store.explain(query, number)
    ]
    return explain_terms(statistics, k1=float(spec.get("k1", "1.2")), b=float(spec.get("b", "0.75")))


def _fusion(retriever: HybridRetriever, query: str, doc_id: str) -> FusionExplanation:
    ranks: dict[str, int | None] = {}
    for member in retriever.members:
        ranking = member.retrieve(query, DEPTH).ranking
        ranks[member.name] = _rank(ranking, doc_id)
    shares = {name: 0.0 if rank is None else 1.0 / (retriever.k + rank) for name, rank in ranks.items()}
    return FusionExplanation(sum(shares.values()), ranks, shares)


def _rank(ranking: list[ScoredDocument], doc_id: str) -> int | None:
    return next((rank for rank, document in enumerate(ranking, start=1) if document.doc_id == doc_id), None)


def explanation_json(explanations: Mapping[str, Explanation]) -> dict[str, Any]:
    """Return the explanations as JSON values."""
    return {"retrievers": {name: asdict(explanation) for name, explanation in explanations.items()}}


def explanation_lines(name: str, explanation: Explanation, most: int = 8) -> Iterator[str]:
    """Yield an explanation as lines for a reader, largest shares first."""
    match explanation:
        case WordExplanation():
            yield from _word_lines(name, explanation, most)
        case TermExplanation():
            yield f"{name}: {explanation.score:.4f} = the sum over terms of idf x saturation"
            for term in explanation.terms[:most]:
                found = term.statistics
                times = f"occurs {found.frequency} times; length {found.length:.0f}, average {found.average_length:.0f}"
                idf = f"idf {found.idf:.2f} (in {found.document_frequency:,} documents)"
                yield f"  {term.share:+.4f}  {found.term}: {idf} x {term.saturation:.2f} ({times})"
        case ContextExplanation():
            yield from _context_lines(name, explanation, most)
        case FusionExplanation():
            yield f"{name}: {explanation.score:.4f} = the sum of 1 / (k + rank)"
            for member, rank in explanation.ranks.items():
                place = "not in its list" if rank is None else f"rank {rank}"
                yield f"  {explanation.shares[member]:+.4f}  {member}: {place}"


def _word_lines(name: str, explanation: WordExplanation, most: int) -> Iterator[str]:
    yield f"{name}: {explanation.score:.4f} = the sum over pairs of a query word and a document word"
    for pair in explanation.pairs[:most]:
        yield f"  {pair.share:+.4f}  {pair.query_word} ~ {pair.document_word}"
    rest = sum(pair.share for pair in explanation.pairs[most:])
    yield f"  {rest:+.4f}  {max(0, len(explanation.pairs) - most)} other pairs"
    mean = sum(share for _, share in (*explanation.query_mean, *explanation.document_mean))
    if explanation.query_mean or explanation.document_mean:
        yield f"  {mean + explanation.constant:+.4f}  the collection's mean, which whitening takes out"
    if explanation.unknown:
        yield f"  words without a vector: {', '.join(explanation.unknown)}"


def _context_lines(name: str, explanation: ContextExplanation, most: int) -> Iterator[str]:
    passes = f"{explanation.passes} forward passes, {explanation.seconds:.2f} s"
    yield f"{name}: {explanation.score:.4f}; what it loses without a word ({passes})"
    for side, words in (("query", explanation.query_words), ("document", explanation.document_words)):
        shown = ", ".join(f"{word} {share:+.3f}" for word, share in words[:most])
        yield f"  {side}: {shown or 'no words'}"
    for alignment in explanation.alignment[:most]:
        yield f"  {alignment.query_word} -> {alignment.document_word} ({alignment.cosine:.2f})"
