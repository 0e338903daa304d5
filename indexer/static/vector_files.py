"""Word vectors in text form, read line by line, so that what is wrong can be said with its line.

GloVe writes `word n n n`, word2vec and fastText (`.vec`) put a line `V d` first; any may be gzipped. A
word may hold spaces (GloVe 840B has `. . .`), so rows are read from the right.
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from corpora.progress import Progress
from indexer.errors import ModelError
from indexer.vectors import Vectors

_HEADER = re.compile(rb"\s*(\d+)[ \t]+(\d+)\s*$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|[+-]?(nan|inf)$", re.IGNORECASE)
_LOOK_AHEAD = 10
_ROWS = 20_000  # rows turned into one array at a time
_LONGEST_LINE = 1 << 20


class TextTable(NamedTuple):
    """Words in file order, their (V, d) float32 vectors, and how many words were no valid UTF-8."""

    words: list[str]
    matrix: Vectors
    broken_words: int


def header(first_line: bytes) -> tuple[int, int] | None:
    """Return (V, d) if the line is a word2vec header."""
    found = _HEADER.match(first_line)
    return (int(found[1]), int(found[2])) if found else None


def read_text_table(path: Path, *, limit: int | None, progress: Progress) -> TextTable:
    """Read a text file of word vectors, at most `limit` rows.

    Raises
    ------
    ModelError
        If the file is empty, no text of word vectors, cut, or a row does not fit; the line is named.
    """
    progress.start(f"reading {path.name}", limit, "words")
    try:
        return _read(path, limit, progress)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        message = f"{path} is no whole gzip file ({error}); fetch it again"
        raise ModelError(message) from error
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}"
        raise ModelError(message) from error
    finally:
        progress.finish()


def _read(path: Path, limit: int | None, progress: Progress) -> TextTable:
    with path.open("rb") as raw:
        gzipped = raw.peek(2)[:2] == b"\x1f\x8b"
        with gzip.open(raw, "rb") if gzipped else raw as file:
            numbered = _lines(file, path)
            start = list(islice(numbered, _LOOK_AHEAD))
            promised = header(start[0][1]) if start else None
            rows = chain(start[1:] if promised else start, numbered)
            dimension = promised[1] if promised else _dimension(path, start)
            if not dimension:
                message = f"{path}: line 1 promises vectors of 0 numbers; expected 1 or more"
                raise ModelError(message)
            return _parse(path, rows, dimension, (limit, promised[0] if promised else None), progress)


def _lines(file: io.BufferedIOBase | gzip.GzipFile, path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
        if len(line) == _LONGEST_LINE:
            message = f"{path}: line {number} is longer than {_LONGEST_LINE:,} bytes; this is no word vector file"
            raise ModelError(message)
        if line.strip():
            yield number, line


def _dimension(path: Path, start: list[tuple[int, bytes]]) -> int:
    """Guess d from the first lines of a file without header: the commonest count of numbers at their ends."""
    if not start:
        message = f"{path} is empty; expected lines of a word and its numbers"
        raise ModelError(message)
    counts: Counter[int] = Counter()
    for _, line in start:
        fields = line.decode("utf-8", "replace").split()[1:]
        numbers = 0
        while numbers < len(fields) and _NUMBER.match(fields[-1 - numbers]):
            numbers += 1
        counts[numbers] += 1
    dimension, _ = max(counts.items(), key=lambda pair: (pair[1], pair[0]))
    if not dimension:
        first = start[0][1].decode("utf-8", "replace").strip()
        what = "this is an HTML page" if first.lower().startswith(("<!doctype", "<html", "<")) else "no numbers there"
        message = f"{path}: line {start[0][0]} is {first[:60]!r} ({what}); expected a word and its numbers"
        raise ModelError(message)
    return dimension


def _parse(
    path: Path,
    rows: Iterator[tuple[int, bytes]],
    dimension: int,
    most: tuple[int | None, int | None],
    progress: Progress,
) -> TextTable:
    limit, promised = most
    words: list[str] = []
    parts: list[Vectors] = []
    fields: list[list[str]] = []
    numbers: list[int] = []
    broken = 0
    for number, line in rows:
        if limit is not None and len(words) >= limit:
            break
        if promised is not None and len(words) >= promised:
            message = f"{path}: line {number} is one more row than the {promised} that line 1 promises"
            raise ModelError(message)
        text = line.decode("utf-8", "replace").strip("\r\n\t ")
        row = text.rsplit(None, dimension)
        if len(row) <= dimension or not _NUMBER.match(row[1]):
            found = len(text.split()) - 1
            message = f"{path}: line {number} has {found} fields after the word, expected {dimension} numbers"
            raise ModelError(message)
        broken += "\ufffd" in row[0]
        words.append(row[0])
        fields.append(row[1:])
        numbers.append(number)
        if len(fields) >= _ROWS:
            parts.append(_array(path, fields, numbers))
            progress.advance(len(fields))
            fields, numbers = [], []
    if fields:
        parts.append(_array(path, fields, numbers))
        progress.advance(len(fields))
    expected = min(limit or promised or 0, promised or 0)
    if len(words) < max(expected, 1):
        message = f"{path} ends after {len(words)} rows, line 1 promises {promised}; it is cut, fetch it again"
        raise ModelError(message)
    return TextTable(words, np.concatenate(parts), broken)


def _array(path: Path, fields: list[list[str]], numbers: list[int]) -> Vectors:
    """Turn rows of strings into float32; when that fails, find the line that is to blame."""
    try:
        with np.errstate(over="ignore"):
            array: Vectors = np.array(fields, dtype=np.float64).astype(np.float32)
    except ValueError as error:
        for row, number in zip(fields, numbers, strict=True):
            for field in row:
                if not _NUMBER.match(field):
                    message = f"{path}: line {number} holds {field[:40]!r}, expected a number"
                    raise ModelError(message) from error
        raise
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        message = f"{path}: line {numbers[int(np.argmin(finite))]} holds a number that is not finite"
        raise ModelError(message)
    return array
