"""Folders of files: which are read, in which order, and which are not and why."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from corpora.document import Document
from corpora.encodings import clean
from corpora.errors import UnreadableFileError
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.confinement import CONFINEMENT
from corpora.readers.formats import RECORDS, TEXTS, format_suffix
from corpora.readers.plaintext import read_text
from corpora.readers.reader import Reader


def read_folder(folder: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream the documents of all files below a folder, in the order of their paths.

    A text file is one document; its id is its path below the folder, with slashes. Files of records are
    read where a glob includes them, or where the folder holds no text files: then they are its shards.
    A file that cannot be read is skipped in the log.
    """
    readers: Mapping[str, Reader] = {**TEXTS, **RECORDS}
    if not options.include and _holds_texts(folder, options):
        readers = TEXTS
    try:
        for path in walk(folder, options, log):
            reader = readers.get(format_suffix(path))
            if reader is None and options.include:
                reader = read_text
            if reader is None:
                known = format_suffix(path) in RECORDS
                reason = "records among texts, read only if --include names them" if known else "other file type"
                log.pass_over(reason, str(path))
                continue
            log.files += 1
            yield from _read_file(path, folder, reader, options, log)
    finally:
        CONFINEMENT.close()


def _holds_texts(folder: Path, options: ReadOptions) -> bool:
    return any(format_suffix(path) in TEXTS for path in walk(folder, options, ReadLog()))


def _read_file(path: Path, folder: Path, reader: Reader, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    below = clean(os.fsencode(path.relative_to(folder).as_posix()).decode(errors="replace"))
    try:
        for document in reader(path, options, log):
            line = document.source.removeprefix(f"{path}:") if document.source != str(path) else ""
            if not line and document.doc_id == path.name:
                yield replace(document, doc_id=below)
            elif line and document.doc_id == f"{path.name}:{line}":
                yield replace(document, doc_id=f"{below}:{line}")
            else:
                yield document
    except UnreadableFileError as error:
        if log.strict:
            raise
        reason, _, detail = str(error).removeprefix(f"{path}").removeprefix(": ").partition(" (")
        log.skip(reason.partition("; ")[0], str(path), detail.partition(")")[0])
    except OSError as error:
        log.skip("cannot be opened", str(path), error.strerror or type(error).__name__)


def walk(folder: Path, options: ReadOptions, log: ReadLog) -> Iterator[Path]:
    """Yield the files below a folder in the order of their paths, each once.

    Files and folders whose names begin with a dot are left out unless asked for. Links are followed, but
    never into a folder that is walked anyway or was walked before, so that no loop arises.
    """
    walked = {os.path.realpath(folder)}
    waiting = [os.fspath(folder)]
    while waiting:
        place = waiting.pop()
        if not os.path.isdir(place):  # noqa: PTH112 - strings: a folder may hold millions
            yield Path(place)
            continue
        try:
            with os.scandir(place) as entries:
                found = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError as error:
            log.skip("folder that cannot be opened", place, error.strerror or "")
            continue
        waiting.extend(entry.path for entry in found if _is_wanted(entry, folder, options, walked, log))


def _is_wanted(entry: os.DirEntry[str], folder: Path, options: ReadOptions, walked: set[str], log: ReadLog) -> bool:
    below = os.path.relpath(entry.path, folder).replace(os.sep, "/")
    hidden = entry.name.startswith(".") and not options.hidden
    if hidden or any(_matches(below, pattern) for pattern in options.exclude):
        return False
    try:
        is_folder, is_file = entry.is_dir(), entry.is_file()
        is_new = not entry.is_symlink() or _is_new_target(entry.path, walked)
    except OSError as error:
        log.skip("cannot be opened", entry.path, error.strerror or "")
        return False
    if not is_new:
        log.pass_over("link to what is read anyway, or to nothing", entry.path)
    elif not (is_folder or is_file):
        log.pass_over("neither file nor folder", entry.path)
    else:
        included = not options.include or any(_matches(below, pattern) for pattern in options.include)
        return is_folder or included
    return False


def _is_new_target(path: str, walked: set[str]) -> bool:
    target = os.path.realpath(path)
    if not os.path.exists(target):  # noqa: PTH110 - strings: a folder may hold millions
        return False
    if any(target == place or target.startswith(place.rstrip(os.sep) + os.sep) for place in walked):
        return False
    walked.add(target)
    return True


def _matches(below: str, pattern: str) -> bool:
    pattern = pattern.removeprefix("./").rstrip("/")
    return fnmatchcase(below, pattern) or fnmatchcase(below.rpartition("/")[2], pattern)
