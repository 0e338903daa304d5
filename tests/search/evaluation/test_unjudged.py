"""Answers without judgements: agreement of runs, and queries that documents answer."""

import numpy as np
import pytest

from corpora.document import Document
from search.evaluation.unjudged import KNOWN_ITEM_WARNING, agreement, cut, known_items, rest_of
from search.ranking import ScoredDocument


def ranking(*doc_ids):
    return [ScoredDocument(doc_id, float(-place)) for place, doc_id in enumerate(doc_ids)]


def rng():
    return np.random.default_rng(4)


def test_agreement_is_the_mean_over_queries_that_either_answers():
    runs = {
        "one": {"q1": ranking("a", "b"), "q2": ranking("a"), "q3": []},
        "two": {"q1": ranking("b", "a"), "q3": []},
        "three": {},
    }
    pairs = {(pair.first, pair.second): pair for pair in agreement(runs, k=2)}
    first = pairs["one", "two"]
    assert (first.queries, first.overlap, first.kendall_tau, first.same_first) == (2, 0.5, -1.0, 0.0)
    # q1 alone counts: agreement 0 at depth 1, 1 at depth 2 and beyond: .9; q2 adds 0.
    assert first.rank_biased_overlap == pytest.approx(0.45)
    assert pairs["two", "three"].kendall_tau is None
    assert len(pairs) == 3
    assert first.to_json()["same_first"] == 0.0


def test_runs_without_any_hit_agree_on_nothing():
    (pair,) = agreement({"a": {"q": []}, "b": {}})
    assert (pair.queries, pair.overlap) == (0, 0.0)


def test_a_title_asks_for_the_text_and_is_taken_from_it():
    query, rest = cut(Document("1", "The text.", "A title of some words", {"year": 1}, "f:1"))
    assert query == "A title of some words"
    assert rest == Document("1", "The text.", "", {"year": 1}, "f:1")


def test_a_first_sentence_asks_for_the_rest_where_there_is_no_title():
    query, rest = cut(Document("1", "Dr. No lives in 3.5 rooms here! They are small. So is he."))
    assert query == "Dr. No lives in 3.5 rooms here!"
    assert rest.text == "They are small. So is he."
    assert cut(Document("1", "机器学习是一门学科。它研究算法。"))[0] == "机器学习是一门学科。"
    assert cut(Document("1", "Rivers run to the sea. They carry sand."))[0] == "Rivers run to the sea."


@pytest.mark.parametrize(
    "document",
    [
        Document("1", ""),
        Document("1", "One sentence only without any rest."),
        Document("1", "Notes. Then more of them."),
        Document("1", "Text", "Notes"),
        Document("1", "", "Only a title here"),
        Document("1", "rest", "word " * 200),
    ],
)
def test_what_cannot_be_cut_asks_nothing_and_stays_whole(document):
    assert cut(document) == ("", document)


def test_known_items_are_drawn_with_their_documents():
    documents = [Document(str(n), f"text {n}", f"title number {n}") for n in range(20)]
    items = known_items(documents, 5, rng())
    assert len(items.queries) == 5
    for query_id, query in items.queries.items():
        (doc_id,) = items.qrels[query_id]
        assert query.text == f"title number {doc_id}"
    assert items == known_items(documents, 5, rng())
    assert len(known_items(documents, 100, rng()).queries) == 20


def test_a_query_that_two_documents_would_ask_is_left_out():
    documents = [Document("1", "x", "Letter to the editor"), Document("2", "y", "letter to THE editor")]
    documents += [Document("3", "z", "A thing all its own"), Document("4", "")]
    items = known_items(documents, 5, rng())
    assert list(items.queries) == ["known-3"]
    assert (items.documents, items.usable, items.repeated) == (4, 3, 2)


def test_every_document_loses_what_it_would_ask():
    documents = [Document("1", "x", "Letter to the editor"), Document("2", "whole")]
    assert [(document.title, document.text) for document in rest_of(documents)] == [("", "x"), ("", "whole")]


def test_no_documents_no_items():
    assert known_items([], 5, rng()).queries == {}


def test_the_warning_says_whom_such_queries_favour():
    assert "favour exact wording" in KNOWN_ITEM_WARNING
