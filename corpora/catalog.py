"""A path or a name to a collection: the one place that knows every format."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from corpora.builtin.lee import open_lee
from corpora.builtin.senses import open_senses
from corpora.collection import Collection
from corpora.document import Document
from corpora.duplicates import unique
from corpora.errors import CollectionNotFoundError
from corpora.options import DEFAULT_OPTIONS, ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.beir import is_beir, open_beir
from corpora.readers.plaintext import read_text
from corpora.readers.reader import Reader
from corpora.readers.records import read_json, read_jsonl


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A collection that comes with the program."""

    description: str
    open: Callable[[ReadLog | None], Collection]


#: Name -> built-in collection.
BUILTIN: Mapping[str, BuiltIn] = {
    "lee": BuiltIn("50 news texts, every pair judged by people; each text is also a query", open_lee),
    "senses": BuiltIn("ambiguous words in short passages, with queries whose context decides", open_senses),
}

#: File suffix -> reader.
READERS: Mapping[str, Reader] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json,
    ".txt": read_text,
    ".md": read_text,
}


def open_collection(
    path_or_name: str | Path, options: ReadOptions = DEFAULT_OPTIONS, *, log: ReadLog | None = None
) -> Collection:
    """Open a collection; a path that exists wins over a name.

    Raises
    ------
    CollectionNotFoundError
        If there is no such path and no such name.
    CorpusError
        If queries or judgements cannot be read.
    """
    log = ReadLog() if log is None else log
    path = Path(path_or_name)
    if path.is_dir():
        if is_beir(path):
            return open_beir(path, options, log)
        return Collection(path.resolve().name, str(path), partial(_read_folder, path, options))
    if path.exists():
        reader = READERS.get(path.suffix.lower(), read_text)
        return Collection(path.stem, str(path), partial(_read_file, path, reader, options))
    if str(path_or_name) in BUILTIN:
        return BUILTIN[str(path_or_name)].open(log)
    message = f"no collection {str(path_or_name)!r}: expected a folder, a file or one of {', '.join(BUILTIN)}"
    raise CollectionNotFoundError(message)


def _read_file(path: Path, reader: Reader, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    log.files = 1
    return unique(lambda log: reader(path, options, log), options.duplicates, log)


def _read_folder(folder: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in {".txt", ".md"}:
            log.files += 1
            yield from read_text(path, options, log)
