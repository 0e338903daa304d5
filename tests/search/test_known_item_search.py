"""Answers without judgements."""

from collections.abc import Callable
from pathlib import Path

import pytest

from corpora.document import Document
from corpora.progress import Silent
from search.errors import NoJudgementsError
from search.known_item_search import agreement_rows, evaluate_unjudged
from search.retrieval.searcher import Searcher


def test_documents_are_asked_for_by_their_titles_over_the_rest(build: Callable[..., Path]) -> None:
    documents = [
        Document("a", "the boat went down the river", "boat on the river"),
        Document("b", "a loan is money from a bank", "money for a loan"),
        Document("c", "water", ""),
    ]
    searcher = Searcher.open(build(documents))
    found = evaluate_unjudged(searcher, progress=Silent(), measures="RR")
    assert found.evaluation.queries.count == 2
    assert found.evaluation.rows["bm25"].measures["RR"] == 1.0
    assert "exact wording" in found.notes[0]
    assert [row["pair"] for row in agreement_rows(found.agreements)] == [
        "bm25 / static",
        "bm25 / hybrid",
        "static / hybrid",
    ]
    searcher.close()


def test_documents_that_cannot_be_cut_are_said_aloud(build: Callable[..., Path]) -> None:
    searcher = Searcher.open(build(["river", "bank"]))
    with pytest.raises(NoJudgementsError, match="title or first sentence"):
        evaluate_unjudged(searcher, progress=Silent())
    searcher.close()
