"""All judged queries of an index, run through its retrievers and measured: quality and cost in one value."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from corpora.collection import Collection
from corpora.options import DEFAULT_OPTIONS
from corpora.progress import Progress
from corpora.read_log import ReadLog
from corpora.readers.qrels import read_qrels
from indexer.judgement_files import Judgements
from indexer.spec import Family
from search.errors import NoJudgementsError, QueryError
from search.evaluation.cost import IndexCost, retriever_cost
from search.evaluation.evaluate import evaluate
from search.evaluation.evaluation import Evaluation
from search.evaluation.judged_queries import judged_queries
from search.evaluation.measure_names import DEFAULT_MEASURES, parse_measures
from search.evaluation.runs import read_runs, write_runs
from search.questions import read_questions
from search.ranking import Run
from search.retrieval.searcher import Searcher

DEPTH = 1000


class Measured(NamedTuple):
    """An evaluation, and the runs it measured by retriever."""

    evaluation: Evaluation
    runs: Mapping[str, Run]


def measure_index(
    searcher: Searcher,
    *,
    progress: Progress,
    collection: Collection | None = None,
    judgements: Judgements | None = None,
    split: str = "test",
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    baseline: str | None = None,
    runs: Path | None = None,
    price_per_hour: float | None = None,
) -> Measured:
    """Run the judged queries of an index (or of a collection with the same documents) and measure every retriever.

    Parameters
    ----------
    searcher
        The retrievers.
    progress
        Told of each query.
    collection
        Whose queries and judgements to use; the index's own where None.
    judgements
        Queries and judgements in place of either.
    split
        Which judgements.
    measures
        Names of measures.
    baseline
        The retriever that others are compared with.
    runs
        A folder for TREC runs and per-query scores; nothing is written where None.
    price_per_hour
        What this machine costs an hour.

    Raises
    ------
    NoJudgementsError
        If there is no such split, or no query of it is judged.
    MeasureError
        If a measure cannot be computed.
    """
    index = searcher.index
    wanted = parse_measures(measures)
    held = judgements or _judgements(searcher, collection)
    qrels = held.qrels.get(split)
    if qrels is None:
        known = ", ".join(held.qrels) or "none"
        message = f"there are no judgements named {split!r}; splits of this collection: {known} (--split)"
        raise NoJudgementsError(message)
    elsewhere = {query_id for name, other in held.qrels.items() if name != split for query_id in other}
    texts = {
        query_id: query.text
        for query_id, query in held.queries.items()
        if query_id in qrels or query_id not in elsewhere
    }
    queries = judged_queries(qrels, texts, _KnownDocuments(searcher))
    asked = [held.queries[query_id] for query_id in queries.qrels]
    same_id = index.manifest.exclude_same_id if collection is None else collection.exclude_same_id
    batch = searcher.run(asked, DEPTH, exclude_same_id=same_id, progress=progress)
    costs = {
        name: retriever_cost(batch.costs[name].values(), index_cost(searcher, name), price_per_hour=price_per_hour)
        for name in searcher.names
    }
    evaluation = evaluate(
        batch.runs,
        queries,
        measures=wanted,
        baseline=baseline or None,
        costs=costs,
        collection={
            "name": index.manifest.collection,
            "split": split,
            "documents": index.manifest.documents,
            "fingerprint": index.manifest.fingerprint,
            "queries_are_documents": same_id,
        },
    )
    if runs is not None:
        write_runs(runs, batch.runs, evaluation)
    return Measured(evaluation, batch.runs)


def measure_runs(
    paths: Sequence[Path],
    qrels: Path,
    *,
    queries: Path | None = None,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    baseline: str | None = None,
    runs: Path | None = None,
) -> Measured:
    """Score TREC run files of any system against a file of judgements.

    Parameters
    ----------
    paths
        The run files, a row each.
    qrels
        Judgements, in TREC or BEIR form.
    queries
        The queries' texts, for reports; judged queries that are not among them are left out.
    measures, baseline
        As in `measure_index`.
    runs
        A folder for the runs and the scores of each query; nothing is written where None.

    Raises
    ------
    RunFileError, JudgementError
        If a file is no run, or holds no judgements.
    """
    found = read_runs(paths)
    judged = read_qrels(qrels, DEFAULT_OPTIONS, ReadLog())
    texts = None if queries is None else {query.query_id: query.text for query in read_questions(queries).values()}
    evaluation = evaluate(
        found,
        judged_queries(judged, texts),
        measures=measures,
        baseline=baseline or None,
        collection={"name": qrels.name, "split": qrels.stem},
    )
    if runs is not None:
        write_runs(runs, found, evaluation)
    return Measured(evaluation, found)


def judged_by(searcher: Searcher, qrels: Path, queries: Path | None = None) -> Judgements:
    """Return the judgements of a file, as `twindex judge` writes them, of an index's queries or those of another file.

    Their split is named by the file.

    Raises
    ------
    JudgementError
        If the file holds no judgements.
    QueryError
        If there are no queries.
    """
    asked = dict(searcher.index.judgements.queries) if queries is None else read_questions(queries)
    if not asked:
        message = "the index brings no queries of its own; name the file that was judged: --queries FILE"
        raise QueryError(message)
    return Judgements(asked, {qrels.stem: read_qrels(qrels, DEFAULT_OPTIONS, ReadLog())})


def _judgements(searcher: Searcher, collection: Collection | None) -> Judgements:
    if collection is not None:
        return Judgements(collection.queries, collection.qrels)
    found = searcher.index.judgements
    if not found.qrels:
        message = "this index has no judgements; name a collection that has them (--collection), or judge some yourself"
        raise NoJudgementsError(message)
    return found


class _KnownDocuments:
    """Answers whether the index holds an id."""

    def __init__(self, searcher: Searcher) -> None:
        self._documents = searcher.index.documents

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and self._documents.holds(doc_id)


def index_cost(searcher: Searcher, name: str) -> IndexCost:
    """Return what building one retriever took, whichever builds did it; a hybrid took what its members took."""
    record = searcher.index.record(name)
    members = record.spec.members if record.family is Family.HYBRID else (name,)
    costs = {member: searcher.index.cost[member] for member in members if member in searcher.index.cost}
    recalls = [found for member in members if (found := searcher.index.search_recall(member)) is not None]
    held = IndexCost(
        bytes_per_text=searcher.bytes_per_text(name),
        search_recall=min(recalls, default=None),
        approximation=" and ".join(dict.fromkeys(filter(None, map(searcher.index.approximation, members)))),
    )
    if not costs:
        return held
    # Members that share an encoder encode a text once.
    encoders = {searcher.index.record(member).encoder or member: cost for member, cost in costs.items()}
    counted = [each for cost in encoders.values() if (each := _multiply_adds_per_text(cost)) is not None]
    return replace(
        held,
        seconds=sum(float(cost["seconds"]) + float(cost.get("reused_seconds", 0.0)) for cost in costs.values()),
        texts=searcher.index.manifest.texts,
        tokens=sum(int(cost["tokens"]) for cost in encoders.values()) or None,
        peak_memory_bytes=max(int(cost["peak_memory_bytes"]) for cost in costs.values()) or None,
        multiply_adds_per_text=sum(counted) if counted else None,
    )


def _multiply_adds_per_text(cost: Mapping[str, Any]) -> float | None:
    found = cost.get("multiply_adds")
    return None if found is None else int(found) / max(1, int(cost["texts"]))
