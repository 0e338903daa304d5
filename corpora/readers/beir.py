"""BEIR folders: `corpus.jsonl`, `queries.jsonl`, `qrels/<split>.tsv`."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from corpora.collection import Collection
from corpora.document import Document
from corpora.duplicates import unique
from corpora.errors import JudgementError
from corpora.judgements import Qrels, Query
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.fields import as_id, as_text, plain_value
from corpora.readers.qrels import read_qrels
from corpora.readers.records import jsonl_records, read_jsonl

_CORPUS_NAMES = ("corpus.jsonl", "corpus.jsonl.gz")
_QUERIES_NAMES = ("queries.jsonl", "queries.jsonl.gz")
_QRELS_SUFFIXES = (".tsv", ".txt", ".qrels", ".tsv.gz")


def is_beir(folder: Path) -> bool:
    """Return whether a folder holds a BEIR corpus."""
    return _first_file(folder, _CORPUS_NAMES) is not None


def open_beir(folder: Path, options: ReadOptions, log: ReadLog) -> Collection:
    """Open a BEIR folder with all its splits.

    Raises
    ------
    JudgementError
        If queries or judgements cannot be read.
    """
    corpus = _first_file(folder, _CORPUS_NAMES) or folder / _CORPUS_NAMES[0]
    queries_file = _first_file(folder, _QUERIES_NAMES)
    noticed = ReadLog(strict=log.strict)
    queries = read_queries(queries_file, options, noticed) if queries_file else {}
    qrels = _read_splits(folder, options, noticed)
    summary = noticed.summary()
    notes = tuple(line for line in summary.lines() if not line.startswith("read "))
    return Collection(
        name=folder.resolve().name,
        source=str(folder),
        read=partial(read_corpus, corpus, options),
        queries=queries,
        qrels=qrels,
        notes=notes,
    )


def read_corpus(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream a BEIR corpus file, its ids checked."""
    log.files = 1
    return unique(partial(read_jsonl, path, options), options.duplicates, log)


def read_queries(path: Path, options: ReadOptions, log: ReadLog) -> Mapping[str, Query]:
    """Read queries, one JSON object a line with `_id` and `text`.

    Raises
    ------
    JudgementError
        If two queries have one id.
    """
    queries: dict[str, Query] = {}
    lines: dict[str, int] = {}
    for number, record in jsonl_records(path, options, log):
        id_name = next((name for name in ("_id", "id", "query_id", "qid") if name in record), "_id")
        text_name = next((name for name in ("text", "query", "question", "title") if name in record), "text")
        query_id = as_id(record.get(id_name))
        if query_id is None or text_name not in record:
            log.skip("query without an id or a text", f"{path}:{number}")
            continue
        if query_id in queries:
            message = f"{path}: lines {lines[query_id]} and {number} hold queries with the same id {query_id!r}"
            raise JudgementError(message)
        metadata = {name: value for name, value in record.items() if name not in {id_name, text_name}}
        nested = metadata.pop("metadata", None)
        metadata.update(nested if isinstance(nested, dict) else {})
        lines[query_id] = number
        queries[query_id] = Query(
            query_id,
            as_text(record[text_name]),
            {str(name): plain_value(value) for name, value in metadata.items()},
        )
    return queries


def _read_splits(folder: Path, options: ReadOptions, log: ReadLog) -> Mapping[str, Qrels]:
    inside = folder / "qrels"
    files = sorted(inside.iterdir()) if inside.is_dir() else sorted(folder.glob("qrels*"))
    splits: dict[str, Qrels] = {}
    for path in files:
        suffix = next((suffix for suffix in _QRELS_SUFFIXES if path.name.endswith(suffix)), None)
        if suffix is None or not path.is_file() or path.name.startswith("."):
            continue
        split = path.name.removesuffix(suffix)
        split = split if inside.is_dir() else split.removeprefix("qrels").strip("._-") or "test"
        splits[split] = read_qrels(path, options, log)
    return splits


def _first_file(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)
