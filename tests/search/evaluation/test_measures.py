"""Scores against hand-worked figures and trec_eval itself, on every run that could tell them apart."""

import math

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from search.errors import MeasureError
from search.evaluation.measure_names import parse_measure, parse_measures, split_measures
from search.evaluation.measures import aggregate, evaluate_run, mean_scores
from search.ranking import ScoredDocument, ordered

#: Every measure of pytrec_eval (but two that are no numbers), as trec_eval's per-query output names them.
TREC_NAMES = sorted(
    name
    for name in pytrec_eval.RelevanceEvaluator(
        {"q": {"d": 1}}, pytrec_eval.supported_measures - {"runid", "relstring"}
    ).evaluate({"q": {"d": 1.0}})["q"]
)

DOCUMENTS = [f"d{number}" for number in (1, 2, 3, 4, 5, 10, 11, 20)]
grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-2, -1, 0, 1, 2, 3]), min_size=1)
# Few different scores: ties are the rule. All are exact as 32-bit floats, as trec_eval holds them.
found = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
queries = st.sampled_from(["q1", "q2", "q3", "q4"])


def as_run(scored):
    return {
        query: ordered([ScoredDocument(doc_id, score) for doc_id, score in documents.items()])
        for query, documents in scored.items()
    }


def trec_eval(qrels, scored):
    """Ask pytrec_eval itself; it crashes where a query has negative grades only, so one 0 goes beside."""
    answered = {query: documents for query, documents in scored.items() if documents}
    safe = {q: judged | ({"never retrieved": 0} if max(judged.values()) < 0 else {}) for q, judged in qrels.items()}
    wanted = pytrec_eval.supported_measures - {"runid", "relstring"}
    return pytrec_eval.RelevanceEvaluator(safe, wanted).evaluate(answered)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(queries, grades, min_size=1), st.dictionaries(queries, found))
def test_every_measure_of_trec_eval_is_trec_evals(qrels, scored):
    ours = evaluate_run(as_run(scored), qrels, TREC_NAMES)
    theirs = trec_eval(qrels, scored)
    for name in TREC_NAMES:
        mine = ours[parse_measure(name).name]
        assert list(mine) == list(qrels)
        for query, value in mine.items():
            if query in theirs:
                assert value == pytest.approx(theirs[query][name], abs=1e-12), (name, query)
            elif name not in {"num_q", "num_rel", "gm_map", "gm_bpref"}:
                assert value == 0, (name, query)
        if set(theirs) == set(qrels):
            expected = pytrec_eval.compute_aggregated_measure(name, [values[name] for values in theirs.values()])
            assert aggregate(parse_measure(name).name, list(mine.values())) == pytest.approx(expected)


@pytest.mark.parametrize("grades", [{"a": -1}, {"a": -2}, {"a": -5, "b": -1}])
def test_a_query_with_negative_grades_alone_is_0_and_harms_nobody(grades):
    run = as_run({"q": {"a": 1.0, "b": 0.5}, "other": {"c": 1.0}})
    for _ in range(50):
        scores = evaluate_run(run, {"q": grades, "other": {"c": 3}}, "nDCG,nDCG@10,AP,RR,G")
        assert {values["q"] for values in scores.values()} == {0.0}
        assert scores["nDCG"]["other"] == 1.0


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(queries, grades, min_size=1), st.dictionaries(queries, found))
def test_measures_of_other_providers_follow_the_shown_order(qrels, scored):
    run = as_run(scored)
    ours = evaluate_run(run, qrels, "RR@3,Judged@3,Judged")
    for query, judged in qrels.items():
        shown = [document.doc_id for document in run.get(query, [])]
        ranks = [rank for rank, doc_id in enumerate(shown[:3], start=1) if judged.get(doc_id, 0) > 0]
        assert ours["RR@3"][query] == (1 / ranks[0] if ranks else 0)
        for name, top in (("Judged@3", shown[:3]), ("Judged", shown)):
            assert ours[name][query] == (sum(doc_id in judged for doc_id in top) / len(top) if top else 0)


def test_a_tie_is_broken_as_trec_eval_breaks_it():
    run = as_run({"q": {"b": 1.0, "c": 1.0}})
    assert [document.doc_id for document in run["q"]] == ["c", "b"]
    scores = evaluate_run(run, {"q": {"b": 1}}, "RR,nDCG@10")
    assert scores["RR"]["q"] == 0.5
    assert scores["nDCG@10"]["q"] == pytest.approx(0.6309, abs=5e-5)


def test_d2_stands_before_d10_where_scores_are_equal():
    run = as_run({"q": {"d10": 0.7, "d2": 0.7}})
    assert [document.doc_id for document in run["q"]] == ["d2", "d10"]
    assert evaluate_run(run, {"q": {"d2": 1}}, "RR")["RR"]["q"] == 1.0


def test_figures_are_those_of_the_shown_order_where_32_bits_see_a_tie():
    shown = [ScoredDocument("a", 1.0 + 1e-12), ScoredDocument("b", 1.0)]
    assert evaluate_run({"q": shown}, {"q": {"a": 1}}, "RR,nDCG@1") == {
        "RR": {"q": 1.0},
        "nDCG@1": {"q": 1.0},
    }


def test_a_judged_query_absent_from_the_run_counts_as_0():
    run = as_run({"q1": {"a": 1.0}, "unjudged": {"a": 1.0}})
    scores = evaluate_run(run, {"q1": {"a": 1}, "q2": {"a": 1}}, "AP")
    assert scores == {"AP": {"q1": 1.0, "q2": 0.0}}
    assert mean_scores(scores) == {"AP": 0.5}


def test_empty_qrels_and_empty_run():
    assert evaluate_run(as_run({"q": {"a": 1.0}}), {}, "AP,RR@10") == {"AP": {}, "RR@10": {}}
    assert evaluate_run(as_run({"q": {"a": 1.0}}), {"q": {}}, "AP") == {"AP": {}}
    assert mean_scores({"AP": {}}) == {"AP": 0.0}
    nothing = evaluate_run({}, {"q": {"a": 1}}, "AP,RR@10,ERR@5,Judged@10,NumRel,NumQ,Accuracy,Compat")
    assert {name: scores["q"] for name, scores in nothing.items()} == dict.fromkeys(nothing, 0.0) | {
        "NumRel": 1,
        "NumQ": 1,
    }


def test_negative_grades_gain_nothing_and_a_query_without_relevant_documents_is_0():
    run = as_run({"q": {"bad": 3.0, "worse": 2.0, "good": 1.0}, "none": {"x": 1.0}})
    scores = evaluate_run(run, {"q": {"bad": -1, "worse": -2, "good": 1}, "none": {"x": 0}}, "nDCG@10,AP,ERR@5")
    assert scores["nDCG@10"]["q"] == pytest.approx(1 / math.log2(4))
    assert scores["AP"]["q"] == pytest.approx(1 / 3)
    assert {name: values["none"] for name, values in scores.items()} == {"nDCG@10": 0, "AP": 0, "ERR@5": 0}


def test_graded_gains_are_linear():
    # (2/log2(2) + 1/log2(3)) against the ideal (3 + 2/log2(3) + 1/2)
    run = as_run({"q": {"two": 3.0, "one": 2.0}})
    scores = evaluate_run(run, {"q": {"three": 3, "two": 2, "one": 1}}, "nDCG@10")
    assert scores["nDCG@10"]["q"] == pytest.approx((2 + 1 / math.log2(3)) / (3 + 2 / math.log2(3) + 0.5))


def test_expected_reciprocal_rank_through_its_own_program():
    # gdeval: R = (2^1 - 1) / 2^4 at rank 2; ids with dashes and blanks reach it as numbers.
    run = as_run({"trec-7 a": {"doc one": 2.0, "doc two": 1.0}})
    scores = evaluate_run(run, {"trec-7 a": {"doc two": 1}}, "ERR@5,nDCG(dcg='exp-log2')@5")
    assert scores["ERR@5"] == {"trec-7 a": pytest.approx(1 / 16 / 2, abs=1e-5)}
    assert scores["nDCG(dcg='exp-log2')@5"] == {"trec-7 a": pytest.approx(1 / math.log2(3), abs=1e-5)}


def test_accuracy_where_nothing_irrelevant_was_found():
    assert evaluate_run(as_run({"q": {"a": 1.0}}), {"q": {"a": 1}}, "Accuracy@5")["Accuracy@5"]["q"] == 1.0


def test_a_geometric_mean_is_trec_evals():
    assert aggregate("gm_map", [math.log(0.5), math.log(0.125)]) == pytest.approx(0.25)


def test_a_grade_too_large_for_trec_eval_is_refused():
    with pytest.raises(MeasureError, match="grade of 2000000000"):
        evaluate_run({}, {"q": {"a": 2_000_000_000}}, "AP")


@pytest.mark.parametrize(
    ("typed", "name", "provider"),
    [
        ("ndcg_cut_10", "nDCG@10", "pytrec_eval"),
        ("ndcg@10", "nDCG@10", "pytrec_eval"),
        ("NDCG10", "nDCG@10", "pytrec_eval"),
        ("mrr@10", "RR@10", "msmarco"),
        ("MRR", "RR", "pytrec_eval"),
        ("recip_rank", "RR", "pytrec_eval"),
        ("map", "AP", "pytrec_eval"),
        ("map_cut_100", "AP@100", "pytrec_eval"),
        ("recall@100", "R@100", "pytrec_eval"),
        ("recall_100", "R@100", "pytrec_eval"),
        ("p@5", "P@5", "pytrec_eval"),
        ("P_5", "P@5", "pytrec_eval"),
        ("hit@1", "Success@1", "pytrec_eval"),
        ("iprec_at_recall_0.10", "IPrec@0.1", "pytrec_eval"),
        ("Judged@10", "Judged@10", "judged"),
        ("err@20", "ERR@20", "gdeval"),
        ("P(rel=2)@5", "P(rel=2)@5", "pytrec_eval"),
        ("relative_P_10", "relative_P_10", "pytrec_eval"),
        ("gm_map", "gm_map", "pytrec_eval"),
    ],
)
def test_names_that_people_type_lead_to_measures(typed, name, provider):
    measure = parse_measure(typed)
    assert (measure.name, measure.provider) == (name, provider)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("ndgc@10", "near to it: nDCG@10"),
        ("foo", "for example nDCG@10"),
        ("R", "a cutoff is needed, as in R@10"),
        ("IPrec", "as in IPrec@0.1"),
        ("nDCG@0", "at least 1"),
        ("nDCG@1.5", "1.5 is no value for cutoff"),
        ("P(2)@5", "name=value"),
        ("P(rel=__import__('os'))@5", "name=value"),
        ("AP(p=2)", "it takes cutoff, rel, judged_only, not 'p'"),
        ("alpha_nDCG@10", "pyndeval, which is not installed"),
        ("", "not known"),
    ],
)
def test_a_name_that_leads_nowhere_gets_one_line(typed, words):
    with pytest.raises(MeasureError, match="measure") as caught:
        parse_measure(typed)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_of_measures_is_divided_outside_parentheses_and_each_is_kept_once():
    assert split_measures("nDCG@10, P(rel=2,judged_only=True)@5 ,RR,") == [
        "nDCG@10",
        "P(rel=2,judged_only=True)@5",
        "RR",
    ]
    assert [measure.name for measure in parse_measures("map,AP,mrr")] == ["AP", "RR"]


def test_scores_are_plain_numbers():
    scores = evaluate_run(as_run({"q": {"a": 1.0}}), {"q": {"a": 1}}, "AP")
    assert type(scores["AP"]["q"]) is float
    assert np.isfinite(scores["AP"]["q"])
