"""No judgements, still an answer: how far retrievers agree, and queries that the documents themselves answer."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from corpora.document import Document
from corpora.judgements import Qrels, Query
from search.evaluation.overlap import kendall_tau, overlap, rank_biased_overlap
from search.ranking import Run

#: What must be said beside every figure from known items.
KNOWN_ITEM_WARNING = (
    "known-item queries are the documents' own titles and first sentences: they favour exact wording, and so the "
    "lexical retriever and strong whitening; they compare settings of one retriever better than retrievers"
)
_SENTENCE_END = re.compile(r"[.!?]['\")\]]*\s+(?=[\"'(\[]?[A-Z0-9])|[。！？]|\n\s*\n")
#: Letters of scripts that put no blanks between words.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_FEWEST_WORDS = 3
_FEWEST_UNSPACED = 6
_LONGEST_QUERY = 300


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two retrievers answer alike, as means over queries for which either found something.

    `overlap` is the share of common documents among the first k, `rank_biased_overlap` weighs the top most,
    `kendall_tau` looks at the order of common documents (None where there never are two), `same_first` is the
    share of queries with the same first document.
    """

    first: str
    second: str
    overlap: float
    rank_biased_overlap: float
    kendall_tau: float | None
    same_first: float
    queries: int

    def to_json(self) -> dict[str, Any]:
        """Return the figures under their names."""
        return {
            "first": self.first,
            "second": self.second,
            "overlap": self.overlap,
            "rank_biased_overlap": self.rank_biased_overlap,
            "kendall_tau": self.kendall_tau,
            "same_first": self.same_first,
            "queries": self.queries,
        }


def agreement(runs: Mapping[str, Run], *, k: int = 10, p: float = 0.9) -> list[Agreement]:
    """Return how far each pair of runs agrees; where neither found anything a query tells nothing.

    Parameters
    ----------
    runs
        Name -> run.
    k
        Depth of overlap and of Kendall's tau.
    p
        Persistence of rank-biased overlap.
    """
    ids = {name: {q: [d.doc_id for d in ranking] for q, ranking in run.items()} for name, run in runs.items()}
    return [_agreement(one, other, ids[one], ids[other], k, p) for one, other in combinations(runs, 2)]


def _agreement(
    one: str, other: str, first: Mapping[str, list[str]], second: Mapping[str, list[str]], k: int, p: float
) -> Agreement:
    empty: list[str] = []
    pairs = [(first.get(q, empty), second.get(q, empty)) for q in dict.fromkeys((*first, *second))]
    pairs = [(a, b) for a, b in pairs if a or b]
    if not pairs:
        return Agreement(one, other, 0.0, 0.0, None, 0.0, 0)
    taus = [tau for a, b in pairs if (tau := kendall_tau(a[:k], b[:k])) is not None]
    return Agreement(
        one,
        other,
        float(np.mean([overlap(a, b, k) for a, b in pairs])),
        float(np.mean([rank_biased_overlap(a, b, p) for a, b in pairs])),
        float(np.mean(taus)) if taus else None,
        float(np.mean([a[:1] == b[:1] for a, b in pairs])),
        len(pairs),
    )


@dataclass(frozen=True, slots=True)
class KnownItems:
    """Queries cut from documents, each with the document it came from as its only relevant one.

    They are to be asked of an index over the rest of every document (`rest_of`). `usable` counts the documents
    that could be cut, `documents` all of them, `repeated` those left out since another has the same query.
    """

    queries: Mapping[str, Query]
    qrels: Qrels
    documents: int
    usable: int
    repeated: int


def known_items(documents: Iterable[Document], count: int, rng: np.random.Generator) -> KnownItems:
    """Cut queries from a random sample of documents, in one pass.

    A document's query is its title, or its first sentence where there is no title; one with fewer than three
    words, or without any text left, asks nothing. What several documents would ask is left out.

    Parameters
    ----------
    documents
        The collection.
    count
        How many queries are wanted, at most.
    rng
        Source of the sample.
    """
    asked: dict[str, str] = {}
    times: Counter[str] = Counter()
    total = 0
    for document in documents:
        total += 1
        query, _ = cut(document)
        if query:
            asked[document.doc_id] = query
            times[query.casefold()] += 1
    single = [doc_id for doc_id, query in asked.items() if times[query.casefold()] == 1]
    chosen = sorted(rng.permutation(len(single))[:count].tolist())
    queries = {f"known-{single[place]}": single[place] for place in chosen}
    return KnownItems(
        {query_id: Query(query_id, asked[doc_id]) for query_id, doc_id in queries.items()},
        {query_id: {doc_id: 1} for query_id, doc_id in queries.items()},
        total,
        len(asked),
        len(asked) - len(single),
    )


def rest_of(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield every document without what `known_items` would ask: asked or not, so that none has an advantage."""
    for document in documents:
        yield cut(document)[1]


def cut(document: Document) -> tuple[str, Document]:
    """Return a document's query and its rest; an empty query and the document itself where it cannot be cut."""
    title, text = document.title.strip(), document.text.strip()
    if title and text:
        query, rest = title, text
    else:
        whole = title or text
        # An end after one word is that of an abbreviation, or of a heading.
        ends = (found.end() for found in _SENTENCE_END.finditer(whole))
        end = next((end for end in ends if _is_question(whole[:end])), 0)
        query, rest = whole[:end], whole[end:].strip()
    query = " ".join(query.split())
    if not _is_question(query) or not rest or len(query) > _LONGEST_QUERY:
        return "", document
    return query, Document(document.doc_id, rest, "", document.metadata, document.source)


def _is_question(text: str) -> bool:
    return len(text.split()) >= _FEWEST_WORDS or len(_UNSPACED.findall(text)) >= _FEWEST_UNSPACED
