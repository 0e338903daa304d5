"""TREC files: runs and judgements in and out, and the scores of each query beside the run they belong to.

A run has six columns, `query Q0 document rank score tag`; judgements have four, `query 0 document grade`.
Both separate them by blanks, which ids here may hold: a file with such ids has tabs instead, and an id with a
tab, a line break or a quotation mark in front is written as a JSON string.
"""

import json
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from corpora.errors import CorpusError
from corpora.judgements import Qrels
from corpora.options import DEFAULT_OPTIONS
from corpora.read_log import ReadLog
from corpora.readers.lines import read_lines
from search.errors import RunFileError
from search.evaluation.evaluation import Evaluation
from search.evaluation.measures import PerQuery
from search.ranking import Run, ScoredDocument

_RUN_COLUMNS = 6
_QUERY_COLUMN = "query_id"


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run with the tag that its file gives it."""

    tag: str
    run: Run


def write_run(path: Path, run: Run, tag: str) -> None:
    """Write a run in TREC form, scores with all their digits, ranks from 1.

    Raises
    ------
    RunFileError
        If the file cannot be written.
    """
    rows = [
        (query_id, "Q0", document.doc_id, str(rank), repr(float(document.score)), tag)
        for query_id, ranking in run.items()
        for rank, document in enumerate(ranking, start=1)
    ]
    _write_rows(path, rows, ids=(0, 2, 5))


def read_run(path: Path) -> NamedRun:
    """Read a run in TREC form; lines may come in any order, and ranks are ignored, as trec_eval ignores them.

    Documents stand by score as a 32-bit float, equal ones by id descending: the order that trec_eval scores.

    Raises
    ------
    RunFileError
        If a line has another form or a score is no number, or a document stands twice under a query.
    """
    run: dict[str, dict[str, tuple[float, int]]] = {}
    tag = ""
    for number, columns in _rows(path):
        if len(columns) != _RUN_COLUMNS:
            message = f"{path}:{number}: {len(columns)} columns; expected 6: query Q0 document rank score tag"
            raise RunFileError(message)
        query_id, _, doc_id, _, score, tag = columns
        found = run.setdefault(query_id, {})
        if doc_id in found:
            lines = f"lines {found[doc_id][1]} and {number}"
            message = f"{path}: document {doc_id!r} stands twice under query {query_id!r}, {lines}; remove one"
            raise RunFileError(message)
        found[doc_id] = _score(path, number, score), number
    return NamedRun(tag, {query: _ranked({d: s for d, (s, _) in found.items()}) for query, found in run.items()})


def write_qrels(path: Path, qrels: Qrels) -> None:
    """Write judgements in TREC form.

    Raises
    ------
    RunFileError
        If the file cannot be written.
    """
    rows = [
        (query_id, "0", doc_id, str(int(grade)))
        for query_id, grades in qrels.items()
        for doc_id, grade in grades.items()
    ]
    _write_rows(path, rows, ids=(0, 2))


def write_scores(path: Path, scores: Mapping[str, Mapping[str, float]]) -> None:
    """Write per-query scores as a table with tabs: a row a query, a column a measure, all digits.

    Raises
    ------
    RunFileError
        If the file cannot be written.
    """
    queries = list(dict.fromkeys(query for values in scores.values() for query in values))
    rows = [(_QUERY_COLUMN, *scores)]
    rows += [(query, *(repr(float(values[query])) for values in scores.values())) for query in queries]
    _write_rows(path, rows, ids=(0,), tabs=True)


def read_scores(path: Path) -> PerQuery:
    """Read per-query scores as `write_scores` writes them.

    Raises
    ------
    RunFileError
        If the file is not such a table.
    """
    measures: list[str] = []
    scores: PerQuery = {}
    for number, columns in _rows(path, tabs=True):
        if not measures:
            if columns[0] != _QUERY_COLUMN or len(columns) < 2:
                message = f"{path}:{number}: expected a header, {_QUERY_COLUMN} and measures with tabs between them"
                raise RunFileError(message)
            measures = columns[1:]
            scores = {measure: {} for measure in measures}
            continue
        if len(columns) != len(measures) + 1:
            message = f"{path}:{number}: {len(columns)} columns; expected {len(measures) + 1}, as in the header"
            raise RunFileError(message)
        for measure, value in zip(measures, columns[1:], strict=True):
            scores[measure][columns[0]] = _score(path, number, value)
    return scores


def write_runs(folder: Path, runs: Mapping[str, Run], evaluation: Evaluation | None = None) -> list[Path]:
    """Write `NAME.run` for each run, and `NAME.scores.tsv` beside it where it was evaluated.

    Characters of a name that a file's name should not have become underscores.

    Returns
    -------
    list of Path
        The files, each run before its scores.

    Raises
    ------
    RunFileError
        If the folder or a file cannot be written, or two names become one file.
    """
    written: list[Path] = []
    stems = {name: re.sub(r"[^\w.,=+@ -]", "_", name).lstrip(".") or "run" for name in runs}
    if len(set(stems.values())) < len(stems):
        message = f"two of these names would become one file: {', '.join(runs)}; rename one"
        raise RunFileError(message)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{folder}: {error.strerror}; name a folder that can be written to"
        raise RunFileError(message) from error
    for name, run in runs.items():
        path = folder / f"{stems[name]}.run"
        write_run(path, run, re.sub(r"\s", "_", name))
        written.append(path)
        if evaluation is not None and name in evaluation.rows:
            path = folder / f"{stems[name]}.scores.tsv"
            write_scores(path, evaluation.rows[name].per_query)
            written.append(path)
    return written


def read_runs(paths: Iterable[Path]) -> dict[str, Run]:
    """Read runs of any system, named by their files; files of one name are told apart by their folders.

    Raises
    ------
    RunFileError
        If a file is no run.
    """
    files = list(paths)
    stems = [path.name.removesuffix(".gz").removesuffix(".run") for path in files]
    names = [
        stem if stems.count(stem) == 1 else f"{path.parent.name}/{stem}"
        for path, stem in zip(files, stems, strict=True)
    ]
    if len(set(names)) < len(names):
        names = [str(path) for path in files]
    return {name: read_run(path).run for name, path in zip(names, files, strict=True)}


def _ranked(scores: Mapping[str, float]) -> list[ScoredDocument]:
    by_id = sorted(scores, reverse=True)
    held = dict(zip(by_id, np.array([scores[doc_id] for doc_id in by_id], dtype=np.float64), strict=True))
    with np.errstate(over="ignore"):
        return [
            ScoredDocument(doc_id, float(held[doc_id]))
            for doc_id in sorted(by_id, key=lambda doc_id: -float(np.float32(held[doc_id])))
        ]


def _score(path: Path, number: int, text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if math.isnan(score):
        message = f"{path}:{number}: found {text[:40]!r} where a score was expected"
        raise RunFileError(message)
    return score


def _rows(path: Path, *, tabs: bool = False) -> Iterable[tuple[int, list[str]]]:
    try:
        for number, line in read_lines(path, DEFAULT_OPTIONS, ReadLog(strict=True)):
            text = line.rstrip("\r\n")
            if text.strip():
                yield number, _columns(text, tabs=tabs)
    except (OSError, CorpusError) as error:
        message = str(error) if isinstance(error, CorpusError) else f"{path}: {error.strerror or error}"
        raise RunFileError(message) from error


def _columns(text: str, *, tabs: bool) -> list[str]:
    if not tabs and text.count("\t") < _RUN_COLUMNS - 1:
        return text.split()
    return [_plain(column) for column in text.split("\t")]


def _plain(column: str) -> str:
    if column[:1] != '"':
        return column
    try:
        value = json.loads(column)
    except ValueError:
        return column
    return value if isinstance(value, str) else column


def _quoted(value: str) -> str:
    return json.dumps(value) if value[:1] == '"' or any(c in value for c in "\t\n\r") else value


def _write_rows(path: Path, rows: Sequence[Sequence[str]], *, ids: Sequence[int], tabs: bool = False) -> None:
    blank = re.compile(r'\s|^"|^$')
    tabs = tabs or any(blank.search(row[place]) for row in rows for place in ids)
    separator = "\t" if tabs else " "
    aside = path.with_name(f".{path.name}.writing")
    try:
        with aside.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as handle:
            for row in rows:
                columns = [_quoted(value) if place in ids else value for place, value in enumerate(row)]
                handle.write(separator.join(columns) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        aside.replace(path)
    except OSError as error:
        message = f"{path}: {error.strerror or error}; name a place that can be written to"
        raise RunFileError(message) from error
