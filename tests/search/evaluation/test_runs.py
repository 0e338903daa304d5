"""TREC files: what is written is what is read, and trec_eval's own reader agrees."""

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.options import DEFAULT_OPTIONS
from corpora.read_log import ReadLog
from corpora.readers.qrels import read_qrels
from search.errors import RunFileError
from search.evaluation.evaluate import evaluate
from search.evaluation.evaluation import Statistics
from search.evaluation.judged_queries import judged_queries
from search.evaluation.measures import evaluate_run
from search.evaluation.runs import (
    read_run,
    read_runs,
    read_scores,
    write_qrels,
    write_run,
    write_runs,
    write_scores,
)
from search.ranking import ScoredDocument, ordered

ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\t\n\"' /"), min_size=1, max_size=6)
scores = st.floats(allow_nan=False, allow_infinity=False, width=32)
runs = st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1, max_size=4), max_size=3)


def as_run(scored):
    return {q: ordered([ScoredDocument(d, s) for d, s in found.items()]) for q, found in scored.items()}


@settings(max_examples=80, deadline=None)
@given(runs)
def test_a_run_survives_writing_and_reading(tmp_path_factory, scored):
    path = tmp_path_factory.mktemp("runs") / "a.run"
    write_run(path, as_run(scored), "tag")
    assert read_run(path).run == as_run(scored)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(ids, st.dictionaries(ids, st.integers(-2, 5), min_size=1, max_size=3), min_size=1, max_size=3))
def test_scores_survive_writing_and_reading(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("scores") / "a.scores.tsv"
    table = {
        "AP": {q: len(v) / 3 for q, v in values.items()},
        "P(rel=2)@5": {q: 0.1 * len(v) for q, v in values.items()},
    }
    write_scores(path, table)
    assert read_scores(path) == table


def test_the_six_columns_are_trecs_and_scores_keep_their_digits(tmp_path):
    path = tmp_path / "a.run"
    run = {"q1": [ScoredDocument("d2", 0.1 + 0.2), ScoredDocument("d10", 0.1)]}
    write_run(path, run, "bm25")
    assert path.read_text() == "q1 Q0 d2 1 0.30000000000000004 bm25\nq1 Q0 d10 2 0.1 bm25\n"
    theirs = [tuple(line) for line in ir_measures.read_trec_run(str(path))]
    assert theirs == [("q1", "d2", 0.1 + 0.2), ("q1", "d10", 0.1)]


def test_a_run_of_another_system_is_ordered_by_score_as_trec_eval_does(tmp_path):
    path = tmp_path / "other.run"
    # Ranks lie, lines are mixed, tabs and spaces both separate; b and c differ beyond 32 bits only.
    path.write_text("q Q0 a 1 0.5 x\nq\tQ0\tb\t9\t1.00000000001\tx\nq Q0 c 3 1.0 x\n")
    named = read_run(path)
    assert [document.doc_id for document in named.run["q"]] == ["c", "b", "a"]
    assert named.tag == "x"
    qrels = {"q": {"b": 1}}
    theirs = ir_measures.calc_aggregate([ir_measures.RR], qrels, ir_measures.read_trec_run(str(path)))
    assert evaluate_run(named.run, qrels, "RR")["RR"]["q"] == theirs[ir_measures.RR] == 0.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q Q0 d 1 0.5\n", ":1: 5 columns; expected 6"),
        ("q Q0 d 1 0.5 t\nq Q0 e 2 abc t\n", ":2: found 'abc'"),
        ("q Q0 d 1 nan t\n", "found 'nan'"),
        ("q Q0 d 1 0.5 t\n\nq Q0 d 2 0.4 t\n", "lines 1 and 3; remove one"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, words):
    path = tmp_path / "bad.run"
    path.write_text(text)
    with pytest.raises(RunFileError) as caught:
        read_run(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_binary_one_are_errors_in_one_line(tmp_path):
    with pytest.raises(RunFileError, match="No such file"):
        read_run(tmp_path / "none.run")
    (tmp_path / "b.run").write_bytes(b"\x00\x01\x02" * 500)
    with pytest.raises(RunFileError, match="binary"):
        read_run(tmp_path / "b.run")


def test_an_empty_file_is_an_empty_run(tmp_path):
    (tmp_path / "e.run").write_text("")
    assert read_run(tmp_path / "e.run").run == {}


def test_byte_order_mark_and_carriage_returns_are_no_part_of_ids(tmp_path):
    path = tmp_path / "w.run"
    path.write_bytes(b"\xef\xbb\xbfq Q0 d 1 0.5 tag\r\n")
    assert read_run(path).run == {"q": [ScoredDocument("d", 0.5)]}
    assert read_run(path).tag == "tag"


def test_judgements_are_written_in_trec_form_and_read_again(tmp_path):
    path = tmp_path / "qrels.txt"
    qrels = {"q1": {"d1": 2, "d2": -1}, "q2": {"d1": 0}}
    write_qrels(path, qrels)
    assert path.read_text().splitlines()[0] == "q1 0 d1 2"
    assert read_qrels(path, DEFAULT_OPTIONS, ReadLog()) == qrels


def test_a_run_and_its_scores_stand_beside_each_other(tmp_path):
    found = {"bm25": as_run({"q": {"a": 1.0}}), "my/odd: name": as_run({"q": {"b": 1.0}})}
    evaluation = evaluate(found, judged_queries({"q": {"a": 1}}), measures="AP", statistics=Statistics(10, 10))
    written = write_runs(tmp_path / "deep" / "runs", found, evaluation)
    assert [path.name for path in written] == [
        "bm25.run",
        "bm25.scores.tsv",
        "my_odd_ name.run",
        "my_odd_ name.scores.tsv",
    ]
    assert read_scores(written[1])["AP"] == {"q": 1.0}
    again = read_runs(path for path in written if path.suffix == ".run")
    assert again == {"bm25": found["bm25"], "my_odd_ name": found["my/odd: name"]}


def test_names_that_would_become_one_file_are_refused(tmp_path):
    with pytest.raises(RunFileError, match="one file"):
        write_runs(tmp_path, {"a/b": {}, "a:b": {}})


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_run(tmp_path / folder / "bm25.run", as_run({"q": {"a": 1.0}}), "t")
    assert set(read_runs([tmp_path / "one" / "bm25.run", tmp_path / "two" / "bm25.run"])) == {
        "one/bm25",
        "two/bm25",
    }


def test_a_folder_that_cannot_be_made_is_an_error_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFileError, match="can be written to"):
        write_runs(tmp_path / "file" / "runs", {"a": {}})


def test_a_table_without_its_header_is_refused(tmp_path):
    path = tmp_path / "s.tsv"
    path.write_text("q1\t0.5\n")
    with pytest.raises(RunFileError, match="expected a header"):
        read_scores(path)
    path.write_text("query_id\tAP\nq1\t0.5\t0.6\n")
    with pytest.raises(RunFileError, match=":2: 3 columns"):
        read_scores(path)
