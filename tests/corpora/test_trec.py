"""TREC documents, topics and qrels; ir_datasets through a stand-in."""

from collections import namedtuple

import pytest

from corpora.catalog import open_collection
from corpora.errors import CollectionNotFoundError, JudgementError
from corpora.options import DEFAULT_OPTIONS, ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.ir_datasets import load_dataset, open_ir_dataset
from corpora.readers.trec import read_topics, read_trec

DOCUMENTS = """<DOC>
<DOCNO> AP-1 </DOCNO>
<FILEID>AP-NR-1</FILEID>
<HEAD>Rivers &amp; Banks</HEAD>
<TEXT>
   The river rose.
</TEXT>
<TEXT>
It fell.
</TEXT>
</DOC>
<DOC>
<DOCNO>AP-2</DOCNO>
No elements, <b>only</b> words.
</DOC>
"""

TOPICS = """<top>
<num> Number: 301
<title> International
Organized Crime
<desc> Description:
Identify organizations.
<narr> Narrative:
A relevant document names one.
</top>

<top>
<num>302</num><title>Poliomyelitis</title>
</top>
"""


def _file(folder, name, content):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def test_documents_topics_and_qrels_of_a_folder(tmp_path):
    _file(tmp_path, "ap.sgml", DOCUMENTS)
    _file(tmp_path, "topics.301-302", TOPICS)
    _file(tmp_path, "qrels.test.txt", "301 0 AP-1 1\n302 0 AP-2 0\n")
    collection = open_collection(tmp_path)
    first, second = collection.documents()
    assert (first.doc_id, first.title, first.text) == ("AP-1", "Rivers & Banks", "The river rose.\nIt fell.")
    assert (second.doc_id, second.title, second.text) == ("AP-2", "", "No elements, only words.")
    assert second.source == f"{tmp_path / 'ap.sgml'}:12"
    assert collection.queries["301"].text == "International Organized Crime"
    assert collection.queries["301"].metadata["desc"] == "Identify organizations."
    assert collection.queries["302"].text == "Poliomyelitis"
    assert collection.qrels == {"test": {"301": {"AP-1": 1}, "302": {"AP-2": 0}}}


def test_elements_can_be_named(tmp_path):
    path = _file(tmp_path, "a.trec", DOCUMENTS)
    document = next(read_trec(path, ReadOptions(text_fields=("head",), title_field="fileid"), ReadLog()))
    assert (document.title, document.text) == ("AP-NR-1", "Rivers & Banks")


def test_documents_without_end_or_id_are_skipped(tmp_path):
    path = _file(tmp_path, "a.trec", "<DOC>\n<DOCNO>1</DOCNO>\n<DOC>\nno id\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>x</DOC>\n")
    log = ReadLog()
    assert [document.doc_id for document in read_trec(path, DEFAULT_OPTIONS, log)] == ["2"]
    assert {skipped.reason for skipped in log.summary().skipped} == {
        "document without </DOC>",
        "document without an id",
    }


def test_unclosed_tags_take_linear_time(tmp_path):
    path = _file(tmp_path, "a.trec", "<DOC>\n<DOCNO>1</DOCNO>" + "<TEXT><a " * 200_000 + "\n</DOC>\n")
    assert len(list(read_trec(path, DEFAULT_OPTIONS, ReadLog()))) == 1


def test_topics_as_lines_of_id_and_text(tmp_path):
    path = _file(tmp_path, "queries.tsv", "1\twhat is a bank\n2\triver\n")
    queries = read_topics(path, DEFAULT_OPTIONS, ReadLog())
    assert {query_id: query.text for query_id, query in queries.items()} == {
        "1": "what is a bank",
        "2": "river",
    }
    with pytest.raises(JudgementError, match="used before"):
        read_topics(_file(tmp_path, "q", "1\ta\n1\tb\n"), DEFAULT_OPTIONS, ReadLog())
    with pytest.raises(JudgementError, match="expected <top> elements"):
        read_topics(_file(tmp_path, "q", "no tab here\n"), DEFAULT_OPTIONS, ReadLog())


Doc = namedtuple("Doc", "doc_id title text url")  # noqa: PYI024 - what ir_datasets gives
Query = namedtuple("Query", "query_id text")  # noqa: PYI024
Qrel = namedtuple("Qrel", "query_id doc_id relevance iteration")  # noqa: PYI024


class _Dataset:
    def docs_iter(self):
        return iter([Doc("1", "T", "x", "http"), Doc("2", "", "y", "http")])

    def queries_iter(self):
        return iter([Query("q", "what")])

    def qrels_iter(self):
        return iter([Qrel("q", "1", 2, "0")])


def test_ir_datasets_collection():
    log = ReadLog()
    collection = open_ir_dataset("beir/tiny/dev", DEFAULT_OPTIONS, log, load=lambda _: _Dataset())
    assert [(document.doc_id, document.title, document.text) for document in collection.documents()] == [
        ("1", "T", "x"),
        ("2", "", "y"),
    ]
    assert collection.queries["q"].text == "what"
    assert collection.qrels == {"dev": {"q": {"1": 2}}}
    assert "over the network" in log.notes[0]


def test_ir_datasets_without_network_is_one_line():
    class Offline(_Dataset):
        def queries_iter(self):
            raise ConnectionError("no route\nto host")

    with pytest.raises(CollectionNotFoundError, match=r"could not be fetched .*no route to host.*needs the network"):
        open_ir_dataset("beir/tiny", DEFAULT_OPTIONS, ReadLog(), load=lambda _: Offline())


def test_ir_datasets_that_is_not_installed_says_what_to_install():
    try:
        import ir_datasets  # noqa: F401
    except ImportError:
        with pytest.raises(CollectionNotFoundError, match=r"pip install 'twindex\[datasets\]'"):
            load_dataset("beir/scifact/test")
    else:
        pytest.skip("ir_datasets is installed here")
