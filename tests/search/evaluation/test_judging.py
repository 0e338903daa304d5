"""Pooling and the state of judging, kept on disk."""

import pytest

from search.errors import RunFileError
from search.evaluation.judging import KEYS, Judging, Question, pool
from search.ranking import ScoredDocument


def ranking(*doc_ids):
    return [ScoredDocument(doc_id, float(-place)) for place, doc_id in enumerate(doc_ids)]


RUNS = {
    "a": {"q1": ranking("d1", "d2", "d3"), "q2": ranking("d9")},
    "b": {"q1": ranking("d4", "d1"), "q3": []},
}


def test_the_pool_holds_the_top_of_every_run_once():
    pooled = pool(RUNS, 2)
    assert sorted(pooled["q1"]) == ["d1", "d2", "d4"]
    assert pooled["q2"] == ["d9"]
    assert pooled["q3"] == []


def test_the_order_is_seeded_and_does_not_tell_who_found_what():
    many = {"a": {"q": ranking(*(f"d{n}" for n in range(30)))}, "b": {"q": ranking("z")}}
    order = pool(many, 30)["q"]
    assert order == pool(dict(reversed(many.items())), 30)["q"]
    assert order != pool(many, 30, seed=1)["q"]
    assert order != sorted(order)
    assert pool(many | {"c": {"other": ranking("d1")}}, 30)["q"] == order


def test_judgements_are_on_disk_at_once_and_judging_goes_on_from_there(tmp_path):
    path = tmp_path / "qrels.tsv"
    pooled = pool(RUNS, 3)
    judging = Judging(pooled, path)
    assert (judging.judged, judging.total) == (0, 5)
    first = judging.next()
    judging.judge(first, 2)
    assert path.read_text() == f"{first.query_id} 0 {first.doc_id} 2\n"
    again = Judging(pooled, path)
    assert again.judged == 1
    assert again.next() not in {first, None}
    while (question := again.next()) is not None:
        again.judge(question, KEYS["n"])
    assert (again.judged, again.total) == (5, 5)
    assert again.qrels["q2"] == {"d9": 0}


def test_a_judgement_can_be_taken_back_and_a_question_passed_over(tmp_path):
    judging = Judging({"q": ["d1", "d2"]}, tmp_path / "q.tsv")
    judging.judge(Question("q", "d1"), 1)
    assert judging.undo() == Question("q", "d1")
    assert judging.undo() is None
    assert judging.qrels == {}
    assert judging.next() == Question("q", "d1")
    judging.skip(Question("q", "d1"))
    assert judging.next() == Question("q", "d2")
    judging.skip(Question("q", "d2"))
    assert judging.next() is None
    assert Judging({"q": ["d1", "d2"]}, tmp_path / "q.tsv").next() == Question("q", "d1")


def test_judgements_from_elsewhere_stay_in_the_file(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text("old 0 d7 1\n")
    judging = Judging({"q": ["d1"]}, path)
    judging.judge(Question("q", "d1"), 0)
    assert judging.qrels == {"old": {"d7": 1}, "q": {"d1": 0}}
    assert Judging({"q": ["d1"]}, path).qrels == judging.qrels


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "q.tsv"
    path.write_text("these are no judgements at all\n")
    with pytest.raises(RunFileError, match="holds no judgements"):
        Judging({}, path)
    assert path.read_text() == "these are no judgements at all\n"


def test_a_judgement_that_cannot_be_written_is_not_kept(tmp_path):
    judging = Judging({"q": ["d1"]}, tmp_path / "gone" / "q.tsv")
    with pytest.raises(RunFileError, match="can be written to"):
        judging.judge(Question("q", "d1"), 1)
    assert judging.judged == 0


def test_keys_are_grades():
    assert (KEYS["y"], KEYS["n"], KEYS["3"]) == (1, 0, 3)
