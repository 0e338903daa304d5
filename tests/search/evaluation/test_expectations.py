"""Expected figures: how they are written, and when they hold."""

import pytest

from search.errors import ExpectationError, MeasureError
from search.evaluation.evaluate import evaluate
from search.evaluation.evaluation import Statistics
from search.evaluation.expectations import Expectation, check_expectations, parse_expectation
from search.evaluation.judged_queries import judged_queries
from search.ranking import ScoredDocument


@pytest.fixture(scope="module")
def evaluation():
    """A row whose mean average precision is .75, and one that finds nothing."""
    found = {
        "q1": [ScoredDocument("r", 1.0)],
        "q2": [ScoredDocument("x", 2.0), ScoredDocument("r", 1.0)],
    }
    queries = judged_queries({"q1": {"r": 1}, "q2": {"r": 1}})
    return evaluate({"a:b": found, "none": {}}, queries, measures="AP,P(rel=2)@5", statistics=Statistics(10, 10))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("contextual:nDCG@10=0.645+-0.005", Expectation("contextual", "nDCG@10", "=", 0.645, 0.005)),
        ("bm25:ndcg_cut_10 >= .67", Expectation("bm25", "nDCG@10", ">=", 0.67, 0.0)),
        ("x=bert:layer=3:map=.5±.01", Expectation("x=bert:layer=3", "AP", "=", 0.5, 0.01)),
        ("a:P(rel=2)@5<=1", Expectation("a", "P(rel=2)@5", "<=", 1.0, 0.0)),
        ("a:AP=0.6451", Expectation("a", "AP", "=", 0.6451, 0.00005)),
        ("a:AP=1e-1", Expectation("a", "AP", "=", 0.1, 0.0)),
    ],
)
def test_expectations_are_read(text, expected):
    found = parse_expectation(text)
    assert found.tolerance == pytest.approx(expected.tolerance)
    assert (found.row, found.measure, found.relation, found.value) == (
        expected.row,
        expected.measure,
        expected.relation,
        expected.value,
    )


@pytest.mark.parametrize("text", ["", "nDCG@10=0.5", "a:AP", "a:AP=high", "a:AP=0.5+-x", "a:AP=nan", "a:AP=.5+--1"])
def test_what_is_no_expectation_is_refused_with_an_example(text):
    with pytest.raises(ExpectationError, match="written like"):
        parse_expectation(text)


def test_an_unknown_measure_is_refused():
    with pytest.raises(MeasureError, match="near to it"):
        parse_expectation("a:ndgc@10=0.5")


def test_figures_as_expected_give_no_lines(evaluation):
    assert check_expectations(evaluation, ["a:b:map=0.75", "a:b:AP=.74+-.01", "a:b:AP>=0.75", "none:AP<=0"]) == []


def test_a_figure_that_is_off_says_by_how_much(evaluation):
    failures = check_expectations(evaluation, ["a:b:AP=0.70+-0.01", "none:AP>=0.1", "a:b:AP=.75"])
    assert failures == [
        "a:b: AP is 0.7500, expected 0.7 +- 0.01 (0.0500 too high)",
        "none: AP is 0.0000, expected at least 0.1 (0.1000 too low)",
    ]


def test_rows_and_measures_that_were_not_evaluated_are_named(evaluation):
    with pytest.raises(ExpectationError, match="'c'; there are a:b, none"):
        check_expectations(evaluation, ["c:AP=1"])
    with pytest.raises(ExpectationError, match="RR, which was not measured: AP"):
        check_expectations(evaluation, ["none:RR=1"])
