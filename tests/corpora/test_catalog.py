"""A path or a name to a collection."""

import io
import os
import sys

import pytest

from corpora.catalog import BUILTIN, open_collection
from corpora.errors import CollectionNotFoundError, CorpusError, UnreadableFileError
from corpora.fingerprint import CollectionFingerprint
from corpora.read_log import ReadLog


def test_every_built_in_name_opens():
    for name in BUILTIN:
        collection = open_collection(name)
        assert collection.name == name
        assert collection.source == "built-in"
        assert next(collection.documents()).text


def test_what_is_nothing_is_answered_with_what_was_expected(tmp_path):
    with pytest.raises(CollectionNotFoundError, match=r"'nothing'.*lee or senses.*irds:ID"):
        open_collection("nothing")
    for name in ("x" * 5000, "a\0b", ""):
        with pytest.raises(CorpusError):
            list(open_collection(name).documents()) if name else open_collection(tmp_path / "none")


def test_a_path_that_exists_wins_over_a_name_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lee").mkdir()
    (tmp_path / "lee" / "a.txt").write_text("mine")
    collection = open_collection("lee")
    assert [document.text for document in collection.documents()] == ["mine"]
    assert collection.notes == ("lee is the folder of this name here, not the built-in collection",)


def test_empty_folder_and_unknown_file_say_what_was_expected(tmp_path):
    with pytest.raises(CollectionNotFoundError, match="is empty; expected text files"):
        open_collection(tmp_path)
    (tmp_path / "a.bin").write_bytes(b"\1\2\3")
    with pytest.raises(CollectionNotFoundError, match=r"a\.bin: cannot tell its format; expected a name"):
        open_collection(tmp_path / "a.bin")


def test_format_is_told_by_the_beginning_where_the_name_does_not(tmp_path):
    beginnings = {
        '{"_id": "1", "text": "x"}\n': "x",
        '[{"_id": "1", "text": "x"}]': "x",
        "<DOC>\n<DOCNO>1</DOCNO>\n<TEXT>x</TEXT>\n</DOC>\n": "x",
        "<!DOCTYPE html><p>x": "x",
    }
    for number, (content, text) in enumerate(beginnings.items()):
        path = tmp_path / f"file{number}"
        path.write_text(content)
        assert [document.text for document in open_collection(path).documents()] == [text]


def test_dash_reads_standard_input_as_often_as_needed():
    collection = open_collection("-", stdin=io.BytesIO(b'{"_id": "1", "text": "x"}\n'))
    assert collection.name == "stdin"
    for _ in range(2):
        assert [document.doc_id for document in collection.documents()] == ["1"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CollectionNotFoundError, match="neither a file nor a folder"):
        open_collection(tmp_path / "pipe")


def test_names_drop_the_suffixes(tmp_path):
    (tmp_path / "reviews.v2.jsonl").write_text('{"_id": "1", "text": "x"}\n')
    assert open_collection(tmp_path / "reviews.v2.jsonl").name == "reviews.v2"


def test_file_that_vanishes_between_readings_is_one_line(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"_id": "1", "text": "x"}\n')
    collection = open_collection(path)
    path.unlink()
    with pytest.raises(UnreadableFileError, match=r"docs\.jsonl cannot be read \(No such file"):
        list(collection.documents())


def test_opening_and_reading_imports_no_heavy_module(tmp_path):
    import subprocess

    program = (
        "import sys; from corpora.catalog import open_collection; list(open_collection('lee').documents());"
        "heavy = {'gensim', 'torch', 'scipy', 'pandas', 'pypdf', 'pyarrow', 'ir_datasets'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_fingerprint_follows_the_content_not_the_place(tmp_path):
    digests = []
    for number, text in enumerate(["x", "x", "y"]):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(f'{{"_id": "1", "text": "{text}"}}\n')
        fingerprint = CollectionFingerprint()
        for document in open_collection(path).documents():
            fingerprint.add_document(document)
        digests.append(fingerprint.hexdigest())
    assert digests[0] == digests[1] != digests[2]


def test_lee_has_its_published_sizes_and_grades():
    collection = open_collection("lee")
    documents = list(collection.documents())
    assert len(documents) == 50
    assert sum(1 for _ in collection.background()) == 300
    assert collection.exclude_same_id
    qrels = collection.qrels["test"]
    assert set(qrels) == {document.doc_id for document in documents} == set(collection.queries)
    assert all(len(judged) == 49 and query_id not in judged for query_id, judged in qrels.items())
    # Similarity is symmetric, so the grades are.
    assert all(qrels[other][query_id] == grade for query_id in qrels for other, grade in qrels[query_id].items())
    assert documents[0].text.startswith("The national executive of the strife-torn Democrats")
    assert collection.queries["lee-01"].text == documents[0].text


def test_lee_grades_follow_the_rating_scale():
    from corpora.builtin.lee import grade

    ratings = {0.2: 0, 0.4: 0, 0.48: 0, 0.5: 1, 0.6: 1, 0.68: 1, 0.7: 2, 0.8: 2, 0.89: 2, 0.9: 3, 1.0: 3}
    assert {similarity: grade(similarity) for similarity in ratings} == ratings


def test_summary_says_what_was_read():
    log = ReadLog()
    list(open_collection("lee").documents(log))
    assert log.summary().lines()[0] == "read 50 documents"
