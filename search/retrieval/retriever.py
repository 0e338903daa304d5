"""The seam of retrieval: queries in, rankings and their cost out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from indexer.stores.documents import Selection
from search.ranking import QueryCost, ScoredDocument


@dataclass(frozen=True, slots=True)
class Retrieved:
    """A ranking (best first, at least `depth` documents where so many answer) and what finding it cost."""

    ranking: list[ScoredDocument]
    cost: QueryCost


class Retriever(Protocol):
    """A named way to answer a query."""

    @property
    def name(self) -> str:
        """The name in tables."""

    def retrieve(self, query: str, depth: int, *, selection: Selection | None = None) -> Retrieved:
        """Return the best `depth` documents for a query, only from the selection where there is one."""


def cut(ranking: Sequence[ScoredDocument], depth: int) -> list[ScoredDocument]:
    """Return the first `depth` documents."""
    return list(ranking[:depth])
