"""Queries from a file: one a line, or JSON lines with ids."""

from pathlib import Path

from corpora.judgements import Query
from corpora.options import DEFAULT_OPTIONS
from corpora.read_log import ReadLog
from corpora.readers.beir import read_queries
from search.errors import QueryError


def read_questions(path: Path) -> dict[str, Query]:
    """Return the queries of a file by id; those of plain lines are called q1, q2 and so on.

    Raises
    ------
    QueryError
        If the file cannot be read, or holds no query.
    """
    if path.suffix == ".jsonl":
        return dict(read_queries(path, DEFAULT_OPTIONS, ReadLog()))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read as lines of queries ({error}); expected UTF-8 text, or JSON lines in a .jsonl"
        raise QueryError(message) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        message = f"{path} holds no query; expected one a line"
        raise QueryError(message)
    return {f"q{number}": Query(f"q{number}", line) for number, line in enumerate(lines, start=1)}
