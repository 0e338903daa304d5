"""BEIR folders and qrels: all splits, both forms, and what does not fit."""

import json

import pytest

from corpora.catalog import open_collection
from corpora.errors import JudgementError, UnreadableFileError
from corpora.options import Duplicates, ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.qrels import read_qrels
from corpora.survey import survey


@pytest.fixture
def folder(tmp_path):
    _lines(tmp_path / "corpus.jsonl", *({"_id": n, "title": None, "text": f"text {n}"} for n in range(1, 5)))
    _lines(tmp_path / "queries.jsonl", *({"_id": n, "text": f"query {n}"} for n in range(1, 4)))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t2\n1\t2\t0\n2\t3\t-1\n")
    return tmp_path


def _lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def _qrels(path, text, **options):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_qrels(path, ReadOptions(**options), ReadLog())


def test_integer_ids_in_json_match_text_ids_in_qrels(folder):
    collection = open_collection(folder)
    assert [document.doc_id for document in collection.documents()] == ["1", "2", "3", "4"]
    assert list(collection.queries) == ["1", "2", "3"]
    assert collection.qrels == {"test": {"1": {"1": 2, "2": 0}, "2": {"3": -1}}}


def test_every_split_is_read(folder):
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n3\t4\t1\n")
    (folder / "qrels" / "README").write_text("no judgements")
    assert set(open_collection(folder).qrels) == {"test", "train"}


@pytest.mark.parametrize(
    "text",
    [
        "query-id\tcorpus-id\tscore\nq\td\t1\nq\te\t0\n",
        "query-id\tcorpus-id\tscore\r\nq\td\t1\r\nq\te\t0",
        "\ufeffquery-id\tcorpus-id\tscore\nq\td\t1\nq\te\t0\n",
        "q\td\t1\nq\te\t0\n",
        "q d 1\nq e 0\n",
        "q 0 d 1\nq 0 e 0\n",
        "q\t0\td\t1\nq\t0\te\t0\n",
        "  q   Q0  d   1  \n\n q 0 e 0\n",
        "q d 1.0\nq e 0\n",
    ],
)
def test_both_forms_and_separators(tmp_path, text):
    assert _qrels(tmp_path / "q.tsv", text) == {"q": {"d": 1, "e": 0}}


def test_grades_of_every_kind_are_kept(tmp_path):
    assert _qrels(tmp_path / "q", "q 0 a 3\nq 0 b 0\nq 0 c -2\n") == {"q": {"a": 3, "b": 0, "c": -2}}


def test_ids_with_quotation_marks_and_spaces_survive_tabs(tmp_path):
    assert _qrels(tmp_path / "q", 'q 1\t"d x\t1\n') == {"q 1": {'"d x': 1}}


@pytest.mark.parametrize("line", ["q d", "q 0 d 1 extra", "q 0 d high", "q 0 d 1.5", "q 0 d inf", "q 0 d"])
def test_a_line_of_another_form_is_an_error_with_its_number(tmp_path, line):
    with pytest.raises(JudgementError, match=r"q\.tsv:2: found '.*expected `query-id"):
        _qrels(tmp_path / "q.tsv", f"q 0 e 1\n{line}\n")


def test_pair_judged_twice(tmp_path):
    path = tmp_path / "q.tsv"
    assert _qrels(path, "q 0 d 1\nq 0 d 1\n") == {"q": {"d": 1}}
    with pytest.raises(JudgementError, match="lines 1 and 3 grade document 'd' for query 'q' as 1 and 2"):
        _qrels(path, "q 0 d 1\nq 0 e 1\nq 0 d 2\n")
    assert _qrels(path, "q 0 d 1\nq 0 d 2\n", duplicates=Duplicates.LAST) == {"q": {"d": 2}}
    assert _qrels(path, "q 0 d 1\nq 0 d 2\n", duplicates=Duplicates.FIRST) == {"q": {"d": 1}}


def test_empty_qrels_judge_nothing(tmp_path):
    assert _qrels(tmp_path / "q.tsv", "") == {}
    assert _qrels(tmp_path / "q.tsv", "query-id\tcorpus-id\tscore\n") == {}


def test_gaps_are_counted_and_named(folder):
    (folder / "qrels" / "test.tsv").write_text("1 1 1\n9 1 1\n1 77 1\n2 3 0\n8 78 1\n")
    split = survey(open_collection(folder)).splits[0]
    assert (split.gaps.unknown_queries.count, split.gaps.unknown_queries.examples) == (2, ("8", "9"))
    assert split.gaps.unknown_documents.examples == ("77", "78")
    assert split.gaps.unjudged_queries.examples == ("3",)
    assert split.gaps.without_relevant.examples == ("2",)
    assert split.gaps.lines()[0] == "judged queries that are unknown: 2 (8, 9)"
    assert split.grades == ((0, 1), (1, 4))


def test_queries_with_one_id_are_refused_with_both_lines(folder):
    _lines(folder / "queries.jsonl", {"_id": 1, "text": "a"}, {"_id": "1", "text": "b"})
    with pytest.raises(JudgementError, match="lines 1 and 2 hold queries with the same id '1'"):
        open_collection(folder)


def test_bad_query_lines_are_skipped_and_noted(folder):
    with (folder / "queries.jsonl").open("a") as file:
        file.write("nonsense\n")
    collection = open_collection(folder)
    assert len(collection.queries) == 3
    assert "queries.jsonl:4" in collection.notes[0]
    with pytest.raises(UnreadableFileError, match=r"queries\.jsonl:4"):
        open_collection(folder, log=ReadLog(strict=True))


def test_corpus_without_queries_is_a_collection(tmp_path):
    _lines(tmp_path / "corpus.jsonl", {"_id": "1", "text": "x"})
    collection = open_collection(tmp_path)
    assert (len(list(collection.documents())), collection.queries, collection.qrels) == (1, {}, {})


@pytest.mark.parametrize(
    ("name", "documents", "queries", "judgements"),
    [("adi", 82, 35, 170), ("cranfield", 1400, 225, 1837), ("cacm", 3204, 64, 796)],
)
def test_published_sizes_of_test_collections(shared_data, name, documents, queries, judgements):
    collection = open_collection(shared_data / "ir" / name)
    assert sum(1 for _ in collection.documents(ReadLog(strict=True))) == documents
    assert len(collection.queries) == queries
    assert sum(map(len, collection.qrels["test"].values())) == judgements
