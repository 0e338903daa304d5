"""Evaluating an index: what is reported is what trec_eval says of what is shown."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from corpora.progress import Silent
from search.errors import NoJudgementsError
from search.measuring import measure_index, measure_runs
from search.presentation.evaluation_tables import evaluation_rows
from search.presentation.summaries import info_pairs
from search.reporting import report_index
from search.retrieval.searcher import Searcher

Build = Callable[..., Path]


@pytest.fixture
def judged(build: Build) -> Path:
    """Sixty short texts, many of them equal, and forty queries with random graded judgements."""
    rng = np.random.default_rng(5)
    words = ["river", "water", "bank", "money", "loan", "boat"]
    texts = [" ".join(rng.choice(words, size=int(rng.integers(1, 4)))) for _ in range(60)]
    queries = {f"q{n}": " ".join(rng.choice(words, size=2)) for n in range(40)}
    qrels = {
        f"q{n}": {f"d{d}": int(rng.integers(-1, 4)) for d in rng.choice(60, size=8, replace=False)} for n in range(38)
    }
    qrels["q37"] = {"absent": 1}
    return build(texts, queries=queries, qrels=qrels)


def test_figures_equal_trec_evals_on_the_run_that_was_written(judged: Path, tmp_path: Path) -> None:
    searcher = Searcher.open(judged)
    measures = ["nDCG@10", "RR", "AP", "R@100", "P@5"]
    evaluation, _ = measure_index(searcher, progress=Silent(), measures=measures, runs=tmp_path / "runs")
    qrels = {query: dict(grades) for query, grades in evaluation.queries.qrels.items()}
    names = {"nDCG@10": "ndcg_cut_10", "RR": "recip_rank", "AP": "map", "R@100": "recall_100", "P@5": "P_5"}
    for name in searcher.names:
        run: dict[str, dict[str, float]] = {}
        for line in (tmp_path / "runs" / f"{name}.run").read_text().splitlines():
            query, _, doc_id, _, score, _ = line.split()
            run.setdefault(query, {})[doc_id] = float(score)
        found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut", "recip_rank", "map", "recall", "P"}).evaluate(run)
        for ours, theirs in names.items():
            expected = np.mean([found.get(query, {}).get(theirs, 0.0) for query in qrels])
            assert evaluation.rows[name].measures[ours] == pytest.approx(expected, abs=1e-9), (name, ours)
    searcher.close()


def test_what_does_not_fit_is_counted_and_named(judged: Path) -> None:
    searcher = Searcher.open(judged)
    evaluation, _ = measure_index(searcher, progress=Silent(), measures="nDCG@10")
    assert evaluation.queries.count == 38
    assert evaluation.queries.without_judgements == ("q38", "q39")
    assert evaluation.queries.unknown_documents == ("absent",)
    searcher.close()


def test_runs_of_other_systems_are_scored_alike(judged: Path, tmp_path: Path) -> None:
    searcher = Searcher.open(judged)
    own, _ = measure_index(searcher, progress=Silent(), measures="nDCG@10,AP", runs=tmp_path / "runs")
    qrels = judged / (judged / "CURRENT").read_text().strip() / "judgements" / "qrels" / "test.tsv"
    again, _ = measure_runs(sorted((tmp_path / "runs").glob("*.run")), qrels, measures="nDCG@10,AP")
    for name in searcher.names:
        assert again.rows[name].measures["AP"] == pytest.approx(own.rows[name].measures["AP"], abs=1e-12)
    searcher.close()


def test_costs_stand_beside_quality(judged: Path) -> None:
    searcher = Searcher.open(judged)
    evaluation, _ = measure_index(searcher, progress=Silent(), price_per_hour=3.6)
    cost = evaluation.to_json()["retrievers"]["static"]["cost"]
    assert cost["bytes_per_text"] > 16
    assert cost["search_ms_p50"] > 0
    assert cost["index_seconds"] > 0
    rows = list(evaluation_rows(evaluation))
    assert [row[""].split()[1] for row in rows] == ["bm25", "static", "hybrid"]
    assert all(float(row["per million queries"]) >= 0 for row in rows)
    searcher.close()


def test_an_index_or_split_without_judgements_says_so(build: Build, judged: Path) -> None:
    bare = Searcher.open(build(["river"], name="bare"))
    with pytest.raises(NoJudgementsError, match="no judgements; name a collection"):
        measure_index(bare, progress=Silent())
    bare.close()
    searcher = Searcher.open(judged)
    with pytest.raises(NoJudgementsError, match="splits of this collection: test"):
        measure_index(searcher, progress=Silent(), split="dev")
    searcher.close()


@pytest.mark.parametrize("factory", ["IVF2;Flat", "PQ2x4"])
def test_an_approximate_search_says_its_recall_in_every_evaluation(
    build: Build, tiny_vectors: Path, tmp_path: Path, rng: np.random.Generator, factory: str
) -> None:
    words = ["river", "water", "bank", "money", "loan", "boat"]
    texts = [" ".join(rng.choice(words, size=4)) + f" n{number}" for number in range(80)]
    queries = {f"q{number}": " ".join(rng.choice(words, size=2)) for number in range(31)}
    static = f"static:vectors={tiny_vectors},whitening=none,factory={factory}"
    root = build(
        texts,
        retrievers=f"bm25,{static},hybrid:members=bm25+static",
        queries=queries,
        qrels={query: {f"d{number}": 1} for number, query in enumerate(queries)},
    )
    searcher = Searcher.open(root)
    measured = searcher.index.search_recall("static")
    assert measured is not None
    assert measured == searcher.index.checks["retrievers"]["static"]["approximation"]["recall@10"]
    evaluation, runs = measure_index(searcher, progress=Silent(), measures="RR")
    kind = factory.replace(";", ",")
    said = f"approximate vector search ({kind}), recall@10 {measured:.3f} of exact search"
    notes = list(evaluation.notes())
    assert f"static: {said}" in notes
    assert f"hybrid: {said}" in notes
    for name in ("static", "hybrid"):
        cost = evaluation.to_json()["retrievers"][name]["cost"]
        assert (cost["search_recall@10"], cost["approximation"]) == (measured, kind)
    bm25 = evaluation.to_json()["retrievers"]["bm25"]["cost"]
    assert not {"search_recall@10", "approximation"} & set(bm25)
    report_index(searcher, evaluation, runs, tmp_path / "report.html", progress=Silent())
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"static: {said}" in page
    assert "recall@10 of the search" in page
    assert any(f"{kind}" in value and f"recall@10 {measured:.3f}" in value for _, value in info_pairs(searcher.index))
    searcher.close()


def test_an_exact_search_is_not_called_approximate(judged: Path) -> None:
    searcher = Searcher.open(judged)
    evaluation, _ = measure_index(searcher, progress=Silent(), measures="RR")
    assert not any("approximate" in note for note in evaluation.notes())
    cost = evaluation.to_json()["retrievers"]["static"]["cost"]
    assert cost["search_recall@10"] == 1.0
    assert "approximation" not in cost
    searcher.close()
