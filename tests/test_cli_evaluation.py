"""Evaluating, advising and judging as a user meets them: separate processes, exit codes, streams."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
Build = Callable[..., Path]


def run(*arguments: str | Path, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200"},
        check=False,
        timeout=120,
    )


@pytest.fixture
def index(build: Build) -> Path:
    return build(
        ["river water", "money loan", "boat river", "bank"],
        queries={"q1": "river", "q2": "money"},
        qrels={"q1": {"d0": 1}, "q2": {"d1": 1}},
    )


def test_an_expected_figure_that_is_off_is_exit_code_1(index: Path) -> None:
    as_expected = run("evaluate", index, "--measures", "RR", "--expect", "static:RR=0.75", "--expect", "bm25:P@1>=.4")
    assert as_expected.returncode == 0, as_expected.stderr
    off = run("evaluate", index, "--measures", "RR", "--expect", "static:RR=0.3+-0.01")
    assert off.returncode == 1
    assert "static: RR is 0.7500, expected 0.3 +- 0.01 (0.4500 too high)" in off.stderr
    assert "static" in off.stdout, "the table is shown all the same"
    assert run("evaluate", index, "--expect", "nonsense").returncode == 1


def test_the_table_names_providers_and_judged_shares_and_too_few_queries(index: Path) -> None:
    shown = run("evaluate", index, "--measures", "nDCG@10,RR", "--price-per-hour", "2").stdout
    for words in (
        "Judged@10",
        "measures by pytrec_eval (nDCG@10, RR), judged (Judged@10)",
        "2 judged queries cannot tell",
        "per million",
        "multiply-adds",
        "against bm25, with 95% intervals",
        "better / same / worse",
    ):
        assert words in shown, words


def test_runs_are_evaluated_alike_with_a_report_and_scores_of_each_query(index: Path, tmp_path: Path) -> None:
    assert run("evaluate", index, "--runs", tmp_path / "runs").returncode == 0
    assert (tmp_path / "runs" / "static.scores.tsv").read_text().startswith("query_id\tnDCG@10")
    qrels = tmp_path / "judged.qrels"
    qrels.write_text("q1 0 d0 1\nq2 0 d1 1\n")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "river"}\n{"_id": "q2", "text": "money"}\n')
    files = sorted((tmp_path / "runs").glob("*.run"))
    done = run(
        "evaluate",
        *files,
        "--qrels",
        qrels,
        "--queries",
        tmp_path / "queries.jsonl",
        "--report",
        tmp_path / "report.html",
        "--runs",
        tmp_path / "again",
        "--expect",
        "static:RR=.75",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)["retrievers"]) == {"bm25", "static", "hybrid"}
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No cost was measured" in page
    assert "river" in page
    assert (tmp_path / "again" / "static.scores.tsv").exists()


def test_judgements_made_by_hand_evaluate_the_index_they_were_made_on(index: Path, tmp_path: Path) -> None:
    qrels, queries = tmp_path / "mine.qrels", tmp_path / "mine.txt"
    queries.write_text("water\nloan\n")
    first = run("judge", index, qrels, "--queries", queries, stdin="x\ny\nq\n")
    assert first.returncode == 0, first.stderr
    assert "'x' says nothing: y or n, or a grade" in first.stdout
    assert f"next: twindex evaluate {index} --qrels {qrels} --queries {queries}" in first.stdout
    assert len(qrels.read_text().splitlines()) == 1
    rest = run("judge", index, qrels, "--queries", queries, stdin="n\n" * 20)
    assert len(qrels.read_text().splitlines()) > 1, rest.stderr
    done = run("evaluate", index, "--qrels", qrels, "--queries", queries, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["collection"]["split"] == "mine"
    assert found["judgements"]["queries"] == 2
    assert found["retrievers"]["static"]["measures"]["Judged@10"] > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--unjudged", "--report", "x.html"), "--report would do nothing"),
        (("--unjudged", "--runs", "x"), "--runs would do nothing"),
        (("--queries", "x"), "--queries would do nothing"),
        (("--pictures", "x"), "--pictures would do nothing"),
        (("another",), "give one index, or run files together with --qrels"),
    ],
)
def test_options_that_would_do_nothing_are_a_wrong_call(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = run("evaluate", tmp_path, *options)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.replace("│", " ").split())


def test_advice_is_five_lines_with_the_price_and_what_was_judged(index: Path) -> None:
    done = run("advise", index, "--price-per-hour", "3.6")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 5
    assert "Cannot tell: 2 judged queries are too few" in lines[0]
    assert "of its first 10 judged" in lines[0]
    assert "for a million queries" in lines[1]
    assert lines[4].startswith("What would change this")
