"""Answers: what a retriever found for one query, and what finding it cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class ScoredDocument(NamedTuple):
    """A document in a ranking; `passage` is the number of its best passage (0 where unknown)."""

    doc_id: str
    score: float
    passage: int = 0


#: Documents by descending score, equal scores by descending document id: trec_eval's order.
Ranking = Sequence[ScoredDocument]

#: query id -> ranking
Run = dict[str, Ranking]


class QueryCost(NamedTuple):
    """Milliseconds that one query took: turning it into a vector (or terms), and searching with it."""

    encode_ms: float
    search_ms: float


def ordered(documents: Sequence[ScoredDocument]) -> list[ScoredDocument]:
    """Return the documents by score descending, then by id descending as strings."""
    by_id = sorted(documents, key=lambda document: document.doc_id, reverse=True)
    return sorted(by_id, key=lambda document: document.score, reverse=True)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document as it is shown: rank counts from 1; `passage` is the text of its best passage, numbered from 0."""

    doc_id: str
    score: float
    rank: int
    title: str
    passage: str
    source: str = ""
    passage_number: int = 0
