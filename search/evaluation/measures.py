"""The scores of a run, query by query, through ir_measures.

Providers sort ties each in its own way, and trec_eval compares scores as 32-bit floats: they are therefore
given ranks, so that the figures are those of the order that was shown.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from corpora.judgements import Qrels
from search.errors import MeasureError
from search.evaluation.measure_names import DEFAULT_MEASURES, Measure, parse_measure, parse_measures
from search.ranking import Ranking

#: measure -> query id -> score
PerQuery = dict[str, dict[str, float]]

#: An id that no document has: ids hold no control characters.
_NOBODYS = "\x01"
_LARGEST_GRADE = 1_000_000
#: trec_eval's stand-in for 0 in geometric means.
_GEOMETRIC_FLOOR = math.log(0.00001)


def evaluate_run(
    run: Mapping[str, Ranking], qrels: Qrels, measures: str | Iterable[str | Measure] = DEFAULT_MEASURES
) -> PerQuery:
    """Return the scores of a run for each judged query.

    Parameters
    ----------
    run
        Query id -> documents in the order shown. Queries without judgements are left out.
    qrels
        Judgements. A judged query that the run lacks, or for which it found nothing, scores 0 and counts;
        so does one without any relevant document (as `trec_eval -c` has it). Negative grades gain nothing.
    measures
        Names or measures.

    Returns
    -------
    dict
        Measure (full name, in the order asked for) -> query id -> score; queries in the order of the qrels.

    Raises
    ------
    MeasureError
        If a measure cannot be computed here, or a grade is too large for trec_eval's tables.
    """
    wanted = parse_measures(measures)
    judged = {q: {doc_id: int(grade) for doc_id, grade in grades.items()} for q, grades in qrels.items() if grades}
    _check_grades(judged)
    ranks = {query: _ranks(run.get(query, ())) for query in judged}
    answered = {query: found for query, found in ranks.items() if found}
    scores: PerQuery = {m.name: {query: _of_nothing(m, judged[query]) for query in judged} for m in wanted}
    for provider in dict.fromkeys(measure.provider for measure in wanted):
        mine = [measure for measure in wanted if measure.provider == provider]
        compute = _COMPUTE.get(provider, _compute)
        # Providers are asked about queries that found something: others make some of them divide by zero.
        for measure, query, value in compute(provider, mine, judged, answered) if answered else ():
            if query in answered:
                scores[measure][query] = float(value)
    return scores


def _of_nothing(measure: Measure, grades: Mapping[str, int]) -> float:
    """Return the score of a query that found nothing: 0, but for measures that count what was judged."""
    if measure.geometric:
        return _GEOMETRIC_FLOOR
    if measure.kind == "NumRel":
        return float(sum(grade > 0 for grade in grades.values()))
    return float(measure.kind == "NumQ")


def mean_scores(per_query: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each measure over its queries (the sum, where the measure counts things)."""
    return {name: aggregate(name, list(scores.values())) for name, scores in per_query.items()}


def aggregate(name: str, scores: Sequence[float]) -> float:
    """Return the mean of per-query scores, or their sum where the measure counts things; 0 for none."""
    if not scores:
        return 0.0
    measure = parse_measure(name)
    if measure.geometric:
        return math.exp(float(np.mean(scores)))
    return float(np.sum(scores) if measure.counts else np.mean(scores))


def _ranks(ranking: Ranking) -> dict[str, float]:
    """Return scores that stand for ranks: whole numbers, exact as 32-bit floats, no two alike."""
    ranks: dict[str, float] = {}
    for place, document in enumerate(ranking):
        ranks.setdefault(document.doc_id, float(len(ranking) - place))
    return ranks


def _check_grades(qrels: Qrels) -> None:
    for query, grades in qrels.items():
        if (largest := max(grades.values())) > _LARGEST_GRADE:
            message = f"query {query!r} has a grade of {largest}; grades above {_LARGEST_GRADE:,} cannot be scored"
            raise MeasureError(message)


Scores = Iterable[tuple[str, str, float]]
Ranks = Mapping[str, Mapping[str, float]]


def _compute(provider: str, measures: Sequence[Measure], qrels: Qrels, ranks: Ranks) -> Scores:
    import ir_measures

    names = {measure.definition: measure.name for measure in measures if measure.definition is not None}
    if names:
        evaluator = ir_measures.providers.registry[provider].evaluator(list(names), qrels)
        for metric in evaluator.iter_calc(ranks):
            yield names[metric.measure], metric.query_id, metric.value


def _compute_trec(provider: str, measures: Sequence[Measure], qrels: Qrels, ranks: Ranks) -> Scores:
    import pytrec_eval

    qrels = {query: _bearable(grades) for query, grades in qrels.items()}
    yield from _compute(provider, measures, qrels, ranks)
    names = [measure.name for measure in measures if measure.definition is None]
    if names:
        for query, values in pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(ranks).items():
            yield from ((name, query, value) for name, value in values.items())


def _bearable(grades: Mapping[str, int]) -> dict[str, int]:
    """Return grades that trec_eval survives, with the same figures.

    It counts the grades of a query in a table from 0 to the largest one: where that one is negative, it reads
    and writes outside the table, which ends in wrong figures, an endless loop or a crash. A document that
    nobody retrieves, with grade 0, changes no figure and gives the table its first place.
    """
    if min(grades.values()) >= 0:
        return dict(grades)
    bearable = {doc_id: max(-1, grade) for doc_id, grade in grades.items()}
    return bearable if max(grades.values()) >= 0 else bearable | {_NOBODYS: 0}


def _compute_accuracy(provider: str, measures: Sequence[Measure], qrels: Qrels, ranks: Ranks) -> Scores:
    """Score one query at a time: where nothing irrelevant was found the provider divides by zero."""
    for query, found in ranks.items():
        for measure in measures:
            try:
                yield from _compute(provider, [measure], {query: qrels[query]}, {query: found})
            except ZeroDivisionError:
                yield measure.name, query, 1.0


def _compute_gdeval(provider: str, measures: Sequence[Measure], qrels: Qrels, ranks: Ranks) -> Scores:
    """Score through gdeval's files: ids become numbers there, as it cuts and sorts them by number."""
    queries = {query: str(number) for number, query in enumerate(qrels, start=1)}
    back = {number: query for query, number in queries.items()}
    documents: dict[str, str] = {}

    def numbered(values: Mapping[str, Any]) -> dict[str, Any]:
        return {documents.setdefault(doc_id, f"d{len(documents)}"): value for doc_id, value in values.items()}

    gains = {queries[q]: numbered({d: max(0, grade) for d, grade in qrels[q].items()}) for q in queries}
    # gdeval's ideal gain is 0 where no document is relevant, and it divides by that.
    gains = {number: judged for number, judged in gains.items() if any(judged.values())}
    found = {queries[q]: numbered(ranks[q]) for q in ranks if queries[q] in gains}
    if found:
        for name, number, value in _compute(provider, measures, gains, found):
            yield name, back[number], value


_COMPUTE = {"pytrec_eval": _compute_trec, "accuracy": _compute_accuracy, "gdeval": _compute_gdeval}
