"""Judging by hand: what to look at, in which order, and what was said, kept so that one can go on tomorrow.

Pooling: K. Sparck Jones and C. J. van Rijsbergen 1975, as TREC practises it: the top of every retriever is
judged, in an order that does not tell who found what.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from corpora.errors import CorpusError
from corpora.judgements import Qrels
from corpora.options import DEFAULT_OPTIONS
from corpora.read_log import ReadLog
from corpora.readers.qrels import read_qrels
from search.errors import RunFileError
from search.evaluation.runs import write_qrels
from search.ranking import Run

#: What a key says of a document.
KEYS: Mapping[str, int] = {"n": 0, "y": 1, **{str(grade): grade for grade in range(10)}}


class Question(NamedTuple):
    """A query and a document to be judged for it."""

    query_id: str
    doc_id: str


def pool(runs: Mapping[str, Run], depth: int, seed: int = 0) -> dict[str, list[str]]:
    """Return for each query the documents that any run has among its first `depth`, in random order.

    The order depends on the seed, the query and the documents alone: not on which runs found them, and not on
    other queries.
    """
    queries = dict.fromkeys(query for run in runs.values() for query in run)
    pooled = {}
    for query in queries:
        found = sorted({doc.doc_id for run in runs.values() for doc in run.get(query, ())[:depth]})
        rng = np.random.default_rng([seed, *query.encode("utf-8", "surrogatepass")])
        pooled[query] = [found[place] for place in rng.permutation(len(found)).tolist()]
    return pooled


class Judging:
    """A pool being judged; every judgement is on disk before the next question is put."""

    def __init__(self, pooled: Mapping[str, Sequence[str]], path: Path) -> None:
        """Take up the judging of a pool, going on from the file where there is one.

        Raises
        ------
        RunFileError
            If the file holds something else than judgements.
        """
        self._path = path
        self._questions = [Question(query, doc_id) for query, found in pooled.items() for doc_id in found]
        self._grades: dict[str, dict[str, int]] = {}
        self._given: list[Question] = []
        self._passed: set[Question] = set()
        if path.exists():
            try:
                held = read_qrels(path, DEFAULT_OPTIONS, ReadLog())
            except (OSError, CorpusError) as error:
                message = f"{path} holds no judgements to go on from ({error}); name another file"
                raise RunFileError(message) from error
            self._grades = {query: dict(grades) for query, grades in held.items()}

    @property
    def total(self) -> int:
        """How many questions the pool holds."""
        return len(self._questions)

    @property
    def judged(self) -> int:
        """How many of them are answered."""
        return sum(self._is_judged(question) for question in self._questions)

    @property
    def qrels(self) -> Qrels:
        """All judgements so far, those from before included."""
        return self._grades

    def next(self) -> Question | None:
        """Return the next question; those passed over come again at the next start. None when all is judged."""
        return next((q for q in self._questions if not self._is_judged(q) and q not in self._passed), None)

    def judge(self, question: Question, grade: int) -> None:
        """Write down a grade.

        Raises
        ------
        RunFileError
            If the file cannot be written; the judgement is then not kept.
        """
        before = self._grades.get(question.query_id, {}).get(question.doc_id)
        self._grades.setdefault(question.query_id, {})[question.doc_id] = grade
        try:
            write_qrels(self._path, self._grades)
        except RunFileError:
            self._restore(question, before)
            raise
        self._given.append(question)

    def skip(self, question: Question) -> None:
        """Pass over a question for now."""
        self._passed.add(question)

    def undo(self) -> Question | None:
        """Take back the last judgement of this sitting and return its question; None where there is none."""
        if not self._given:
            return None
        question = self._given.pop()
        self._restore(question, None)
        write_qrels(self._path, self._grades)
        return question

    def _is_judged(self, question: Question) -> bool:
        return question.doc_id in self._grades.get(question.query_id, {})

    def _restore(self, question: Question, grade: int | None) -> None:
        of_query = self._grades[question.query_id]
        if grade is None:
            of_query.pop(question.doc_id)
        else:
            of_query[question.doc_id] = grade
        if not of_query:
            self._grades.pop(question.query_id)
