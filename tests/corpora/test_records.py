"""Files of records: fields, broken lines, large lines, ids of every kind."""

import datetime as dt
import gzip
import json
import tracemalloc
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.catalog import open_collection
from corpora.errors import CorpusError, DuplicateIdError, UnreadableFileError
from corpora.limits import Limits
from corpora.options import DEFAULT_OPTIONS, Duplicates, ReadOptions
from corpora.read_log import ReadLog


def _write(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def _read(path, options=DEFAULT_OPTIONS, *, strict=False):
    log = ReadLog(strict=strict)
    return list(open_collection(path, options).documents(log)), log.summary()


def test_bad_json_on_line_17_is_named_and_skipped(tmp_path):
    lines = [json.dumps({"_id": str(number), "text": "a text"}) for number in range(1, 31)]
    lines[16] = '{"_id": "17", "text": '
    path = tmp_path / "docs.jsonl"
    path.write_text("\n".join(lines))
    documents, summary = _read(path)
    assert len(documents) == 29
    assert summary.skipped[0].reason == "not JSON"
    assert summary.skipped[0].examples == (f"{path}:17: Expecting value at column 22",)
    with pytest.raises(UnreadableFileError, match=r"docs\.jsonl:17.*not JSON"):
        _read(path, strict=True)


def test_same_id_twice_is_refused_with_both_lines(tmp_path):
    path = _write(
        tmp_path / "docs.jsonl",
        {"_id": "a", "text": "1"},
        {"_id": "b", "text": "2"},
        {"_id": "a", "text": "3"},
    )
    with pytest.raises(DuplicateIdError, match=r"docs\.jsonl:1 and .*docs\.jsonl:3 hold the same id 'a'"):
        _read(path)


@pytest.mark.parametrize(("choice", "texts"), [("first", ["1", "2"]), ("last", ["2", "3"])])
def test_first_or_last_of_equal_ids_can_be_chosen(tmp_path, choice, texts):
    path = _write(
        tmp_path / "docs.jsonl",
        {"_id": "a", "text": "1"},
        {"_id": "b", "text": "2"},
        {"_id": "a", "text": "3"},
    )
    documents, summary = _read(path, ReadOptions(duplicates=Duplicates(choice)))
    assert [document.text for document in documents] == texts
    assert summary.skipped[0].reason == "id used more than once"
    assert summary.documents == 2


def test_number_and_text_are_the_same_id(tmp_path):
    path = _write(tmp_path / "docs.jsonl", {"_id": "1", "text": "one"}, {"_id": 1, "text": "two"})
    with pytest.raises(DuplicateIdError, match="same id '1'"):
        _read(path)


@pytest.mark.parametrize("doc_id", ['"quoted', "\ttab", "/slash/../x", "x" * 500, "a b", "日本", "-1", "0"])
@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv", "parquet"])
def test_ids_of_every_kind_are_kept(tmp_path, doc_id, form):
    path = tmp_path / f"docs.{form}"
    if form == "jsonl":
        _write(path, {"_id": doc_id, "text": "a"})
    elif form == "parquet":
        pq.write_table(pa.table({"_id": [doc_id], "text": ["a"]}), path)
    else:
        separator = "," if form == "csv" else "\t"
        quoted = '"' + doc_id.replace('"', '""') + '"'
        path.write_text(f"_id{separator}text\n{quoted}{separator}a\n", encoding="utf-8")
    documents, _ = _read(path)
    assert [document.doc_id for document in documents] == [doc_id]


def test_null_title_is_no_title_and_null_text_no_text(tmp_path):
    path = _write(
        tmp_path / "docs.jsonl",
        {"_id": 1, "title": None, "text": "x"},
        {"_id": 2, "title": "t", "text": None},
    )
    documents, _ = _read(path)
    assert [(document.title, document.text) for document in documents] == [("", "x"), ("t", "")]


def test_empty_texts_are_documents_too(tmp_path):
    path = _write(tmp_path / "docs.jsonl", *({"_id": n, "text": t} for n, t in enumerate(["a", "", "river bank"])))
    documents, summary = _read(path)
    assert [document.text for document in documents] == ["a", "", "river bank"]
    assert summary.skipped_count == 0


def test_record_without_text_or_id_is_skipped_and_counted(tmp_path):
    path = _write(
        tmp_path / "docs.jsonl",
        {"_id": "1", "text": "x"},
        {"_id": "2"},
        {"text": "y"},
        {"_id": None, "text": "z"},
        {"_id": True, "text": "z"},
    )
    documents, summary = _read(path)
    assert len(documents) == 1
    assert {skipped.reason: skipped.count for skipped in summary.skipped} == {
        "record without text": 1,
        "record without an id": 3,
    }


def test_fields_are_guessed_and_announced(tmp_path):
    path = _write(tmp_path / "docs.jsonl", {"docno": 7, "Headline": "H", "Body": "B", "year": 1999})
    documents, summary = _read(path)
    assert (documents[0].doc_id, documents[0].title, documents[0].text) == ("7", "H", "B")
    assert documents[0].metadata == {"year": 1999}
    assert "id = docno, title = Headline, text = Body (guessed" in summary.notes[0]


def test_longest_field_is_the_text_when_no_name_tells(tmp_path):
    path = _write(tmp_path / "docs.jsonl", {"k": "a1", "v": "a sentence that is long enough to be text"})
    documents, summary = _read(path)
    assert documents[0].text.startswith("a sentence")
    assert documents[0].doc_id == "docs.jsonl:1"
    assert "text = v" in summary.notes[0]


def test_fields_can_be_named(tmp_path):
    path = _write(tmp_path / "docs.jsonl", {"id": "1", "key": "k", "a": "A", "b": "B", "c": "C", "d": 1})
    options = ReadOptions(id_field="key", title_field="c", text_fields=("a", "b"), metadata_fields=("d",))
    documents, summary = _read(path, options)
    assert (documents[0].doc_id, documents[0].title, documents[0].text) == ("k", "C", "A\n\nB")
    assert documents[0].metadata == {"d": 1}
    assert summary.notes == ()


def test_a_field_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    path = _write(tmp_path / "docs.jsonl", {"id": "1", "body": "b"})
    with pytest.raises(UnreadableFileError, match="no field 'txt' among 'id', 'body'"):
        _read(path, ReadOptions(text_fields=("txt",)))
    path = _write(tmp_path / "numbers.jsonl", {"x": 1, "y": 2})
    with pytest.raises(UnreadableFileError, match="no field of 'x', 'y' holds text"):
        _read(path)


def test_nested_metadata_is_json_and_beir_metadata_is_taken_apart(tmp_path):
    path = _write(
        tmp_path / "docs.jsonl",
        {"_id": "1", "text": "x", "metadata": {"url": "u", "n": 2}, "tags": ["a", "b"]},
    )
    documents, _ = _read(path)
    assert documents[0].metadata == {"url": "u", "n": 2, "tags": '["a", "b"]'}


def test_what_json_does_not_know_becomes_null(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"_id": "1", "text": "x", "a": NaN, "b": Infinity, "c": 1e999}\n')
    documents, _ = _read(path)
    assert documents[0].metadata == {"a": None, "b": None, "c": None}


def test_lone_surrogates_are_replaced_and_pairs_joined(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text(r'{"_id": "1", "text": "half \ud83e, whole \ud83e\udd1d", "k\udc00": "\udc00"}' + "\n")
    documents, _ = _read(path)
    assert documents[0].text == "half \ufffd, whole 🤝"
    assert documents[0].metadata == {"k\ufffd": "\ufffd"}
    documents[0].text.encode()


def test_lines_that_are_no_utf8_are_read_as_cp1252_and_announced(tmp_path):
    path = tmp_path / "docs.jsonl"
    good = json.dumps({"_id": "1", "text": "Größe"}, ensure_ascii=False).encode()
    bad = '{"_id": "2", "text": "“naïve” – café"}'.encode("cp1252")
    path.write_bytes(good + b"\r\n" + bad + b"\r\n")
    documents, summary = _read(path)
    assert [document.text for document in documents] == ["Größe", "“naïve” – café"]
    assert f"{path}:2 is not UTF-8" in summary.notes[0]


def test_the_encoding_option_decides(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_bytes('{"_id": "1", "text": "Привет"}\n'.encode("koi8-r"))
    documents, summary = _read(path, ReadOptions(encoding="koi8-r"))
    assert documents[0].text == "Привет"
    assert summary.notes == ()
    with pytest.raises(UnreadableFileError, match="not utf-8"):
        _read(path, ReadOptions(encoding="utf-8"))
    with pytest.raises(CorpusError, match="unknown encoding 'klingon'"):
        _read(path, ReadOptions(encoding="klingon"))
    with pytest.raises(CorpusError, match="turns bytes into bytes"):
        _read(path, ReadOptions(encoding="zlib"))


def test_a_50_mb_line_is_read(tmp_path):
    path = tmp_path / "docs.jsonl"
    text = "river bank " * (50_000_000 // 11)
    path.write_text(json.dumps({"_id": "1", "text": text}) + "\n" + json.dumps({"_id": "2", "text": "x"}))
    documents, _ = _read(path)
    assert [len(document.text) for document in documents] == [len(text), 1]


def test_a_line_over_the_limit_is_skipped_and_the_next_one_read(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text('{"_id": "1", "text": "' + "x" * 5000 + '"}\n{"_id": "2", "text": "y"}\n')
    options = ReadOptions(limits=Limits(record_bytes=1000))
    for encoding in (None, "utf-8"):
        documents, summary = _read(path, replace(options, encoding=encoding))
        assert [document.doc_id for document in documents] == ["2"]
        assert summary.skipped[0].examples == (f"{path}:1",)


def test_json_of_one_object_a_line_is_read_under_the_name_json(tmp_path):
    path = _write(tmp_path / "docs.json", {"_id": "1", "text": "x"}, {"_id": "2", "text": "y"})
    documents, _ = _read(path)
    assert [document.doc_id for document in documents] == ["1", "2"]


def test_json_that_maps_ids_to_records_is_read(tmp_path):
    path = tmp_path / "docs.json"
    path.write_text('{"a": {"text": "x"}, "b": {"text": "y"}}')
    documents, _ = _read(path)
    assert [(document.doc_id, document.text) for document in documents] == [("a", "x"), ("b", "y")]


@pytest.mark.parametrize("content", ["", "{", "[1, 2", "5", '"text"', "null", "[" * 100_000, "1" * 10_000, "nonsense"])
def test_json_that_is_none_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "docs.json"
    path.write_text(content)
    with pytest.raises(UnreadableFileError, match=r"docs\.json") as caught:
        _read(path)
    assert "\n" not in str(caught.value)


def test_json_larger_than_the_limit_is_refused(tmp_path):
    path = tmp_path / "docs.json"
    path.write_text(json.dumps([{"_id": "1", "text": "x" * 1000}]))
    with pytest.raises(UnreadableFileError, match="larger than 500 bytes"):
        _read(path, ReadOptions(limits=Limits(json_bytes=500)))


def test_gzip_that_grows_out_of_proportion_is_stopped(tmp_path):
    path = tmp_path / "docs.jsonl.gz"
    line = json.dumps({"_id": "1", "text": "a" * 1000}) + "\n"
    path.write_bytes(gzip.compress(line.encode() * 4_000))
    limits = Limits(inflated_bytes=1 << 20)
    with pytest.raises(UnreadableFileError, match="more than 200 to 1; unpack it yourself"):
        _read(path, ReadOptions(limits=limits, duplicates=Duplicates.FIRST))
    documents, _ = _read(path, ReadOptions(duplicates=Duplicates.FIRST))
    assert len(documents) == 1


def test_gzip_bomb_takes_little_memory(tmp_path):
    path = tmp_path / "docs.jsonl.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(100):
            file.write(b" " * (1 << 20))
    tracemalloc.start()
    with pytest.raises(UnreadableFileError):
        _read(path, ReadOptions(limits=Limits(record_bytes=1 << 20)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


@pytest.mark.parametrize("damage", [lambda data: data[:40], lambda data: b"no gzip", lambda data: data[:-8] + b"x" * 8])
def test_damaged_gzip_is_named(tmp_path, damage):
    path = tmp_path / "docs.jsonl.gz"
    path.write_bytes(damage(gzip.compress(b'{"_id": "1", "text": "x"}\n' * 200)))
    with pytest.raises(UnreadableFileError, match=r"docs\.jsonl\.gz: damaged gzip"):
        _read(path, ReadOptions(duplicates=Duplicates.FIRST))


def test_memory_stays_flat_over_a_stream(tmp_path):
    peaks = []
    for count in (4_000, 12_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w") as file:
            file.writelines(f'{{"_id": "{number}", "text": "{"x" * 200}"}}\n' for number in range(count))
        tracemalloc.start()
        assert sum(1 for _ in open_collection(path).documents()) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Three times the documents cost 8 to 24 bytes more for each of the 8,000.
    assert peaks[1] - peaks[0] < 24 * 8_000 + 100_000


def test_parquet_values_become_plain(tmp_path):
    table = pa.table(
        {
            "id": pa.array([1, 2]),
            "text": pa.array(["a", None]).dictionary_encode(),
            "day": pa.array([dt.date(2024, 1, 2), None]),
            "score": [1.5, float("nan")],
            "tags": [["x"], []],
        }
    )
    path = tmp_path / "docs.parquet"
    pq.write_table(table, path)
    documents, _ = _read(path)
    assert [document.doc_id for document in documents] == ["1", "2"]
    assert [document.text for document in documents] == ["a", ""]
    assert documents[0].metadata == {"day": "2024-01-02", "score": 1.5, "tags": '["x"]'}
    assert documents[1].metadata == {"day": None, "score": None, "tags": "[]"}


def test_parquet_reads_only_the_columns_that_are_kept(tmp_path):
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"id": ["1"], "text": ["a"], "n": [1], "big": ["b"]}), path)
    options = ReadOptions(id_field="id", text_fields=("text",), metadata_fields=("n",))
    documents, _ = _read(path, options)
    assert documents[0].metadata == {"n": 1}


def test_damaged_parquet_is_named(tmp_path):
    path = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"id": ["1"], "text": ["a"]}), path)
    whole = path.read_bytes()
    for damaged in (b"", b"PAR1", whole[:-20], whole[:20] + b"\xff" * 60 + whole[80:]):
        path.write_bytes(damaged)
        with pytest.raises(UnreadableFileError, match=r"docs\.parquet"):
            _read(path)


def test_parquet_that_grows_out_of_proportion_is_refused(tmp_path):
    path = tmp_path / "docs.parquet"
    text = ["a" * 100_000] * 50
    pq.write_table(pa.table({"id": range(50), "text": text}), path, compression="zstd", use_dictionary=False)
    with pytest.raises(UnreadableFileError, match=r"grows from .* more than 200 to 1"):
        _read(path, ReadOptions(limits=Limits(inflated_bytes=1 << 20)))


def test_parquet_text_that_is_no_utf8_is_repaired(tmp_path):
    path = tmp_path / "docs.parquet"
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\4\0\0\0"), pa.py_buffer(b"ab\xffc")])
    pq.write_table(pa.table({"id": ["1"], "text": broken}), path)
    documents, _ = _read(path)
    assert documents[0].text == "ab\ufffdc"
