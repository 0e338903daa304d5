"""The decision: best within the budget, what it gives up, and honesty about chance."""

import json

import numpy as np
import pytest

from search.evaluation.advice import Budget, advise, queries_needed
from search.evaluation.cost import IndexCost, retriever_cost
from search.evaluation.evaluate import evaluate
from search.evaluation.evaluation import Statistics
from search.evaluation.judged_queries import judged_queries
from search.ranking import QueryCost, ScoredDocument

COSTS = {
    "dear": retriever_cost([QueryCost(10, 2)], IndexCost(100, 1536, 1000)),
    "same": retriever_cost([QueryCost(0.5, 0.5)], IndexCost(10, 200, 1000)),
    "poor": retriever_cost([QueryCost(0.1, 0.1)], IndexCost(1, 100, 1000)),
}


def row(ranks):
    return {
        f"q{number}": [ScoredDocument("r" if place == rank else f"x{place}", -place) for place in range(1, rank + 1)]
        for number, rank in enumerate(ranks)
    }


def evaluation(queries=40, costs=COSTS):
    """Dear is at rank 1 but for one query in ten, same as good give or take one query, poor at rank 5."""
    runs = {
        "poor": row([5] * queries),
        "same": row([2 if number % 10 in {3, 7} else 1 for number in range(queries)]),
        "dear": row([2 if number % 10 == 0 else 1 for number in range(queries)]),
    }
    qrels = {query: {"r": 1} for query in runs["poor"]}
    return evaluate(runs, judged_queries(qrels), measures="RR", costs=costs, statistics=Statistics(2_000, 500))


def test_without_a_budget_the_best_row_is_advised_and_its_rival_named():
    advice = advise(evaluation())
    assert (advice.choice, advice.best, advice.alternative, advice.loss) == ("dear", "dear", "same", None)
    assert not advice.decided
    assert len(advice.lines) == 5
    assert "Take dear: RR 0.950" in advice.lines[0]
    assert "not told from same by more than chance" in advice.lines[0]
    assert "12.0 ms a query" in advice.lines[1]
    assert "queries 12 times as fast" in advice.lines[3]
    assert "judged queries would tell dear from same" in advice.lines[4]


def test_within_a_budget_the_loss_against_the_best_has_an_interval():
    advice = advise(evaluation(), Budget(query_ms=5))
    assert (advice.choice, advice.best) == ("same", "dear")
    mean, interval = advice.loss
    assert mean == pytest.approx(0.05)
    assert interval.low <= mean <= interval.high
    assert advice.decided
    assert "the best of 2 within 5.00 ms a query" in advice.lines[0]
    assert "dear (12.0 ms a query), it gives up 0.050" in advice.lines[2]
    assert "may be chance" in advice.lines[2]
    assert "a budget of 12.0 ms a query would allow dear" in advice.lines[4]


def test_a_loss_that_is_more_than_chance_is_called_so():
    advice = advise(evaluation(), Budget(bytes_per_text=150))
    assert advice.choice == "poor"
    assert "the only row within 150 bytes a text" in advice.lines[0]
    assert "more than chance" in advice.lines[2]


def test_a_budget_that_nothing_keeps_is_said():
    advice = advise(evaluation(), Budget(query_ms=0.01, index_seconds=0.5))
    assert advice.choice is None
    assert advice.lines[0] == "No row keeps within 0.01 ms a query and 0.50 s of indexing."
    assert "would allow poor" in advice.lines[4]
    assert len(advice.lines) == 5


def test_too_few_queries_cannot_tell():
    advice = advise(evaluation(queries=20))
    assert advice.lines[0].startswith("Cannot tell: 20 judged queries are too few. dear leads")
    assert not advice.decided
    assert advice.alternative is None
    assert "With so few queries" in advice.lines[3]


def test_rows_of_unknown_cost_do_not_fit_a_budget():
    advice = advise(evaluation(costs={}), Budget(query_ms=5))
    assert advice.choice is None
    assert advise(evaluation(costs={})).choice == "dear"


def test_advice_is_plain_json():
    values = json.loads(json.dumps(advise(evaluation(), Budget(query_ms=5)).to_json()))
    assert values["choice"] == "same"
    assert values["loss"]["interval"][0] <= values["loss"]["mean"]


def test_a_row_alone_is_advised():
    alone = evaluate({"a": row([1] * 30)}, judged_queries({f"q{n}": {"r": 1} for n in range(30)}), measures="RR")
    advice = advise(alone)
    assert advice.decided
    assert "the only row" in advice.lines[0]


def test_queries_needed_have_the_power_that_is_promised():
    rng = np.random.default_rng(1)
    # Mean .2, deviation 1: (1.96 + .84)^2 / .04 = 197.
    sample = rng.normal(size=100_000)
    needed = queries_needed(0.2 + (sample - sample.mean()) / sample.std())
    assert needed == pytest.approx(197, abs=1)
    found = rng.normal(0.2, 1, size=(4_000, needed))
    z = found.mean(axis=1) / (found.std(axis=1, ddof=1) / np.sqrt(needed))
    assert np.mean(z > 1.96) == pytest.approx(0.8, abs=0.02)
    assert queries_needed(np.zeros(50)) is None
