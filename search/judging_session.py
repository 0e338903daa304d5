"""Judging by hand: pooled hits of all retrievers put as questions, keys taken as grades."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.judgements import Query
from search.errors import QueryError
from search.evaluation.judging import KEYS, Judging, pool
from search.questions import read_questions
from search.retrieval.searcher import Searcher

HINT = "y or n, or a grade from 0 to 9; s passes over it for now, u takes the last one back, q ends"


@dataclass(frozen=True, slots=True)
class PutQuestion:
    """A question as a person sees it, and how far the judging is; `hint` answers a key that says nothing."""

    query: str
    doc_id: str
    title: str
    text: str
    judged: int
    total: int
    hint: str = ""


@dataclass(frozen=True, slots=True)
class JudgingSession:
    """A pool being judged, and where its texts are."""

    judging: Judging
    searcher: Searcher
    queries: dict[str, Query]


def open_judging(
    searcher: Searcher, qrels: Path, *, queries: Path | None = None, depth: int = 10, seed: int = 0
) -> JudgingSession:
    """Pool the first `depth` hits of every retriever for each query, and take up the judgements there are.

    Raises
    ------
    QueryError
        If there are no queries.
    """
    asked = read_questions(queries) if queries is not None else dict(_own(searcher))
    if not asked:
        message = "the index brings no queries to judge; name some: --queries FILE, one a line"
        raise QueryError(message)
    runs = searcher.run(list(asked.values()), max(depth, 1)).runs
    return JudgingSession(Judging(pool(runs, depth, seed), qrels), searcher, asked)


def _own(searcher: Searcher) -> Iterator[tuple[str, Query]]:
    yield from searcher.index.judgements.queries.items()


def questions(session: JudgingSession, key: Callable[[], str]) -> Iterator[PutQuestion]:
    """Yield questions to show; after each, `key` is asked what the person says, until all is judged or they quit."""
    judging, hint = session.judging, ""
    while (question := judging.next()) is not None:
        stored = session.searcher.index.documents.fetch(question.doc_id)
        title, text = (stored.document.title, stored.document.text) if stored else ("", "")
        query = session.queries[question.query_id].text
        yield PutQuestion(query, question.doc_id, title, text, judging.judged, judging.total, hint)
        pressed, hint = key().strip().lower(), ""
        if pressed in {"q", "quit"}:
            return
        if pressed == "s":
            judging.skip(question)
        elif pressed == "u":
            judging.undo()
        elif pressed in KEYS:
            judging.judge(question, KEYS[pressed])
        else:
            hint = f"{pressed!r} says nothing: {HINT}"
