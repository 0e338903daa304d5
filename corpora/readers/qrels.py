"""Relevance judgements: BEIR form (header, 3 columns) or TREC form (4 columns), tabs or spaces."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.errors import JudgementError
from corpora.judgements import Qrels
from corpora.options import Duplicates, ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.lines import read_lines


@dataclass(frozen=True, slots=True)
class Judged:
    """One line of judgements."""

    line: int
    query_id: str
    doc_id: str
    grade: int


def read_qrels(path: Path, options: ReadOptions, log: ReadLog) -> Qrels:
    """Read a file of judgements; the form is told by the number of columns.

    Grades may be 0, negative or above 1. A pair judged twice alike is counted in the log; judged twice
    with two grades it is an error unless `options.duplicates` chooses.

    Raises
    ------
    JudgementError
        If a line has another form, or two lines contradict each other; file and lines are named.
    """
    qrels: dict[str, dict[str, int]] = {}
    lines: dict[tuple[str, str], int] = {}
    repeated = 0
    for judged in _judged(path, options, log):
        of_query = qrels.setdefault(judged.query_id, {})
        earlier = of_query.get(judged.doc_id)
        pair = (judged.query_id, judged.doc_id)
        if earlier is None:
            of_query[judged.doc_id] = judged.grade
            lines[pair] = judged.line
            continue
        repeated += 1
        if earlier != judged.grade and options.duplicates is Duplicates.REFUSE:
            message = (
                f"{path}: lines {lines[pair]} and {judged.line} grade document {judged.doc_id!r} for query "
                f"{judged.query_id!r} as {earlier} and {judged.grade}; --duplicates first|last chooses"
            )
            raise JudgementError(message)
        if options.duplicates is Duplicates.LAST:
            of_query[judged.doc_id] = judged.grade
    if repeated:
        log.announce(f"{path}: {repeated:,} judgements repeat an earlier one")
    return qrels


def _judged(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Judged]:
    columns = 0
    for number, line in read_lines(path, options, log):
        parts = _parts(line)
        if not parts:
            continue
        if not columns:
            columns = len(parts)
            if columns not in {3, 4}:
                raise JudgementError(_unlike(path, number, line))
            if not _is_grade(parts[-1]) and not any(char.isdigit() for char in parts[-1]):
                continue  # a header
        if len(parts) != columns or not _is_grade(parts[-1]):
            raise JudgementError(_unlike(path, number, line))
        yield Judged(number, parts[0], parts[-2], int(float(parts[-1])))


def _parts(line: str) -> list[str]:
    line = line.rstrip("\r\n")
    # With tabs, ids may hold spaces and quotation marks; without, anything blank separates.
    return line.split("\t") if "\t" in line and len(line.split("\t")) >= 3 else line.split()


def _is_grade(text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return value.is_integer() and abs(value) < 2**31


def _unlike(path: Path, number: int, line: str) -> str:
    return (
        f"{path}:{number}: found {line.strip()[:60]!r}; expected `query-id document-id grade` (BEIR) or "
        "`query-id 0 document-id grade` (TREC), separated by tabs or spaces, with a whole number as grade"
    )
