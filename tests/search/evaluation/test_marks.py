"""What is peculiar about a query, and where rows lie apart."""

import pytest

from search.evaluation.marks import disagreement, has_identifier, means_by_mark, query_marks, words
from search.evaluation.precision_recall import precision_recall
from search.ranking import ScoredDocument


@pytest.mark.parametrize(
    "text", ["what is p53", "the f-16 wing", "use of HTTP caches", "learn C++", "ISO-8859 text", "u2"]
)
def test_names_that_are_right_to_the_letter_are_identifiers(text):
    assert has_identifier(text)


@pytest.mark.parametrize(
    "text", ["", "plain words", "WHOLE QUERY IN CAPITALS", "don't know", "well-known fact", "in 1984", "I am"]
)
def test_plain_words_are_none(text):
    assert not has_identifier(text)


def test_marks_say_what_is_peculiar():
    marks = query_marks("cars p53", ["automobile sales"], unknown=["p53"], beyond_window=True)
    assert marks == ["unknown words", "no shared word", "exact identifier", "text longer than window"]


def test_word_forms_and_common_words_do_not_hide_what_is_shared():
    assert query_marks("retrieving of the documents", ["document retrieval"]) == []
    assert query_marks("what is it to the sea", ["what is it to the land"]) == ["no shared word"]
    assert query_marks("what is it", ["anything"]) == []
    assert query_marks("anything at all", []) == []


def test_words_keep_what_joins_them():
    assert words("Don't F-16 u.s.-based naïve!") == ["don't", "f-16", "u.s", "based", "naïve"]


def test_a_row_that_is_weak_everywhere_disagrees_nowhere():
    scores = {
        "strong": {"AP": {"q1": 1.0, "q2": 1.0, "q3": 1.0}},
        "weak": {"AP": {"q1": 0.1, "q2": 0.1, "q3": 0.1}},
    }
    assert disagreement(scores, "AP") == [(query, pytest.approx(0)) for query in ("q1", "q2", "q3")]
    scores["weak"]["AP"]["q2"] = 0.7
    # Means 1 and .3: less them, 0 against -.2, .4, -.2.
    assert disagreement(scores, "AP") == [
        ("q2", pytest.approx(0.4)),
        ("q1", pytest.approx(0.2)),
        ("q3", pytest.approx(0.2)),
    ]


def test_means_are_over_the_queries_that_bear_a_mark():
    scores = {"a": {"AP": {"q1": 1.0, "q2": 0.5, "q3": 0.0}}}
    found = means_by_mark(scores, "AP", {"q1": ["x"], "q2": ["x", "y"]})
    assert found == {"x": (2, {"a": 0.75}), "y": (1, {"a": 0.5}), "": (1, {"a": 0.0})}


def test_precision_at_recall_of_the_worked_example():
    # Relevant at ranks 1 and 4 of 2: precision 1 up to recall .5, then 2/4; the query without an answer halves it.
    run = {"q": [ScoredDocument(doc_id, -rank) for rank, doc_id in enumerate(["r1", "x", "y", "r2"])]}
    curve = precision_recall(run, {"q": {"r1": 1, "r2": 1}, "missing": {"r": 1}})
    assert [recall for recall, _ in curve] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert [precision for _, precision in curve] == pytest.approx([0.5] * 6 + [0.25] * 5)
