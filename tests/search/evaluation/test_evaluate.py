"""From runs and judgements to an evaluation: what counts, what is left out, what is said of chance."""

import json
import time

import numpy as np
import pytest

from search.errors import EvaluationError, MeasureError, NoJudgementsError
from search.evaluation.cost import IndexCost, retriever_cost
from search.evaluation.evaluate import evaluate
from search.evaluation.evaluation import Statistics
from search.evaluation.judged_queries import judged_queries
from search.evaluation.significance import exact_p, holm
from search.ranking import QueryCost, ScoredDocument

QUICK = Statistics(permutations=2_000, resamples=500)


def ranking(*doc_ids):
    return [ScoredDocument(doc_id, float(len(doc_ids) - place)) for place, doc_id in enumerate(doc_ids)]


def many(queries):
    """Three rows: good finds the document at rank 1, poor at rank 1 or 3, none nothing."""
    names = [f"q{number}" for number in range(queries)]
    qrels = {name: {"r": 1} for name in names}
    runs = {
        "poor": {n: ranking("x", "y", "r") if i % 2 else ranking("r", "x") for i, n in enumerate(names)},
        "good": {name: ranking("r", "x", "y") for name in names},
        "none": {},
    }
    return runs, judged_queries(qrels)


def strict(value):
    return json.loads(json.dumps(value), parse_constant=pytest.fail)


def test_means_are_over_all_judged_queries():
    runs = {"a": {"q1": ranking("r"), "unjudged": ranking("r")}}
    queries = judged_queries({"q1": {"r": 1}, "q2": {"r": 1}}, {"q1": "one", "q2": "two", "unjudged": "three"})
    evaluation = evaluate(runs, queries, measures="AP", statistics=QUICK)
    assert evaluation.rows["a"].measures == {"AP": 0.5, "Judged@10": 0.5}
    assert evaluation.rows["a"].unanswered == 1
    assert queries.without_judgements == ("unjudged",)
    assert "1 query (unjudged) without judgements left out of the means" in list(evaluation.notes())


def test_judgements_of_unknown_queries_and_documents_are_counted_and_named():
    qrels = {"1": {"known": 1, "gone": 2}, "7": {"known": 1}, "empty": {}, "bad": {"known": -1}}
    queries = judged_queries(qrels, {"1": "one", "bad": "two"}, {"known"})
    assert queries.unknown_queries == ("7",)
    assert queries.unknown_documents == ("gone",)
    assert queries.without_relevant == ("bad",)
    assert list(queries.qrels) == ["1", "bad"]
    notes = " | ".join(queries.notes())
    assert "1 query (7) that the collection does not ask" in notes
    assert "1 document (gone) that the collection lacks" in notes
    assert queries.to_json()["unknown_documents"] == ["gone"]


def test_judged_at_k_is_always_there_at_the_cutoff_of_the_first_measure():
    runs, queries = many(2)
    assert list(evaluate(runs, queries, measures="RR", statistics=QUICK).rows["good"].measures) == [
        "RR",
        "Judged@10",
    ]
    assert "Judged@5" in evaluate(runs, queries, measures="RR,P@5", statistics=QUICK).rows["good"].measures
    given = evaluate(runs, queries, measures="RR,Judged@3", statistics=QUICK)
    assert [measure.name for measure in given.measures] == ["RR", "Judged@3"]


def test_letters_name_the_rows_that_a_row_beats():
    runs, queries = many(40)
    evaluation = evaluate(runs, queries, measures="RR", statistics=QUICK)
    assert evaluation.rows["good"].beats["RR"] == ("poor", "none")
    assert evaluation.letters("good", "RR") == "ac"
    assert evaluation.letters("poor", "RR") == "c"
    assert evaluation.letters("none", "RR") == ""


def test_under_thirty_queries_nothing_is_called_better():
    runs, queries = many(29)
    evaluation = evaluate(runs, queries, measures="RR", statistics=QUICK)
    assert not evaluation.can_tell
    assert not evaluation.rows["good"].beats
    assert any("29 judged queries cannot tell" in note for note in evaluation.notes())


def test_versus_the_baseline_is_row_less_baseline_whatever_their_order():
    runs, queries = many(40)
    evaluation = evaluate(runs, queries, measures="RR", baseline="good", statistics=QUICK)
    poor = evaluation.rows["poor"].versus["RR"]
    assert poor.mean == pytest.approx(-1 / 3)
    assert poor.outcomes == (0, 20, 20)
    assert poor.interval.low <= -1 / 3 <= poor.interval.high < 0
    assert evaluation.rows["none"].versus["RR"].mean == -1
    assert evaluation.rows["good"].versus == {}


def test_p_is_that_of_all_assignments_with_holms_correction_over_the_rows():
    rng = np.random.default_rng(2)
    qrels = {f"q{number}": {"r": 1} for number in range(11)}
    runs = {
        name: {query: ranking(*(["x"] * rng.integers(0, 3)), "r") for query in qrels} for name in ("base", "b", "c")
    }
    evaluation = evaluate(runs, judged_queries(qrels), measures="RR", statistics=Statistics(permutations=50_000))
    scores = {name: np.array(list(row.per_query["RR"].values())) for name, row in evaluation.rows.items()}
    exact = exact_p(np.column_stack([scores[name] - scores["base"] for name in "bc"]))
    for name, p, corrected in zip("bc", exact, holm(exact), strict=True):
        assert evaluation.rows[name].versus["RR"].p == pytest.approx(p, abs=0.012)
        assert evaluation.rows[name].versus["RR"].corrected_p == pytest.approx(corrected, abs=0.025)


def test_the_same_seed_gives_the_same_evaluation():
    runs, queries = many(35)
    first, second = (evaluate(runs, queries, statistics=QUICK).to_json(per_query=True) for _ in range(2))
    assert first == second


def test_json_has_the_agreed_shape_and_no_nan():
    runs, queries = many(31)
    costs = {"good": retriever_cost([QueryCost(1, 2)], IndexCost(3.0, 4.0, 5))}
    evaluation = evaluate(
        runs,
        queries,
        measures="nDCG@10,gm_map,NumRet",
        costs=costs,
        collection={"name": "c"},
        statistics=QUICK,
    )
    values = strict(evaluation.to_json(per_query=True))
    assert values["collection"]["name"] == "c"
    good = values["retrievers"]["good"]
    assert good["measures"]["nDCG@10"] == pytest.approx(1.0)
    assert good["measures"]["NumRet"] == 93
    assert good["cost"]["encode_ms_p50"] == 1
    assert good["cost"]["bytes_per_text"] == 4
    assert values["baseline"] == "poor"
    assert good["versus"]["poor"]["nDCG@10"]["wins"] == 15
    assert "gm_map" not in good["versus"]["poor"]
    assert values["measures"]["nDCG@10"]["provider"] == "pytrec_eval"
    assert good["per_query"]["nDCG@10"]["q0"] == 1


def test_dominated_rows_are_named_where_costs_are_known():
    runs, queries = many(31)
    costs = {
        "good": retriever_cost([QueryCost(1, 1)], IndexCost(1, 1)),
        "poor": retriever_cost([QueryCost(5, 1)], IndexCost(1, 1)),
    }
    evaluation = evaluate(runs, queries, costs=costs, statistics=QUICK)
    assert evaluation.rows["poor"].dominated_by == ("good",)
    assert evaluation.frontier == ["good", "none"]
    assert evaluate(runs, queries, statistics=QUICK).frontier == ["good", "poor", "none"]


def test_bm25_is_the_baseline_where_none_is_named():
    runs, queries = many(3)
    assert evaluate(runs | {"bm25": {}}, queries, statistics=QUICK).baseline == "bm25"


def test_one_row_alone_has_an_interval_and_no_difference():
    runs, queries = many(35)
    row = evaluate({"poor": runs["poor"]}, queries, measures="RR", statistics=QUICK).rows["poor"]
    assert row.intervals["RR"].low < row.measures["RR"] < row.intervals["RR"].high
    assert row.versus == {}
    assert row.beats["RR"] == ()


def test_what_cannot_be_evaluated_says_so_in_one_line():
    runs, queries = many(3)
    with pytest.raises(NoJudgementsError, match="no query is judged"):
        evaluate(runs, judged_queries({}))
    with pytest.raises(NoJudgementsError, match="does not ask"):
        evaluate(runs, judged_queries({"7": {"d": 1}}, {"q": "text"}))
    with pytest.raises(EvaluationError, match="no runs"):
        evaluate({}, queries)
    with pytest.raises(EvaluationError, match="'bm52' is not among the rows: poor, good, none"):
        evaluate(runs, queries, baseline="bm52")
    with pytest.raises(MeasureError, match="not known"):
        evaluate(runs, queries, measures="nope")


def test_six_rows_of_a_thousand_queries_with_ten_measures_are_scored_in_time():
    rng = np.random.default_rng(0)
    documents = [f"d{number}" for number in range(5_000)]
    qrels = {f"q{n}": {documents[d]: 1 + d % 3 for d in rng.integers(0, 5_000, 20)} for n in range(1_000)}
    runs = {
        f"r{row}": {query: ranking(*(documents[d] for d in rng.integers(0, 5_000, 100))) for query in qrels}
        for row in range(6)
    }
    names = "nDCG@10,nDCG@100,AP,RR,RR@10,R@100,P@5,P@10,Success@5,Judged@10"
    started = time.process_time()
    evaluation = evaluate(runs, judged_queries(qrels), measures=names)
    assert time.process_time() - started < 20
    assert len(evaluation.rows["r0"].versus) == 0
    assert len(evaluation.rows["r5"].versus) == 9
