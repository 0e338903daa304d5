"""Any bytes under any name: documents, or one line; never a traceback."""

import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpora.catalog import open_collection
from corpora.errors import CorpusError
from corpora.options import Duplicates, ReadOptions
from corpora.read_log import ReadLog
from corpora.survey import survey

_FUZZ = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_RECORD = st.dictionaries(st.sampled_from(["_id", "id", "text", "title", "body", "metadata", "n", ""]), _JSON)

#: Signs that mean something to one format or another, and noise between them.
_SIGNS = st.sampled_from(
    [
        b"<DOC>", b"</DOC>", b"<DOCNO>1</DOCNO>", b"<TEXT>", b"</TEXT>", b"<top>", b"<num>", b"\n", b"\r\n",
        b"\r", b'"', b'""', b",", b"\t", b";", b"{", b"}", b"[", b"]", b":", b"null", b"1", b"1e999", b"id",
        b"text", b"_id", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\0", b"\xe9", b"\xed\xa0\x80",
        b"\\ud800", b"\\u0000", b"# ", b"---\n", b"===", b"```", b".. note::", b"``", b"[a](b)", b"| a |",
        b"<p>", b"<div", b"&#xD800;", b"<!--", b"PAR1", b"%PDF-1.4", b"\x1f\x8b\x08",
        b"query-id\tcorpus-id\tscore\n", b"1 0 2 1\n", b"\xf0\x9f\xa4\x9d",
    ]
)  # fmt: skip
_BYTES = st.lists(_SIGNS | st.binary(max_size=12), max_size=40).map(b"".join)


def _read_all(path, options):
    """Open, survey and read; only what is declared may be raised, in one line."""
    for strict in (False, True):
        try:
            collection = open_collection(path, options)
            found = survey(collection, log=ReadLog(strict=strict))
            ids = [document.doc_id for document in collection.documents(ReadLog(strict=strict))]
        except CorpusError as error:
            assert str(error).strip()  # noqa: PT017 - the kind is what is tested
            assert "\n" not in str(error)  # noqa: PT017
            continue
        assert found.documents == len(ids) == len(set(ids))
        for doc_id in ids:
            assert doc_id.encode()
        for document in collection.documents():
            json.dumps([document.title, document.text, dict(document.metadata)], allow_nan=False).encode()
            document.searchable_text.encode()


_NAMES = [
    "a.jsonl", "a.json", "a.csv", "a.tsv", "a.parquet", "a.trec", "a.txt", "a.md", "a.rst", "a.jsonl.gz",
    "a.csv.gz", "a", "a.bin",
]  # fmt: skip


@pytest.mark.parametrize("name", _NAMES)
@_FUZZ
@given(data=_BYTES, duplicates=st.sampled_from(Duplicates), encoding=st.sampled_from([None, "utf-16", "cp1252"]))
def test_any_bytes_under_any_name(tmp_path, name, data, duplicates, encoding):
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") and len(data) % 3 else data)
    _read_all(path, ReadOptions(duplicates=duplicates, encoding=encoding))


@pytest.mark.parametrize("name", ["a.html", "a.pdf"])
@settings(_FUZZ, max_examples=8)
@given(data=_BYTES)
def test_any_bytes_as_a_page(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    log = ReadLog()
    assert len(list(open_collection(tmp_path).documents(log))) + log.summary().skipped_count == 1


@_FUZZ
@given(records=st.lists(_RECORD | _JSON, max_size=6), form=st.sampled_from(["jsonl", "json"]))
def test_any_records(tmp_path, records, form):
    path = tmp_path / f"a.{form}"
    lines = "\n".join(json.dumps(record) for record in records)
    path.write_text(lines if form == "jsonl" else json.dumps(records))
    _read_all(path, ReadOptions(duplicates=Duplicates.FIRST))


@_FUZZ
@given(
    corpus=_BYTES,
    queries=_BYTES | st.lists(_RECORD, max_size=3).map(lambda records: "\n".join(map(json.dumps, records)).encode()),
    qrels=_BYTES,
)
def test_any_beir_folder(tmp_path, corpus, queries, qrels):
    (tmp_path / "qrels").mkdir(exist_ok=True)
    (tmp_path / "corpus.jsonl").write_bytes(b'{"_id": "1", "text": "x"}\n' + corpus)
    (tmp_path / "queries.jsonl").write_bytes(queries)
    (tmp_path / "qrels" / "test.tsv").write_bytes(qrels)
    _read_all(tmp_path, ReadOptions(duplicates=Duplicates.FIRST))


@_FUZZ
@given(topics=_BYTES, qrels=_BYTES)
def test_any_trec_folder(tmp_path, topics, qrels):
    (tmp_path / "docs").write_text("<DOC>\n<DOCNO>1</DOCNO>x\n</DOC>\n")
    (tmp_path / "topics").write_bytes(topics)
    (tmp_path / "qrels").write_bytes(qrels)
    _read_all(tmp_path, ReadOptions())


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory):
    """Small good files whose bytes are then damaged."""
    folder = tmp_path_factory.mktemp("whole")
    table = pa.table({"id": [str(n) for n in range(50)], "text": ["river bank"] * 50, "n": list(range(50))})
    pq.write_table(table, folder / "a.parquet")
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(b'{"_id": "1", "text": "river bank"}\n'))
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["a.parquet", "a.jsonl.gz"])
@settings(_FUZZ, max_examples=40)
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 6))
def test_good_files_with_damaged_bytes(tmp_path, whole_files, name, seed, changes):
    dice = random.Random(seed)
    data = bytearray(whole_files[name])
    for _ in range(changes):
        data[dice.randrange(len(data))] = dice.randrange(256)
    if dice.random() < 0.3:
        del data[dice.randrange(len(data)) :]
    (tmp_path / name).write_bytes(data)
    _read_all(tmp_path / name, ReadOptions(duplicates=Duplicates.FIRST))
