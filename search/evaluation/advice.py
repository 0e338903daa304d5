"""The decision in five lines: what to take within a budget, what that gives up, and what would change it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from search.evaluation.cost import RetrieverCost
from search.evaluation.evaluation import Evaluation, Interval, Row
from search.evaluation.significance import FEWEST_QUERIES, bootstrap_intervals

#: Two-sided 5% and a power of 80%: (1.96 + 0.84)^2 variances over squared differences.
_POWER = (1.959964 + 0.841621) ** 2


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that a row may cost, in the median query and on disk; None where it does not matter."""

    query_ms: float | None = None
    bytes_per_text: float | None = None
    index_seconds: float | None = None

    def limits(self) -> list[tuple[str, str, float]]:
        """Return what is limited: a name of `costs`, the limit in words, the limit."""
        named = [
            ("query_ms", "ms a query", self.query_ms),
            ("bytes_per_text", "bytes a text", self.bytes_per_text),
            ("index_seconds", "s of indexing", self.index_seconds),
        ]
        return [(name, f"{_amount(limit)} {unit}", limit) for name, unit, limit in named if limit is not None]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to take, and five lines that say why.

    Attributes
    ----------
    choice
        The row to take; None where none fits the budget.
    best
        The best row of all, whatever it costs.
    decided
        Whether the judged queries tell the choice from every other row within the budget.
    alternative
        The row within the budget with the fastest queries that they cannot tell from the choice; None where
        the choice itself is the fastest of those.
    loss
        The best row's mean less the choice's, with its interval; None where the choice is the best row.
    lines
        Five lines: the choice; its cost; the loss against the best; a cheaper row; what would change this.
    """

    choice: str | None
    best: str
    decided: bool
    alternative: str | None
    loss: tuple[float, Interval] | None
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the advice as JSON values."""
        return {
            "choice": self.choice,
            "best": self.best,
            "decided": self.decided,
            "alternative": self.alternative,
            "loss": None if self.loss is None else {"mean": self.loss[0], "interval": list(self.loss[1])},
            "lines": list(self.lines),
        }


def advise(evaluation: Evaluation, budget: Budget | None = None) -> Advice:
    """Say which row to take within a budget, from the evaluation's first measure.

    The choice is the row with the highest mean among those whose known costs keep within the budget. A row of
    unknown cost does not fit where that cost is limited. Where too few queries are judged, it says so.
    """
    budget = budget or Budget()
    measure = evaluation.primary
    ranked = sorted(evaluation.rows.values(), key=lambda row: (-row.measures[measure], _query_ms(row)))
    best = ranked[0]
    fitting = [row for row in ranked if not _beyond(row, budget)]
    if not fitting:
        return _nothing_fits(evaluation, budget, ranked)
    choice = fitting[0]
    untold = [row for row in fitting[1:] if not _told(choice, row, measure)]
    cheaper = [row for row in untold if _query_ms(row) < _query_ms(choice)]
    alternative = min(cheaper, key=_query_ms, default=None) if evaluation.can_tell else None
    loss = None if best.name == choice.name else difference(evaluation, best, choice)
    lines = (
        _choice_line(evaluation, budget, choice, len(fitting), untold),
        f"It costs {_costs(choice.cost)}.",
        _loss_line(evaluation, budget, best, choice, loss),
        _alternative_line(evaluation, choice, alternative),
        _change_line(evaluation, budget, ranked, choice, untold),
    )
    decided = evaluation.can_tell and not untold
    return Advice(choice.name, best.name, decided, alternative.name if alternative else None, loss, lines)


def difference(evaluation: Evaluation, one: Row, other: Row) -> tuple[float, Interval]:
    """Return one row's mean less another's on the first measure, with its bootstrap interval."""
    values = _differences(evaluation.primary, one, other)
    statistics = evaluation.statistics
    low, high = bootstrap_intervals(
        values[:, None],
        np.random.default_rng(statistics.seed),
        resamples=statistics.resamples,
        confidence=statistics.confidence,
    )[0]
    return float(values.mean()), Interval(float(low), float(high))


def queries_needed(differences: np.ndarray) -> int | None:
    """Return about how many queries would tell a mean difference of this size from 0, four times in five.

    Parameters
    ----------
    differences
        (q,) float64 per-query differences: the size and the spread are taken from them.

    Returns
    -------
    int or None
        None where the mean is 0.
    """
    mean = float(differences.mean())
    if len(differences) < 2 or abs(mean) < 1e-12:
        return None
    return max(FEWEST_QUERIES, math.ceil(_POWER * float(differences.var(ddof=1)) / mean**2))


def _differences(measure: str, one: Row, other: Row) -> np.ndarray:
    mine, theirs = one.per_query[measure], other.per_query[measure]
    return np.array([mine[query] - theirs[query] for query in mine], dtype=np.float64)


def _told(one: Row, other: Row, measure: str) -> bool:
    return other.name in one.beats.get(measure, ())


def _costs_of(row: Row) -> Mapping[str, float | None]:
    query = row.cost.query
    return {
        "query_ms": query.p50 if query is not None else None,
        "bytes_per_text": row.cost.index.bytes_per_text,
        "index_seconds": row.cost.index.seconds,
    }


def _query_ms(row: Row) -> float:
    return row.cost.query.p50 if row.cost.query is not None else math.inf


def _beyond(row: Row, budget: Budget) -> list[str]:
    """Return in words what a row costs beyond the budget."""
    costs = _costs_of(row)
    beyond = []
    for name, words, limit in budget.limits():
        cost = costs[name]
        unit = words.partition(" ")[2]
        if cost is None:
            beyond.append(f"unknown {unit}")
        elif cost > limit:
            beyond.append(f"{_amount(cost)} {unit}")
    return beyond


def _excess(row: Row, budget: Budget) -> float:
    """Return how many times a row costs what the budget allows, in what it exceeds most; unknown costs exceed all."""
    costs = _costs_of(row)
    shares = []
    for name, _, limit in budget.limits():
        cost = costs[name]
        shares.append(math.inf if cost is None else cost / max(limit, 1e-9))
    return max(shares, default=0.0)


def _choice_line(evaluation: Evaluation, budget: Budget, choice: Row, fitting: int, untold: list[Row]) -> str:
    measure, count = evaluation.primary, evaluation.queries.count
    within = " and ".join(words for _, words, _ in budget.limits())
    place = f"the best of {fitting} within {within}" if within else f"the best of {fitting}"
    if fitting == 1:
        place = f"the only row within {within}" if within else "the only row"
    figure = f"{measure} {_with_interval(choice, measure)} on {count:,} judged queries{_judged(choice)}, {place}"
    if not evaluation.can_tell:
        return f"Cannot tell: {count} judged queries are too few. {choice.name} leads: {figure}."
    if untold:
        names = _names([row.name for row in untold])
        return f"Take {choice.name}: {figure}, though not told from {names} by more than chance."
    return f"Take {choice.name}: {figure}."


def _judged(row: Row) -> str:
    """Say how much of what a row shows has been judged at all."""
    name = next((name for name in row.measures if name.startswith("Judged@")), "")
    return f" ({row.measures[name]:.0%} of its first {name.partition('@')[2]} judged)" if name else ""


def _loss_line(
    evaluation: Evaluation, budget: Budget, best: Row, choice: Row, loss: tuple[float, Interval] | None
) -> str:
    if loss is None:
        return "No row scores higher, whatever it costs." if budget.limits() else "No row scores higher."
    mean, interval = loss
    level = f"{evaluation.statistics.confidence:.0%}"
    told = "more than chance" if _told(best, choice, evaluation.primary) else "which may be chance"
    return (
        f"Against the best, {best.name} ({' and '.join(_beyond(best, budget))}), it gives up {mean:.3f} "
        f"({level} interval {interval.low:.3f} to {interval.high:.3f}), {told}."
    )


def _alternative_line(evaluation: Evaluation, choice: Row, alternative: Row | None) -> str:
    if not evaluation.can_tell:
        return "With so few queries no cheaper row can be called as good."
    if alternative is None:
        if choice.cost.query is None:
            return "Whether a cheaper row would do is not known: query times were not measured."
        return "No row with faster queries comes as near as chance."
    mean, interval = difference(evaluation, choice, alternative)
    slower = _query_ms(choice) / max(_query_ms(alternative), 1e-6)
    faster = f"{slower:,.0f} times" if slower >= 10 else f"{slower:.1f} times"
    return (
        f"Cheaper and not told from it: {alternative.name}, queries {faster} as fast, for {mean:.3f} less "
        f"({interval.low:.3f} to {interval.high:.3f}); {_costs(alternative.cost)}."
    )


def _change_line(evaluation: Evaluation, budget: Budget, ranked: list[Row], choice: Row, untold: list[Row]) -> str:
    changes = []
    better = [row for row in ranked if row.measures[evaluation.primary] > choice.measures[evaluation.primary]]
    if better:
        nearest = min(better, key=lambda row: _excess(row, budget))
        changes.append(f"a budget of {' and '.join(_beyond(nearest, budget))} would allow {nearest.name}")
    if untold:
        rival = untold[0]
        values = _differences(evaluation.primary, choice, rival)
        needed = queries_needed(values)
        if needed is None:
            changes.append(f"nothing here tells {choice.name} from {rival.name}: equal means, so take the cheaper")
        elif needed > evaluation.queries.count:
            changes.append(f"about {_about(needed)} judged queries would tell {choice.name} from {rival.name}")
        else:
            changes.append(f"more judged queries could tell {choice.name} from {rival.name}")
    if not changes:
        changes.append("a smaller budget, or other queries than these" if len(ranked) > 1 else "other rows")
    return f"What would change this: {'; '.join(changes)}."


def _nothing_fits(evaluation: Evaluation, budget: Budget, ranked: list[Row]) -> Advice:
    best = ranked[0]
    within = " and ".join(words for _, words, _ in budget.limits())
    cheapest = min(ranked, key=_query_ms)
    figure = _with_interval(best, evaluation.primary)
    lines = (
        f"No row keeps within {within}.",
        f"The fastest, {cheapest.name}, costs {_costs(cheapest.cost)}.",
        f"The best, {best.name} ({evaluation.primary} {figure}), costs {_costs(best.cost)}.",
        "No cheaper row was evaluated.",
        f"What would change this: a budget of {' and '.join(_beyond(cheapest, budget))} would allow {cheapest.name}.",
    )
    return Advice(None, best.name, False, None, None, lines)


def _with_interval(row: Row, measure: str) -> str:
    interval = row.intervals.get(measure)
    figure = f"{row.measures[measure]:.3f}"
    return figure if interval is None else f"{figure} ({interval.low:.3f} to {interval.high:.3f})"


def _costs(cost: RetrieverCost) -> str:
    parts = []
    if cost.query is not None:
        parts.append(f"{_amount(cost.query.p50)} ms a query (p95 {_amount(cost.query.p95)})")
    if cost.index.bytes_per_text is not None:
        parts.append(f"{_amount(cost.index.bytes_per_text)} bytes a text")
    if cost.index.seconds is not None:
        parts.append(f"{_amount(cost.index.seconds)} s of indexing")
    if cost.index.approximation and cost.index.search_recall is not None:
        parts.append(f"recall@10 {cost.index.search_recall:.3f} of exact search")
    if cost.money_per_million_queries is not None:
        parts.append(f"a price of {_amount(cost.money_per_million_queries)} for a million queries")
    return ", ".join(parts) or "what was not measured"


def _amount(value: float) -> str:
    """Return a number with three digits that count, and no more."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _about(count: int) -> str:
    """Return a rough number: two digits that count."""
    step = 10 ** max(0, len(str(count)) - 2)
    return f"{math.ceil(count / step) * step:,}"


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
