"""Judging by hand: pooled hits of all retrievers put as questions, keys taken as grades."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from corpora.judgements import Query
from corpora.options import DEFAULT_OPTIONS
from corpora.read_log import ReadLog
from corpora.readers.beir import read_queries
from search.errors import QueryError
from search.evaluation.judging import KEYS, Judging, pool
from search.retrieval.searcher import Searcher


@dataclass(frozen=True, slots=True)
class PutQuestion:
    """A question as a person sees it: the query, the document, how far the judging is; `hint` says what a key does."""

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
    asked = _read(queries) if queries is not None else dict(_own(searcher))
    if not asked:
        message = "the index brings no queries to judge; name some: --queries FILE, one a line"
        raise QueryError(message)
    runs = searcher.run(list(asked.values()), max(depth, 1)).runs
    return JudgingSession(Judging(pool(runs, depth, seed), qrels), searcher, asked)


def _own(searcher: Searcher) -> Iterator[tuple[str, Query]]:
    yield from searcher.index.judgements.queries.items()


def _read(path: Path) -> dict[str, Query]:
    if path.suffix == ".jsonl":
        return dict(read_queries(path, DEFAULT_OPTIONS, ReadLog()))
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    return {f"q{number}": Query(f"q{number}", line) for number, line in enumerate(lines, start=1)}


def questions(session: JudgingSession, key: Callable[[], str]) -> Iterator[PutQuestion]:
    """Yield questions to show; after each, `key` is asked what the person says, until all is judged or they quit."""
    judging = session.judging
    while (question := judging.next()) is not None:
        stored = session.searcher.index.documents.fetch(question.doc_id)
        title, text = (stored.document.title, stored.document.text) if stored else ("", "")
        query = session.queries[question.query_id].text
        yield PutQuestion(query, question.doc_id, title, text, judging.judged, judging.total)
        pressed = key().strip().lower()
        if pressed in {"q", "quit"}:
            return
        if pressed == "s":
            judging.skip(question)
        elif pressed == "u":
            judging.undo()
        elif pressed in KEYS:
            judging.judge(question, KEYS[pressed])
