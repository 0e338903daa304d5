"""A path or a name to a collection: the one place that knows every format."""

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from corpora.builtin.lee import open_lee
from corpora.builtin.senses import open_senses
from corpora.collection import Collection
from corpora.document import Document
from corpora.duplicates import unique
from corpora.errors import CollectionNotFoundError, CorpusError, UnreadableFileError
from corpora.limits import MEBIBYTE
from corpora.options import DEFAULT_OPTIONS, ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.beir import is_beir, open_beir
from corpora.readers.confinement import CONFINEMENT
from corpora.readers.folder import read_folder
from corpora.readers.formats import RECORDS, TEXTS, reader_for
from corpora.readers.ir_datasets import PREFIX, open_ir_dataset
from corpora.readers.reader import Reader
from corpora.readers.trec import is_trec, open_trec


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A collection that comes with the program."""

    description: str
    open: Callable[[], Collection]


#: Name -> built-in collection.
BUILTIN: Mapping[str, BuiltIn] = {
    "lee": BuiltIn("50 news texts, every pair judged by people; each text is also a query", open_lee),
    "senses": BuiltIn("ambiguous words in short passages, with queries whose context decides", open_senses),
}


def open_collection(
    path_or_name: str | Path,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    log: ReadLog | None = None,
    stdin: BinaryIO | None = None,
) -> Collection:
    """Open a collection; a path that exists wins over a name.

    Parameters
    ----------
    path_or_name
        A BEIR folder, a folder of TREC files, a folder of other files, a file of records, a text file, a
        built-in name, `irds:ID`, or `-` for JSON objects a line from standard input.
    options
        How to read it.
    log
        Its `strict` makes bad queries an error; announcements about the opening go here.
    stdin
        What `-` reads; the process's standard input unless given.

    Raises
    ------
    CollectionNotFoundError
        If there is no such path and no such name, or the path is neither file nor folder.
    CorpusError
        If queries or judgements cannot be read.
    """
    log = ReadLog() if log is None else log
    name = str(path_or_name)
    if name == "-":
        return replace(_open_file(_spooled(stdin or sys.stdin.buffer), options), name="stdin", source="-")
    if name.startswith(PREFIX):
        return open_ir_dataset(name.removeprefix(PREFIX), options, log)
    path = Path(path_or_name)
    try:
        is_folder, is_file, exists = path.is_dir(), path.is_file(), path.exists()
    except (OSError, ValueError):  # a name too long for the system, or with a zero byte
        is_folder = is_file = exists = False
    if not exists:
        if name in BUILTIN:
            return BUILTIN[name].open()
        raise CollectionNotFoundError(_not_found(name))
    if not (is_folder or is_file):
        message = f"{path} is neither a file nor a folder; give one of these"
        raise CollectionNotFoundError(message)
    try:
        collection = _open_folder(path, options, log) if is_folder else _open_file(path, options)
    except OSError as error:
        if isinstance(error, CorpusError):
            raise
        reason = error.strerror or type(error).__name__
        message = f"{error.filename or path} cannot be read ({reason}); see to its permissions"
        raise UnreadableFileError(message) from None
    if name in BUILTIN:
        kind = "folder" if is_folder else "file"
        note = f"{name} is the {kind} of this name here, not the built-in collection"
        return replace(collection, notes=(*collection.notes, note))
    return collection


def _open_folder(folder: Path, options: ReadOptions, log: ReadLog) -> Collection:
    if is_beir(folder):
        return open_beir(folder, options, log)
    if is_trec(folder, options):
        return open_trec(folder, options, log)
    if not any(folder.iterdir()):
        message = f"{folder} is empty; expected text files, or corpus.jsonl for a BEIR folder"
        raise CollectionNotFoundError(message)
    return Collection(folder.resolve().name, str(folder), partial(_read_folder, folder, options))


def _open_file(path: Path, options: ReadOptions) -> Collection:
    reader = reader_for(path, options.limits)
    if reader is None:
        message = (
            f"{path}: cannot tell its format; expected a name that ends in {' '.join((*RECORDS, *TEXTS))} "
            "(or one of these and .gz)"
        )
        raise CollectionNotFoundError(message)
    name = path.name.removesuffix(".gz").removesuffix(".GZ")
    return Collection(Path(name).stem, str(path), partial(_read_file, path, reader, options))


def _read_file(path: Path, reader: Reader, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    log.files = 1
    try:
        yield from unique(partial(reader, path, options), options.duplicates, log)
    finally:
        CONFINEMENT.close()


def _read_folder(folder: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    return unique(partial(read_folder, folder, options), options.duplicates, log)


def _spooled(stream: BinaryIO) -> Path:
    """Copy a stream to a file, so that it can be read more than once; the file goes when the program ends."""
    folder = Path(tempfile.mkdtemp(prefix="twindex-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "stdin.jsonl"
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, MEBIBYTE)
    return path


def _not_found(name: str) -> str:
    built_in = " or ".join(BUILTIN)
    return (
        f"no file or folder {name[:200]!r}, and no built-in collection of this name ({built_in}); expected "
        f"one of these, or {PREFIX}ID for a collection of ir_datasets (needs the network)"
    )
