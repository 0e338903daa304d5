"""Costs of queries and indexes, and the rows that none dominates."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.evaluation.cost import IndexCost, milliseconds, retriever_cost
from search.evaluation.frontier import Point, dominators, frontier
from search.ranking import QueryCost

costs = st.one_of(st.none(), st.integers(0, 3))
points = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(Point, st.integers(0, 3), st.tuples(costs, costs)), min_size=1
)


def test_percentiles_of_the_worked_example():
    # 1 ... 101: the median is 51, the 95th percentile 96, the 99th 100.
    times = milliseconds(float(number) for number in range(1, 102))
    assert times == pytest.approx((51, 96, 100, 51))
    assert milliseconds([]) is None


def test_query_time_is_encoding_and_searching_of_the_same_query():
    cost = retriever_cost([QueryCost(1, 9), QueryCost(5, 1), QueryCost(2, 2)])
    assert (cost.encode.p50, cost.search.p50, cost.query.p50) == (2, 2, 6)
    assert cost.timed_queries == 3


def test_money_of_the_worked_example():
    # 2 an hour; 36 s for 1,000 texts are 10 h a million: 20. A million queries of 1.8 ms: half an hour, 1.
    cost = retriever_cost([QueryCost(1.0, 0.8)], IndexCost(36.0, texts=1_000), price_per_hour=2.0)
    assert cost.money_per_million_texts == pytest.approx(20)
    assert cost.money_per_million_queries == pytest.approx(1)


def test_unknown_costs_are_none_and_money_needs_a_price():
    cost = retriever_cost()
    assert cost.money_per_million_queries is None
    values = cost.to_json()
    assert values["bytes_per_text"] is None
    assert "encode_ms_p50" not in values
    assert "money_per_million_texts" not in values


def test_json_names_say_their_units():
    values = retriever_cost([QueryCost(1, 2)], IndexCost(3, 100, 10, 50, 1_000, 7.0), price_per_hour=1).to_json()
    assert values["encode_ms_p50"] == 1
    assert values["search_ms_p99"] == 2
    assert values["index_seconds"] == 3
    assert values["bytes_per_text"] == 100
    assert values["multiply_adds_per_text"] == 7


@pytest.mark.parametrize("price", [-1.0, math.inf, math.nan])
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(ValueError, match="price per hour"):
        retriever_cost(price_per_hour=price)


def test_frontier_of_the_worked_example():
    rows = {
        "dear": Point(0.7, (9, 9)),
        "cheap": Point(0.5, (1, 1)),
        "dominated": Point(0.5, (2, 1)),
        "worst": Point(0.1, (9, 9)),
    }
    assert frontier(rows) == ["dear", "cheap"]
    assert dominators(rows)["worst"] == ("dear", "cheap", "dominated")


def test_equal_rows_do_not_dominate_each_other():
    assert frontier({"a": Point(0.5, (1,)), "b": Point(0.5, (1,))}) == ["a", "b"]


def test_an_unknown_cost_dominates_nothing():
    assert frontier({"a": Point(0.9, (None,)), "b": Point(0.5, (1,))}) == ["a", "b"]


@given(points)
def test_some_row_is_always_on_the_frontier_and_dominated_rows_are_not(rows):
    beaten = dominators(rows)
    assert frontier(rows)
    assert {name for name in rows if not beaten[name]} == set(frontier(rows))
    for name, by in beaten.items():
        for other in by:
            assert rows[other].quality >= rows[name].quality
            assert name not in beaten[other]
