"""Pairs of texts, or of words, with what people said of their likeness: from files, or the sets that gensim ships.

Read are JSON lines, and tables parted by tabs or commas, with a line of column names or without one: then three
columns, the score first or last. Lines before the first row that begin with # are comments.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from search.diagnostics.word_similarity import PairSet, word_pairs
from search.errors import DiagnosisError

_SIDES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "first": ("sentence1", "sentence_1", "text1", "word1", "word 1", "first"),
        "second": ("sentence2", "sentence_2", "text2", "word2", "word 2", "second"),
        "score": ("score", "similarity", "similarity_score", "label", "gold", "simlex999", "human (mean)"),
    }
)
_EXPECTED = "expected two texts and a number of how alike they are"


class TextPair(NamedTuple):
    """Two texts and what people said of them, higher meaning nearer."""

    first: str
    second: str
    score: float


class _Columns(NamedTuple):
    """Which columns hold the two texts and the score."""

    first: int
    second: int
    score: int

    def pair(self, row: Sequence[str], where: str) -> TextPair:
        if max(self) >= len(row):
            message = f"{where} has {len(row)} columns, expected {1 + max(self)} or more; {_EXPECTED}"
            raise DiagnosisError(message)
        score = _number(row[self.score])
        if score is None:
            message = f"{where} has {row[self.score][:40]!r} for a score; {_EXPECTED}"
            raise DiagnosisError(message)
        return TextPair(row[self.first], row[self.second], score)


def read_text_pairs(source: Path | str) -> list[TextPair]:
    """Read pairs from a file, or one of the published sets of word pairs by its name (`wordsim353`, `simlex999`).

    Raises
    ------
    DiagnosisError
        If the file cannot be read, has no pair, or a line is something else; the line is named.
    """
    if str(source) in set(PairSet):
        return [TextPair(*pair) for pair in word_pairs(str(source))]
    place = Path(source)
    try:
        content = place.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{source} cannot be read ({error}); {_EXPECTED} in each line, or one of {', '.join(PairSet)}"
        raise DiagnosisError(message) from error
    pairs = list(_records(content, place) if _is_json(content) else _rows(content, place))
    if not pairs:
        message = f"{place} holds no pair; {_EXPECTED} in each line"
        raise DiagnosisError(message)
    return pairs


def distinct_texts(pairs: Sequence[TextPair]) -> list[str]:
    """Return the texts of pairs, each once, in order."""
    return list(dict.fromkeys(text for pair in pairs for text in pair[:2]))


def _is_json(content: str) -> bool:
    return content.lstrip()[:1] == "{"


def _records(content: str, place: Path) -> Iterator[TextPair]:
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{place}: line {number}"
        try:
            record = json.loads(line)
            names = {str(name).lower(): name for name in record}
            first, second, score = (record[names[next(n for n in known if n in names)]] for known in _SIDES.values())
        except (ValueError, TypeError, KeyError, StopIteration, RuntimeError, RecursionError) as error:
            message = f"{where} is no JSON object with sentence1, sentence2 and score"
            raise DiagnosisError(message) from error
        value = None if isinstance(score, bool) else _number(str(score))
        if value is None or not isinstance(first, str) or not isinstance(second, str):
            message = f"{where} holds {str(first)[:30]!r}, {str(second)[:30]!r} and {str(score)[:30]!r}; {_EXPECTED}"
            raise DiagnosisError(message)
        yield TextPair(first, second, value)


def _rows(content: str, place: Path) -> Iterator[TextPair]:
    columns: _Columns | None = None
    for number, row in _cells(content, place):
        where = f"{place}: line {number}"
        if columns is None:
            columns = _named(row)
            if columns is not None:
                continue
            columns = _unnamed(row, where)
        yield columns.pair(row, where)


def _cells(content: str, place: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the numbers of the lines they end on."""
    lines = content.splitlines(keepends=True)
    begin = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    if begin < len(lines) and "\t" in lines[begin]:
        # Between tabs a quotation mark is one: sentences are full of them.
        for number, line in enumerate(lines[begin:], start=begin + 1):
            if line.strip():
                yield number, line.rstrip("\r\n").split("\t")
        return
    table = csv.reader(lines[begin:], strict=True)
    try:
        for row in table:
            if any(cell.strip() for cell in row):
                yield begin + table.line_num, row
    except csv.Error as error:
        message = f"{place}: line {begin + table.line_num} is no row of a table ({error}); {_EXPECTED}"
        raise DiagnosisError(message) from error


def _named(row: Sequence[str]) -> _Columns | None:
    """Return where a line of column names puts things; None where it is none."""
    names = [cell.strip().lower() for cell in row]
    found = [next((names.index(name) for name in known if name in names), -1) for known in _SIDES.values()]
    return None if min(found) < 0 else _Columns(*found)


def _unnamed(row: Sequence[str], where: str) -> _Columns:
    if len(row) == 3:
        if _number(row[2]) is not None:
            return _Columns(0, 1, 2)
        if _number(row[0]) is not None:
            return _Columns(1, 2, 0)
    message = (
        f"{where} is {'; '.join(row)[:60]!r}: neither column names (score, sentence1, sentence2)"
        f" nor two texts with a number before or after them"
    )
    raise DiagnosisError(message)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
