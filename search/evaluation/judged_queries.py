"""Which queries count: judged ones that the collection asks; what is left out is counted and named."""

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from corpora.judgements import Qrels

_NAMED = 5


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Judgements of known queries, and what did not fit.

    Attributes
    ----------
    qrels
        Query id -> document id -> grade, for judged queries that the collection asks.
    texts
        Query id -> text, for those queries where it is known.
    without_judgements
        Queries of the collection that nobody judged: left out of every mean.
    without_relevant
        Judged queries with no document of grade 1 or above: they score 0 and count.
    unknown_queries
        Query ids in the judgements that the collection does not ask: left out.
    unknown_documents
        Document ids in the judgements that the collection lacks: they count as not found.
    """

    qrels: Qrels
    texts: Mapping[str, str] = field(default_factory=dict)
    without_judgements: tuple[str, ...] = ()
    without_relevant: tuple[str, ...] = ()
    unknown_queries: tuple[str, ...] = ()
    unknown_documents: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of queries in every mean."""
        return len(self.qrels)

    def notes(self) -> Iterator[str]:
        """Say in a line each what was left out or looks amiss, with a few names."""
        if self.without_judgements:
            yield f"{_queries(self.without_judgements)} without judgements left out of the means"
        if self.without_relevant:
            yield f"{_queries(self.without_relevant)} judged without any relevant document: counted, with 0"
        if self.unknown_queries:
            yield f"judgements left out: {_queries(self.unknown_queries)} that the collection does not ask"
        if self.unknown_documents:
            named = _named(self.unknown_documents, "document")
            yield f"judgements of {named} that the collection lacks count against every row"

    def to_json(self) -> dict[str, int | list[str]]:
        """Return counts, and the ids of what did not fit."""
        return {
            "queries": self.count,
            "without_judgements": len(self.without_judgements),
            "without_relevant": len(self.without_relevant),
            "unknown_queries": list(self.unknown_queries),
            "unknown_documents": list(self.unknown_documents),
        }


def judged_queries(
    qrels: Qrels, texts: Mapping[str, str] | None = None, documents: Container[str] | None = None
) -> JudgedQueries:
    """Return the judgements that count, and what was left out.

    Parameters
    ----------
    qrels
        Judgements as they were read.
    texts
        Query id -> text of every query of the collection. None: all judged queries are taken as known.
    documents
        The ids of the collection. None: not checked.
    """
    judged = {query: grades for query, grades in qrels.items() if grades}
    known = {query: grades for query, grades in judged.items() if texts is None or query in texts}
    named = dict.fromkeys(doc_id for grades in known.values() for doc_id in grades)
    return JudgedQueries(
        qrels=known,
        texts={query: texts[query] for query in known} if texts is not None else {},
        without_judgements=tuple(query for query in texts if query not in judged) if texts is not None else (),
        without_relevant=tuple(query for query, grades in known.items() if max(grades.values()) < 1),
        unknown_queries=tuple(query for query in judged if query not in known),
        unknown_documents=tuple(doc_id for doc_id in named if doc_id not in documents) if documents is not None else (),
    )


def _queries(ids: tuple[str, ...]) -> str:
    return _named(ids, "query", "queries")


def _named(ids: tuple[str, ...], one: str, many: str = "") -> str:
    shown = ", ".join(ids[:_NAMED]) + (", ..." if len(ids) > _NAMED else "")
    return f"{len(ids):,} {one if len(ids) == 1 else many or one + 's'} ({shown})"
