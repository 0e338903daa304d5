"""One question, answered side by side, and how good the answers are where the question has been judged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from indexer.cosine_background import CosineBackground
from indexer.encoder import WordEncoder
from indexer.stores.documents import Selection
from search.errors import QueryError
from search.ranking import Hit
from search.retrieval.dense import DenseRetriever
from search.retrieval.searcher import Comparison, Searcher

if TYPE_CHECKING:
    from search.diagnostics.decisive import Decisive

#: The measures shown beside a single query.
MEASURES = ("nDCG@10", "RR")
_JUDGED_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Quality:
    """Measures of one retriever's answer to a judged query."""

    measures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison, what its scores and hits owe to what, and for a judged query how good it is.

    Attributes
    ----------
    comparison
        The answers.
    query_id, qualities, relevant
        For a judged query: its id, the quality of each answer, and which documents are relevant.
    notes
        What a user should know.
    decisive
        Retriever -> document id -> the words that decided, largest share first; none for contextual retrievers.
    backgrounds
        Vector retriever -> the cosines of random pairs of its texts; none for an index built before they were kept.
    """

    comparison: Comparison
    query_id: str = ""
    qualities: Mapping[str, Quality] | None = None
    relevant: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    decisive: "Decisive" = field(default_factory=dict)
    backgrounds: Mapping[str, CosineBackground] = field(default_factory=dict)

    def percentile(self, name: str, score: float) -> float | None:
        """Return which percentage of random pairs of texts scores lower; None where that is not known."""
        background = self.backgrounds.get(name)
        return None if background is None else background.percentile(score)

    def to_json(self) -> dict[str, Any]:
        """Return the documented shape of `query --json`."""
        retrievers = {}
        for name, answer in self.comparison.answers.items():
            hits = [self._hit_json(name, hit) for hit in answer.hits]
            cost = {**answer.cost._asdict(), "bytes_per_text": answer.bytes_per_text}
            retrievers[name] = {"hits": hits, "cost": cost}
            if answer.coverage is not None:
                known, unknown = answer.coverage
                retrievers[name]["coverage"] = {"known": list(known), "unknown": list(unknown)}
            if self.qualities:
                retrievers[name]["measures"] = dict(self.qualities[name].measures)
        found: dict[str, Any] = {"query": self.comparison.query, "retrievers": retrievers}
        return {**found, "query_id": self.query_id} if self.query_id else found

    def _hit_json(self, name: str, hit: Hit) -> dict[str, Any]:
        found: dict[str, Any] = {
            "doc_id": hit.doc_id,
            "score": hit.score,
            "rank": hit.rank,
            "title": hit.title,
            "passage": hit.passage,
            "source": hit.source,
        }
        if self.query_id:
            found["relevant"] = hit.doc_id in self.relevant
        percentile = self.percentile(name, hit.score)
        if percentile is not None:
            found["percentile"] = round(percentile, 4)
        if name in self.decisive:
            found["decisive"] = list(self.decisive[name].get(hit.doc_id, ()))
        return found


def ask(searcher: Searcher, text: str, *, query_id: str = "", k: int = 10, selection: Selection | None = None) -> Asked:
    """Answer a question, or the judged query of an id; a text equal to a judged query counts as that query.

    Raises
    ------
    QueryError
        If no query of the index has that id.
    """
    judgements = searcher.index.judgements
    query = judgements.find(text)
    if query_id:
        query = judgements.queries.get(query_id)
        if query is None:
            some = ", ".join(list(judgements.queries)[:5]) or "it holds none"
            message = f"the index holds no query {query_id!r}; for instance: {some}"
            raise QueryError(message)
    grades = judgements.grades(query.query_id) if query else {}
    exclude = frozenset({query.query_id}) if query and searcher.index.manifest.exclude_same_id else frozenset()
    asked_text = query.text if query else text
    # Reciprocal rank looks beyond the hits that are shown.
    depth = max(k, _JUDGED_DEPTH) if grades else k
    deep = searcher.search(asked_text, depth, selection=selection, exclude=exclude)
    comparison, decisive = _marked(searcher, deep.first(k))
    itself = [f"document {doc_id} is the query itself and left out" for doc_id in exclude]
    asked = Asked(
        comparison,
        query.query_id if query else "",
        notes=(*_notes(comparison), *itself),
        decisive=decisive,
        backgrounds=dict(_backgrounds(searcher)),
    )
    if query is None or not grades:
        return asked
    from search.evaluation.measures import evaluate_run

    qualities = {}
    for name, answer in deep.answers.items():
        scores = evaluate_run({query.query_id: answer.ranking}, {query.query_id: grades}, MEASURES)
        qualities[name] = Quality({measure: by_query[query.query_id] for measure, by_query in scores.items()})
    relevant = frozenset(doc_id for doc_id, grade in grades.items() if grade > 0)
    return replace(asked, qualities=qualities, relevant=relevant)


def _marked(searcher: Searcher, comparison: Comparison) -> "tuple[Comparison, Decisive]":
    """Return the comparison with the passages that decided, and the words that did, where scores sum over words."""
    retrievers = [searcher.retrievers[name] for name in comparison.answers]
    if all(isinstance(each, DenseRetriever) and not isinstance(each.parts.encoder, WordEncoder) for each in retrievers):
        return comparison, {}
    from search.diagnostics.decisive import mark_decisive

    marked = mark_decisive(searcher, comparison)
    return marked.comparison, marked.decisive


def _backgrounds(searcher: Searcher) -> Iterator[tuple[str, CosineBackground]]:
    for name in searcher.names:
        background = searcher.index.cosine_background(name)
        if background is not None:
            yield name, background


def _notes(comparison: Comparison) -> tuple[str, ...]:
    """Return what a user should know about the words of a query that tables do not know."""
    for name, answer in comparison.answers.items():
        coverage = answer.coverage
        if coverage is not None and coverage.unknown:
            total = len(coverage.known) + len(coverage.unknown)
            words = ", ".join(dict.fromkeys(coverage.unknown))
            return (f"{name}: {len(coverage.known)} of {total} words known; unknown: {words}",)
        if coverage is not None and not coverage.known:
            return (f"{name}: the query has no word",)
    return ()
