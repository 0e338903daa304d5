"""Collections of the ir_datasets catalogue: an extra, fetched over the network by that library."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any

from corpora.collection import Collection
from corpora.document import Document
from corpora.duplicates import unique
from corpora.errors import CollectionNotFoundError, UnreadableFileError
from corpora.judgements import Qrels, Query
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.fields import SAMPLE_RECORDS, choose_fields, to_document

PREFIX = "irds:"

#: The library's own settings: without a network it must fail at once, not after minutes of trying.
_AT_ONCE = {"IR_DATASETS_DL_TRIES": "1", "IR_DATASETS_DL_TIMEOUT": "10"}


def load_dataset(name: str) -> Any:
    """Return the ir_datasets object of a name.

    Raises
    ------
    CollectionNotFoundError
        If the library is not installed, or knows no such name.
    """
    for variable, value in _AT_ONCE.items():
        os.environ.setdefault(variable, value)
    try:
        import ir_datasets
    except ImportError:
        message = f"{PREFIX}{name} needs ir_datasets, which is not installed; pip install 'twindex[datasets]'"
        raise CollectionNotFoundError(message) from None
    try:
        return ir_datasets.load(name)
    except KeyError:
        message = f"ir_datasets knows no collection {name!r}; its names stand at ir-datasets.com"
        raise CollectionNotFoundError(message) from None


def open_ir_dataset(
    name: str, options: ReadOptions, log: ReadLog, *, load: Callable[[str], Any] = load_dataset
) -> Collection:
    """Open an ir_datasets collection by its id, such as `beir/scifact/test`.

    Raises
    ------
    CollectionNotFoundError
        If there is no such collection, or no network to fetch it.
    """
    dataset = load(name)
    log.announce(f"{PREFIX}{name} is fetched over the network, unless ir_datasets has it already")
    split = name.rpartition("/")[2] if "/" in name else "test"
    queries = {query.query_id: query for query in _fetched(name, partial(_queries, dataset))}
    qrels: dict[str, dict[str, int]] = {}
    if hasattr(dataset, "qrels_iter"):
        for judged in _fetched(name, dataset.qrels_iter):
            qrels.setdefault(str(judged.query_id), {})[str(judged.doc_id)] = int(judged.relevance)
    return Collection(
        name=name.replace("/", "-"),
        source=f"{PREFIX}{name}",
        read=partial(_documents, name, dataset, options),
        queries=queries,
        qrels=_split(split, qrels),
    )


def _split(split: str, qrels: Qrels) -> Mapping[str, Qrels]:
    return {split if split in {"train", "dev", "test"} else "test": qrels} if qrels else {}


def _queries(dataset: Any) -> Iterator[Query]:
    if not hasattr(dataset, "queries_iter"):
        return
    for found in dataset.queries_iter():
        record = found._asdict()
        text = next((record[name] for name in ("text", "query", "title") if record.get(name)), "")
        yield Query(str(record["query_id"]), str(text))


def _documents(  # ir_datasets is an extra without types
    name: str,
    dataset: Any,
    options: ReadOptions,
    log: ReadLog,
) -> Iterator[Document]:
    def read(log: ReadLog) -> Iterator[Document]:
        where = f"{PREFIX}{name}"
        records = (found._asdict() for found in _fetched(name, dataset.docs_iter))
        first = list(islice(records, SAMPLE_RECORDS))
        if not first:
            return
        fields = choose_fields(first, options, where, log)
        for number, record in enumerate(chain(first, records), 1):
            document = to_document(record, fields, f"{where}:{number}", log)
            if document is not None:
                yield document

    return unique(read, options.duplicates, log)


def _fetched(name: str, iterate: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Yield what the library yields; whatever it raises while fetching becomes one line."""
    try:
        yield from iterate()
    except (UnreadableFileError, CollectionNotFoundError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:160]
        message = f"{PREFIX}{name} could not be fetched ({type(error).__name__}: {reason}); it needs the network, once"
        raise CollectionNotFoundError(message) from error
