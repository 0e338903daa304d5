"""Tables in text: `.csv` and `.tsv`, the first row naming the columns."""

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from corpora.document import Document
from corpora.errors import UnreadableFileError
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.lines import read_lines
from corpora.readers.records import Record, documents

#: What may stand between the columns of a `.csv` file, likeliest first.
_DELIMITERS = ",;\t|"

#: A C long on every system.
_LARGEST_FIELD_LIMIT = 2**31 - 1

#: Lines that a quoted field of a `.tsv` file may span.
_TSV_FIELD_LINES = 10_000

#: A row and the number of its first line.
Row = tuple[int, list[str]]


def read_csv(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream the rows of a `.csv` file; the delimiter is the commonest in the header, announced if no comma.

    Raises
    ------
    UnreadableFileError
        If a quotation mark is never closed, which would swallow the rest of the file.
    """
    return documents(path, _records(path, _csv_rows(path, options, log), log), options, log)


def read_tsv(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream the rows of a `.tsv` file.

    Some writers quote fields, most do not, and unquoted texts begin with quotation marks: a field counts as
    quoted only if it is so from end to end.
    """
    return documents(path, _records(path, _tsv_rows(path, options, log), log), options, log)


def _records(path: Path, rows: Iterator[Row], log: ReadLog) -> Iterator[Record]:
    header = next(rows, None)
    if header is None:
        return
    names = _column_names(header[1])
    for number, row in rows:
        if not any(row):
            continue
        if len(row) > len(names):
            log.skip("more columns than the header", f"{path}:{number}", f"{len(row)} columns, header {len(names)}")
            continue
        yield number, dict(zip(names, row, strict=False))


def _column_names(header: list[str]) -> list[str]:
    """Return a distinct name for each column, whatever the header says."""
    names: dict[str, None] = {}
    for number, found in enumerate(header, 1):
        name = found.strip() or f"column {number}"
        while name in names:
            name = f"{name} ({number})"
        names[name] = None
    return list(names)


class _Feed:
    """Hands lines to the csv module and remembers those of the row that it is at."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self.row: list[str] = []
        self.first = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        if not self.row:
            self.first = number
        self.row.append(line)
        return line


def _csv_rows(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Row]:
    csv.field_size_limit(min(options.limits.record_bytes, _LARGEST_FIELD_LIMIT))
    lines = read_lines(path, options, log)
    delimiter = _delimiter(path, options, log)
    feed = _Feed(lines)
    rows = csv.reader(feed, delimiter=delimiter, strict=True)
    while True:
        feed.row.clear()
        try:
            row = next(rows)
            yield feed.first, row
        except StopIteration:
            return
        except csv.Error as error:
            tolerated = _tolerated(feed.row, delimiter, path, feed.first, str(error))
            if tolerated is None:
                log.skip("not CSV", f"{path}:{feed.first}", str(error)[:80])
            else:
                yield feed.first, tolerated


def _tolerated(lines: list[str], delimiter: str, path: Path, first: int, error: str) -> list[str] | None:
    """Return a row that only strict CSV refuses, such as `"a"b,c`; None if it is no row at all."""
    if "unexpected end of data" in error:
        message = (
            f"{path}:{first}: a quotation mark is opened and never closed, so that no row after it can be "
            "told; close or double it"
        )
        raise UnreadableFileError(message)
    if len(lines) != 1:
        return None
    try:
        return next(csv.reader([lines[0].rstrip("\r\n")], delimiter=delimiter), None)
    except csv.Error:
        return None


def _delimiter(path: Path, options: ReadOptions, log: ReadLog) -> str:
    header = next((line for _, line in read_lines(path, options, ReadLog())), "")
    unquoted = "".join(header.split('"')[::2])
    delimiter = max(_DELIMITERS, key=unquoted.count)
    if delimiter != ",":
        log.announce(f"{path}: columns are separated by {delimiter!r} (guessed from the header)")
    return delimiter


def _tsv_rows(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Row]:
    csv.field_size_limit(min(options.limits.record_bytes, _LARGEST_FIELD_LIMIT))
    columns = 0
    lines = read_lines(path, options, log)
    # Lines that were looked at for a field that goes on, and turned out to be rows of their own.
    waiting: deque[tuple[int, str]] = deque()
    while True:
        number, line = waiting.popleft() if waiting else next(lines, (0, ""))
        if not number:
            return
        row = _unquoted(line.rstrip("\r\n").split("\t"))
        if row is None:
            ahead = list(_lines_ahead(line, waiting, lines, options.limits.record_bytes))
            row = _row_over_lines([line, *(text for _, text in ahead)], columns)
            if row is None:
                row = line.rstrip("\r\n").split("\t")
                waiting.extendleft(reversed(ahead))
        columns = columns or len(row)
        yield number, row


def _lines_ahead(
    line: str, waiting: "deque[tuple[int, str]]", lines: Iterator[tuple[int, str]], most: int
) -> Iterator[tuple[int, str]]:
    """Yield the lines after one whose quotation marks are odd, up to where they are even."""
    marks, size = line.count('"'), len(line)
    for _ in range(_TSV_FIELD_LINES):
        if marks % 2 == 0 or size > most:
            return
        following = waiting.popleft() if waiting else next(lines, None)
        if following is None:
            return
        marks += following[1].count('"')
        size += len(following[1])
        yield following


def _row_over_lines(lines: list[str], columns: int) -> list[str] | None:
    """Return the row that lines with quoted fields make up together, if it has the columns of the others."""
    try:
        rows = list(csv.reader(lines, delimiter="\t", strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 and len(rows[0]) == columns else None


def _unquoted(parts: list[str]) -> list[str] | None:
    """Return fields with their quotation marks taken off; None if a quoted one seems to go on."""
    if not any(part.startswith('"') for part in parts):
        return parts
    if any(_is_open(part) for part in parts):
        return None
    return [part[1:-1].replace('""', '"') if _is_quoted(part) else part for part in parts]


def _is_quoted(part: str) -> bool:
    return len(part) >= 2 and part[0] == part[-1] == '"' and '"' not in part[1:-1].replace('""', "")


def _is_open(part: str) -> bool:
    return part.startswith('"') and part.count('"') % 2 == 1
