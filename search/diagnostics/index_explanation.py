"""Why each retriever of an index scored a document so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from corpora.progress import Progress, Silent
from indexer.encoder import Encoder, WordEncoder
from indexer.errors import IndexerError
from search.diagnostics.explain import (
    TermExplanation,
    TermShare,
    TermStatistics,
    WordExplanation,
    WordShare,
    explain_terms,
    explain_words,
)
from search.diagnostics.explain_context import AlignmentModel, ContextExplanation, explain_context
from search.diagnostics.source_model import source_model
from search.errors import QueryError, SearchError
from search.json_values import json_value
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


def explain_document(
    searcher: Searcher, query: str, doc_id: str, *, align: bool = True, progress: Progress | None = None
) -> dict[str, Explanation]:
    """Explain the score of a document, in each retriever by its best passage.

    Parameters
    ----------
    searcher
        The index and the retrievers asked about.
    query, doc_id
        What was asked, and the document.
    align
        Whether contextual retrievers line up words, for which the model that the index was built from is loaded. Where
        it cannot be, a note of the explanation says why.
    progress
        Told of each retriever.

    Raises
    ------
    QueryError
        If the index holds no such document.
    """
    if searcher.index.documents.fetch(doc_id) is None:
        message = f"the index holds no document {doc_id!r}; ids are shown by: twindex query"
        raise QueryError(message)
    progress = progress or Silent()
    found: dict[str, Explanation] = {}
    progress.start("explaining", len(searcher.retrievers), "retrievers")
    try:
        for name, retriever in searcher.retrievers.items():
            found[name] = _explain(searcher, retriever, query, doc_id, align=align)
            progress.advance()
    finally:
        progress.finish()
    return found


def _explain(searcher: Searcher, retriever: Retriever, query: str, doc_id: str, *, align: bool) -> Explanation:
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
        return explain_words(query, text, parts.encoder, parts.whitening, spread=True)
    inside, notes = _inside(parts.encoder) if align else (None, ())
    return replace(explain_context(query, text, parts.encoder, whitening=parts.whitening, inside=inside), notes=notes)


def _inside(encoder: Encoder) -> tuple[AlignmentModel | None, tuple[str, ...]]:
    """Return the model behind an encoder, or why it cannot be looked into."""
    try:
        return source_model(encoder), ()
    except (SearchError, IndexerError) as error:
        return None, (f"words are not aligned: {error}",)


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
    return {"retrievers": {name: json_value(explanation) for name, explanation in explanations.items()}}


def explanation_lines(name: str, explanation: Explanation, most: int = 8) -> Iterator[str]:
    """Yield an explanation as lines for a reader, largest shares first."""
    match explanation:
        case WordExplanation():
            yield from _word_lines(name, explanation, most)
        case TermExplanation():
            yield f"{name}: {explanation.score:.4f} = the sum over terms of idf x saturation"
            yield from (_term_line(term) for term in explanation.terms[:most])
        case ContextExplanation():
            yield from _context_lines(name, explanation, most)
        case FusionExplanation():
            yield f"{name}: {explanation.score:.4f} = the sum of 1 / (k + rank)"
            for member, rank in explanation.ranks.items():
                place = "not in its list" if rank is None else f"rank {rank}"
                yield f"  {explanation.shares[member]:+.4f}  {member}: {place}"


def _term_line(term: TermShare) -> str:
    found = term.statistics
    if not found.frequency:
        held = f"in {found.document_frequency:,} others" if found.document_frequency else "nor in any other"
        return f"  {term.share:+.4f}  {found.term}: not in this document, {held}"
    times = "once" if found.frequency == 1 else f"{found.frequency} times"
    length = f"stands here {times}; length {found.length:.0f}, average {found.average_length:.0f}"
    documents = f"{found.document_frequency:,} document{'' if found.document_frequency == 1 else 's'}"
    return f"  {term.share:+.4f}  {found.term}: idf {found.idf:.2f} (in {documents}) x {term.saturation:.2f} ({length})"


def _word_lines(name: str, explanation: WordExplanation, most: int) -> Iterator[str]:
    yield f"{name}: {explanation.score:.4f} = the sum over pairs of a query word and a document word"
    for pair in explanation.pairs[:most]:
        yield f"  {pair.share:+.4f}  {pair.query_word} ~ {pair.document_word}"
    rest = sum(pair.share for pair in explanation.pairs[most:])
    yield f"  {rest:+.4f}  {max(0, len(explanation.pairs) - most)} other pairs"
    if explanation.unknown:
        yield f"  words without a vector: {', '.join(explanation.unknown)}"


def _context_lines(name: str, explanation: ContextExplanation, most: int) -> Iterator[str]:
    passes = f"{explanation.passes} forward passes, {explanation.seconds:.2f} s"
    yield f"{name}: {explanation.score:.4f}, a cosine that is no sum over words; looked into with {passes}"
    for side, words in (("query", explanation.query_words), ("document", explanation.document_words)):
        shown = ", ".join(f"{word} {share:+.3f}" for word, share in _extremes(words, most))
        yield f"  the score loses, without a word of the {side}: {shown or 'there are no words'}"
    if explanation.left_out:
        yield f"  {explanation.left_out} further words of the document were not tried"
    if explanation.mean_cosine is not None:
        nearest = sorted(dict.fromkeys(explanation.alignment), key=lambda each: -each.cosine)[:most]
        pairs = ", ".join(f"{each.query_word} ~ {each.document_word} {each.cosine:.2f}" for each in nearest)
        yield f"  nearest word of the document in the model's own vectors: {pairs}"
        yield f"    (any word of the query and any of the document: {explanation.mean_cosine:.2f} on average)"
    yield from (f"  {note}" for note in explanation.notes)


def _extremes(words: Sequence[WordShare], most: int) -> Sequence[WordShare]:
    """Return the words without which the score loses most, and the two without which it gains most."""
    return words if len(words) <= most else [*words[: most - 2], *words[-2:]]
