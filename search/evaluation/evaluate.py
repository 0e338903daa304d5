"""Runs and judgements to an Evaluation."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from search.errors import EvaluationError, NoJudgementsError
from search.evaluation.cost import RetrieverCost
from search.evaluation.evaluation import Difference, Evaluation, Interval, Row, Statistics
from search.evaluation.frontier import Point, dominators
from search.evaluation.judged_queries import JudgedQueries
from search.evaluation.measure_names import DEFAULT_MEASURES, Measure, parse_measure, parse_measures
from search.evaluation.measures import PerQuery, aggregate, evaluate_run
from search.evaluation.significance import (
    Floats,
    bootstrap_intervals,
    enough_queries,
    holm,
    outcomes,
    randomisation_p,
)
from search.ranking import Run

#: The baseline where none is named and a row has this name.
YARDSTICK = "bm25"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def evaluate(
    runs: Mapping[str, Run],
    queries: JudgedQueries,
    *,
    measures: str | Iterable[str | Measure] = DEFAULT_MEASURES,
    baseline: str | None = None,
    costs: Mapping[str, RetrieverCost] | None = None,
    collection: Mapping[str, Any] | None = None,
    statistics: Statistics | None = None,
) -> Evaluation:
    """Score runs on judged queries, and say which differences are more than chance.

    Parameters
    ----------
    runs
        Row name -> run, documents in the order shown.
    queries
        The judged queries (`judged_queries`).
    measures
        Names; the first decides frontier and advice. Judged@k is added where it is missing, k being the first
        cutoff among them, or 10.
    baseline
        The row to compare with: `bm25` where there is one, else the first.
    costs
        Row name -> cost; rows without an entry cost nobody knows what.
    collection
        What to say of the collection: `name`, `split`, `documents`, `fingerprint`.
    statistics
        Permutations, resamples, confidence and seed.

    Raises
    ------
    NoJudgementsError
        If no query is judged.
    MeasureError
        If a measure cannot be computed.
    EvaluationError
        If there is no run, or none of the baseline's name.
    """
    if not runs:
        message = "no runs to evaluate"
        raise EvaluationError(message)
    if not queries.count:
        raise NoJudgementsError(_no_judgements(queries))
    baseline = _baseline(runs, baseline)
    parsed = _with_judged(parse_measures(measures))
    statistics = statistics or Statistics()
    costs = costs or {}
    scores = {name: evaluate_run(run, queries.qrels, parsed) for name, run in runs.items()}
    compared = _compare(scores, baseline, statistics)
    means = {
        name: {measure: aggregate(measure, list(values.values())) for measure, values in per_query.items()}
        for name, per_query in scores.items()
    }
    dominated = dominators({name: _point(means[name][parsed[0].name], costs.get(name)) for name in runs})
    rows = {
        name: Row(
            name=name,
            letter=_letter(number),
            measures=means[name],
            per_query=scores[name],
            intervals=compared.intervals[name],
            versus=compared.versus[name],
            beats=compared.beats[name],
            cost=costs.get(name, RetrieverCost()),
            dominated_by=dominated[name],
            unanswered=sum(not run.get(query) for query in queries.qrels),
        )
        for number, (name, run) in enumerate(runs.items())
    }
    return Evaluation(dict(collection or {}), queries, tuple(parsed), baseline, rows, statistics)


class _Compared:
    """Intervals, differences and letters of all rows."""

    def __init__(self, names: Iterable[str]) -> None:
        rows = list(names)
        self.intervals: dict[str, dict[str, Interval]] = {name: {} for name in rows}
        self.versus: dict[str, dict[str, Difference]] = {name: {} for name in rows}
        self.beats: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in rows}


def _compare(scores: Mapping[str, PerQuery], baseline: str, statistics: Statistics) -> _Compared:
    """Test every pair of rows on every measure; tests share their coins, and intervals their resamples."""
    names = list(scores)
    measures = [name for name in scores[names[0]] if _is_quality(name)]
    compared = _Compared(names)
    if not measures:
        return compared
    # (r, q, m): rows, queries, measures
    values = np.array([[list(scores[name][measure].values()) for measure in measures] for name in names])
    values = np.asarray(values, dtype=np.float64).transpose(0, 2, 1)
    queries = values.shape[1]
    pairs = list(combinations(range(len(names)), 2))
    differences = np.array([values[one] - values[other] for one, other in pairs]).reshape(
        len(pairs), queries, len(measures)
    )
    rng = np.random.default_rng(statistics.seed)
    p = randomisation_p(_columns(differences), rng, permutations=statistics.permutations)
    p = p.reshape(len(pairs), len(measures))
    intervals = bootstrap_intervals(
        np.hstack((_columns(values), _columns(differences))),
        np.random.default_rng(statistics.seed),
        resamples=statistics.resamples,
        confidence=statistics.confidence,
    ).reshape(-1, len(measures), 2)
    for column, measure in enumerate(measures):
        for row, name in enumerate(names):
            compared.intervals[name][measure] = Interval(*map(float, intervals[row, column]))
        means = values[:, :, column].mean(axis=1)
        if enough_queries(queries):
            _letter_rows(compared, names, measure, means, pairs, holm(p[:, column]) <= statistics.level)
        against = [index for index, pair in enumerate(pairs) if names.index(baseline) in pair]
        corrected = holm(p[against, column])
        for index, corrected_p in zip(against, corrected, strict=True):
            one, other = pairs[index]
            sign = -1.0 if names[one] == baseline else 1.0
            low, high = sorted(sign * float(end) for end in intervals[len(names) + index, column])
            difference = sign * differences[index, :, column]
            compared.versus[names[other if names[one] == baseline else one]][measure] = Difference(
                float(difference.mean()),
                Interval(low, high),
                float(p[index, column]),
                float(corrected_p),
                outcomes(difference),
            )
    return compared


def _letter_rows(
    compared: _Compared,
    names: Sequence[str],
    measure: str,
    means: Floats,
    pairs: Sequence[tuple[int, int]],
    significant: Iterable[Any],
) -> None:
    beaten: dict[int, list[int]] = {}
    for (one, other), told in zip(pairs, significant, strict=True):
        if told:
            winner, loser = (one, other) if means[one] > means[other] else (other, one)
            beaten.setdefault(winner, []).append(loser)
    for row, name in enumerate(names):
        compared.beats[name][measure] = tuple(names[loser] for loser in sorted(beaten.get(row, ())))


def _columns(values: Floats) -> Floats:
    """Return (r, q, m) values as (q, r * m)."""
    rows, queries, measures = values.shape
    return values.transpose(1, 0, 2).reshape(queries, rows * measures)


def _is_quality(name: str) -> bool:
    """Whether a measure is a mean of scores; counts, logarithms and how much was judged are not compared."""
    measure = parse_measure(name)
    return not (measure.counts or measure.geometric or measure.kind == "Judged")


def _with_judged(measures: Sequence[Measure]) -> list[Measure]:
    if any(measure.kind == "Judged" for measure in measures):
        return list(measures)
    cutoffs = [m.definition.params["cutoff"] for m in measures if m.definition and "cutoff" in m.definition.params]
    return [*measures, *parse_measures([f"Judged@{cutoffs[0] if cutoffs else 10}"])]


def _baseline(runs: Mapping[str, Run], wanted: str | None) -> str:
    if wanted is None:
        return YARDSTICK if YARDSTICK in runs else next(iter(runs))
    if wanted not in runs:
        message = f"the baseline {wanted!r} is not among the rows: {', '.join(runs)}"
        raise EvaluationError(message)
    return wanted


def _point(quality: float, cost: RetrieverCost | None) -> Point:
    if cost is None:
        return Point(quality, (None, None, None))
    query_ms = cost.query.p50 if cost.query is not None else None
    return Point(quality, (query_ms, cost.index.bytes_per_text, cost.index.seconds))


def _letter(number: int) -> str:
    return _LETTERS[number] if number < len(_LETTERS) else f"<{number}>"


def _no_judgements(queries: JudgedQueries) -> str:
    if unknown := queries.unknown_queries:
        found = f"all {len(unknown):,} judged queries are ones that the collection does not ask"
        return f"{found} (first: {unknown[0]!r}); expected ids of its own queries"
    return "no query is judged: give judgements, judge some yourself, or compare the rows without any"
