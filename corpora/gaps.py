"""Where queries, judgements and documents do not fit together: counted and named, never a surprise later."""

from collections.abc import Collection as Many
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from corpora.judgements import Qrels, Query

#: Ids named of each kind of gap.
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Gap:
    """How many ids are concerned, and the first of them in order."""

    count: int
    examples: tuple[str, ...]

    def __bool__(self) -> bool:
        """Return whether there is a gap at all."""
        return self.count > 0

    def __str__(self) -> str:
        """Return `3 (a, b, c)`."""
        names = ", ".join(example[:60] for example in self.examples)
        return f"{self.count:,}" + (f" ({names}{', ...' if self.count > len(self.examples) else ''})" * bool(self))


@dataclass(frozen=True, slots=True)
class Gaps:
    """What does not fit in one split of judgements.

    Attributes
    ----------
    unknown_queries
        Judged queries that the collection does not have; no mean counts them.
    unknown_documents
        Judged documents that the collection does not have; a relevant one can never be found.
    unjudged_queries
        Queries of the collection without a judgement in this split; left out of its means.
    without_relevant
        Judged queries all of whose grades are 0 or below.
    """

    unknown_queries: Gap
    unknown_documents: Gap
    unjudged_queries: Gap
    without_relevant: Gap

    def lines(self) -> list[str]:
        """Return one line a gap for a reader; none if all fits."""
        named = {
            "judged queries that are unknown": self.unknown_queries,
            "judged documents that are unknown": self.unknown_documents,
            "queries without judgements (left out of the means)": self.unjudged_queries,
            "judged queries without a relevant document": self.without_relevant,
        }
        return [f"{what}: {gap}" for what, gap in named.items() if gap]


def judged_documents(qrels: Mapping[str, Qrels]) -> set[str]:
    """Return the ids of all documents that any split judges."""
    return {doc_id for split in qrels.values() for judged in split.values() for doc_id in judged}


def find_gaps(queries: Mapping[str, Query], qrels: Qrels, unknown_documents: AbstractSet[str]) -> Gaps:
    """Return the gaps of one split.

    Parameters
    ----------
    queries
        The collection's queries.
    qrels
        The split.
    unknown_documents
        Those of `judged_documents` that the collection does not hold.
    """
    judged = {doc_id for of_query in qrels.values() for doc_id in of_query}
    return Gaps(
        _gap(qrels.keys() - queries.keys()),
        _gap(judged & unknown_documents),
        _gap(queries.keys() - qrels.keys()),
        _gap([query_id for query_id, grades in qrels.items() if not any(g > 0 for g in grades.values())]),
    )


def _gap(ids: Many[str]) -> Gap:
    return Gap(len(ids), tuple(sorted(ids)[:EXAMPLES]))
