"""One suite over every reader: the same content gives the same documents, whatever it is written in."""

import csv
import gzip
import html
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpora.catalog import open_collection
from corpora.document import Document
from corpora.read_log import ReadLog

CONTENT = [
    ("d1", "River banks", "The bank of the river was steep.\nReeds grew on it."),
    ("d2", "Savings", "She took her savings to the bank, and asked: 'How much?'"),
    ("d3", "Naïve café", "Größe, crème brûlée and 5 km at 20 °C."),
]
RECORDS = [{"_id": doc_id, "title": title, "text": text} for doc_id, title, text in CONTENT]


def _jsonl(folder: Path) -> Path:
    path = folder / "docs.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS), encoding="utf-8")
    return path


def _jsonl_with_mark_and_crlf(folder: Path) -> Path:
    path = folder / "docs.jsonl"
    lines = [json.dumps(record, ensure_ascii=False) for record in RECORDS]
    path.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    return path


def _jsonl_utf16(folder: Path) -> Path:
    path = folder / "docs.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in RECORDS), encoding="utf-16")
    return path


def _jsonl_gz(folder: Path) -> Path:
    path = folder / "docs.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(record) for record in RECORDS).encode()))
    return path


def _json(folder: Path) -> Path:
    path = folder / "docs.json"
    path.write_text(json.dumps(RECORDS), encoding="utf-8")
    return path


def _json_inside_an_object(folder: Path) -> Path:
    path = folder / "docs.json"
    path.write_text(json.dumps({"count": 3, "documents": RECORDS}), encoding="utf-8")
    return path


def _table(folder: Path, name: str, **dialect: str) -> Path:
    path = folder / name
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, ["_id", "title", "text"], **dialect)
    writer.writeheader()
    writer.writerows(RECORDS)
    path.write_text(buffer.getvalue(), encoding="utf-8", newline="")
    return path


def _csv(folder: Path) -> Path:
    return _table(folder, "docs.csv")


def _csv_with_semicolons(folder: Path) -> Path:
    return _table(folder, "docs.csv", delimiter=";")


def _csv_cp1252(folder: Path) -> Path:
    path = _csv(folder)
    path.write_bytes(path.read_text(encoding="utf-8").encode("cp1252"))
    return path


def _tsv(folder: Path) -> Path:
    return _table(folder, "docs.tsv", delimiter="\t")


def _parquet(folder: Path) -> Path:
    path = folder / "docs.parquet"
    pq.write_table(pa.Table.from_pylist(RECORDS), path)
    return path


def _beir(folder: Path) -> Path:
    (folder / "beir").mkdir()
    _jsonl(folder).rename(folder / "beir" / "corpus.jsonl")
    return folder / "beir"


def _trec(folder: Path) -> Path:
    path = folder / "docs.trec"
    path.write_text(
        "".join(
            f"<DOC>\n<DOCNO> {doc_id} </DOCNO>\n<TITLE>{html.escape(title)}</TITLE>\n"
            f"<TEXT>\n{html.escape(text)}\n</TEXT>\n</DOC>\n"
            for doc_id, title, text in CONTENT
        ),
        encoding="utf-8",
    )
    return path


def _files(folder: Path, suffix: str, form: Callable[[str, str], str]) -> Path:
    (folder / "files").mkdir()
    for doc_id, title, text in CONTENT:
        (folder / "files" / f"{doc_id}{suffix}").write_text(form(title, text), encoding="utf-8")
    return folder / "files"


def _markdown(folder: Path) -> Path:
    return _files(folder, ".md", lambda title, text: f"# {title}\n\n{text}\n")


def _rest(folder: Path) -> Path:
    return _files(folder, ".rst", lambda title, text: f"{title}\n{'=' * len(title)}\n\n{text}\n")


def _html(folder: Path) -> Path:
    return _files(
        folder,
        ".html",
        lambda title, text: (
            f"<html><head><title>{html.escape(title)}</title></head><body>"
            + "".join(f"<p>{html.escape(line)}</p>" for line in text.split("\n"))
            + "</body></html>"
        ),
    )


FORMATS = {
    function.__name__.strip("_"): function
    for function in (
        _jsonl, _jsonl_with_mark_and_crlf, _jsonl_utf16, _jsonl_gz, _json, _json_inside_an_object, _csv,
        _csv_with_semicolons, _csv_cp1252, _tsv, _parquet, _beir, _trec, _markdown, _rest, _html,
    )
}  # fmt: skip


def _content(documents: list[Document]) -> list[tuple[str, str, str]]:
    suffixes = (".md", ".rst", ".html", ".pdf")
    ids = [document.doc_id for document in documents]
    stems = [next((i.removesuffix(s) for s in suffixes if i.endswith(s)), i) for i in ids]
    return [(stem, document.title, document.text) for stem, document in zip(stems, documents, strict=True)]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_documents(form, tmp_path):
    collection = open_collection(FORMATS[form](tmp_path))
    log = ReadLog(strict=True)
    assert _content(list(collection.documents(log))) == CONTENT
    assert log.documents == 3


@pytest.mark.parametrize("form", FORMATS)
def test_documents_can_be_read_again_and_say_where_they_stand(form, tmp_path):
    collection = open_collection(FORMATS[form](tmp_path))
    first, second = list(collection.documents()), list(collection.documents())
    assert first == second
    for document in first:
        path, _, line = document.source.rpartition(":")
        assert Path(document.source).is_file() or (Path(path).is_file() and int(line) >= 1)


def test_pdf_files_give_the_same_documents(tmp_path, make_pdf):
    for doc_id, title, text in CONTENT:
        make_pdf(tmp_path / f"{doc_id}.pdf", title, text)
    assert _content(list(open_collection(tmp_path).documents(ReadLog(strict=True)))) == CONTENT


def test_text_files_give_the_same_texts_without_titles(tmp_path):
    for doc_id, _, text in CONTENT:
        (tmp_path / f"{doc_id}.txt").write_text(text, encoding="utf-8")
    documents = list(open_collection(tmp_path).documents())
    assert [(document.doc_id, document.title, document.text) for document in documents] == [
        (f"{doc_id}.txt", "", text) for doc_id, _, text in CONTENT
    ]


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "csv", "tsv"])
def test_metadata_comes_along(form, tmp_path):
    record = {"_id": "1", "text": "a b c", "topic": "rivers", "year": "1999"}
    path = tmp_path / f"docs.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist([record]), path)
    elif form in {"csv", "tsv"}:
        separator = "," if form == "csv" else "\t"
        path.write_text(separator.join(record) + "\n" + separator.join(record.values()) + "\n")
    else:
        path.write_text(json.dumps(record))
    (document,) = open_collection(path).documents()
    assert document.metadata == {"topic": "rivers", "year": "1999"}
