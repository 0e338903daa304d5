"""Judgements inside an index."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.collection import Collection
from corpora.judgements import Query
from indexer import judgement_files
from indexer.errors import DamagedIndexError

_IDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)


def _collection(queries: dict[str, Query], qrels: dict[str, dict[str, dict[str, int]]]) -> Collection:
    return Collection("c", "test", lambda _log: iter(()), queries, qrels)


@given(_IDS, _IDS, st.text(st.characters(codec="utf-8"), max_size=30), st.integers(-3, 9))
@settings(max_examples=80, deadline=None)
def test_ids_and_texts_of_any_kind_come_back(
    tmp_path_factory, query_id: str, doc_id: str, text: str, grade: int
) -> None:
    folder = tmp_path_factory.mktemp("judged")
    qrels = {"test": {query_id: {doc_id: grade}}}
    judgement_files.save(_collection({query_id: Query(query_id, text, {"a": 1})}, qrels), folder / "judgements")
    found = judgement_files.load(folder / "judgements")
    assert found.queries == {query_id: Query(query_id, text, {"a": 1})}
    assert found.qrels == qrels


def test_a_query_is_found_by_its_text_whatever_its_case_and_spaces() -> None:
    judgements = judgement_files.Judgements({"1": Query("1", "The  river\nBank")}, {"dev": {"1": {"d": 2}}})
    assert judgements.find(" the river bank ") == Query("1", "The  river\nBank")
    assert judgements.find("the river") is None
    assert judgements.grades("1") == {"d": 2}
    assert judgements.grades("2") == {}


def test_damaged_judgements_are_named(tmp_path: Path) -> None:
    judgement_files.save(_collection({"1": Query("1", "x")}, {"test": {"1": {"d": 1}}}), tmp_path / "j")
    (tmp_path / "j" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td\n")
    with pytest.raises(DamagedIndexError, match="judgements of the index are damaged"):
        judgement_files.load(tmp_path / "j")
