"""Judging by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest

from search.errors import QueryError
from search.judging_session import open_judging, questions
from search.retrieval.searcher import Searcher

Build = Callable[..., Path]


def test_keys_become_grades_and_judging_resumes(build: Build, tmp_path: Path) -> None:
    searcher = Searcher.open(build(["river bank", "river", "zxqv"], queries={"q": "river"}, qrels={"q": {"d0": 1}}))
    qrels = tmp_path / "judged.tsv"
    pressed = iter(["y", "?", "q"])
    first = list(questions(open_judging(searcher, qrels), lambda: next(pressed)))
    assert (first[0].judged, first[0].total) == (0, 2)
    assert first[1].doc_id == first[2].doc_id  # a key that says nothing asks again
    pressed = iter(["2"])
    second = list(questions(open_judging(searcher, qrels), lambda: next(pressed)))
    assert [question.doc_id for question in second] == [first[1].doc_id]
    lines = qrels.read_text().splitlines()
    assert sorted(lines) == sorted([f"q 0 {first[0].doc_id} 1", f"q 0 {second[0].doc_id} 2"])
    searcher.close()


def test_queries_may_come_from_a_file(build: Build, tmp_path: Path) -> None:
    searcher = Searcher.open(build(["river bank", "money"]))
    with pytest.raises(QueryError, match="--queries FILE"):
        open_judging(searcher, tmp_path / "j.tsv")
    (tmp_path / "queries.txt").write_text("river\n\nmoney\n")
    session = open_judging(searcher, tmp_path / "j.tsv", queries=tmp_path / "queries.txt")
    assert {query.text for query in session.queries.values()} == {"river", "money"}
    searcher.close()
