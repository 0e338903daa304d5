"""The value that evaluating gives: every row's scores, intervals, differences and cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from search.evaluation.cost import RetrieverCost
from search.evaluation.judged_queries import JudgedQueries
from search.evaluation.measure_names import Measure
from search.evaluation.significance import FEWEST_QUERIES, PERMUTATIONS, RESAMPLES, Outcomes, enough_queries

#: Shares of judged documents further apart than this make figures hard to compare.
_UNEVEN = 0.1


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """How chance is dealt with: how many permutations and resamples, which level, which seed."""

    permutations: int = PERMUTATIONS
    resamples: int = RESAMPLES
    confidence: float = 0.95
    seed: int = 0

    @property
    def level(self) -> float:
        """The corrected p from which a difference counts as one."""
        return 1 - self.confidence


@dataclass(frozen=True, slots=True)
class Difference:
    """One row's mean less another's, on one measure.

    `p` is that of a paired randomisation test, `corrected_p` after Holm's correction over the rows compared.
    """

    mean: float
    interval: Interval
    p: float
    corrected_p: float
    outcomes: Outcomes


@dataclass(frozen=True, slots=True)
class Row:
    """One retriever (or run): how good, how sure, at what cost.

    Attributes
    ----------
    name, letter
        Its name, and the letter that stands for it in other rows' `beats`.
    measures
        Measure -> mean over the judged queries.
    per_query
        Measure -> query id -> score: what the means are derived from.
    intervals
        Measure -> confidence interval of the mean.
    versus
        Measure -> difference from the baseline; empty for the baseline itself.
    beats
        Measure -> names of the rows that this one scores above by more than chance (Holm over all pairs).
    cost
        What it costs.
    dominated_by
        Rows that are at least as good at no higher cost, and better in something.
    unanswered
        Judged queries for which it found nothing.
    """

    name: str
    letter: str
    measures: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    versus: Mapping[str, Difference] = field(default_factory=dict)
    beats: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cost: RetrieverCost = field(default_factory=RetrieverCost)
    dominated_by: tuple[str, ...] = ()
    unanswered: int = 0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Rows over one set of judged queries.

    Attributes
    ----------
    collection
        What was searched: `name`, `split`, `documents` and whatever else the caller knows.
    queries
        The judged queries, and what was left out.
    measures
        The measures in order; the first one decides frontier and advice.
    baseline
        The row that others are compared with.
    rows
        Name -> row, in the order given.
    statistics
        How chance was dealt with.
    """

    collection: Mapping[str, Any]
    queries: JudgedQueries
    measures: tuple[Measure, ...]
    baseline: str
    rows: Mapping[str, Row]
    statistics: Statistics

    @property
    def primary(self) -> str:
        """The name of the measure that decides."""
        return self.measures[0].name

    @property
    def can_tell(self) -> bool:
        """Whether there are enough judged queries to call a difference one."""
        return enough_queries(self.queries.count)

    @property
    def frontier(self) -> list[str]:
        """The rows that none dominates, best first."""
        on_it = [row for row in self.rows.values() if not row.dominated_by]
        return [row.name for row in sorted(on_it, key=lambda row: -row.measures[self.primary])]

    def letters(self, row: str, measure: str) -> str:
        """Return the letters of the rows that a row beats on a measure."""
        return "".join(self.rows[name].letter for name in self.rows[row].beats.get(measure, ()))

    def notes(self) -> Iterator[str]:
        """Say in a line each what a reader of the table should know."""
        yield from self.queries.notes()
        if self.collection.get("queries_are_documents"):
            yield "queries are documents: the one that carries a query's own id is left out of its ranking"
        if not self.can_tell:
            yield (
                f"{self.queries.count} judged queries cannot tell the rows apart: no letters are given "
                f"under {FEWEST_QUERIES}"
            )
        unanswered = {row.name: row.unanswered for row in self.rows.values() if row.unanswered}
        if unanswered:
            named = ", ".join(f"{name} {count:,}" for name, count in unanswered.items())
            yield f"judged queries for which nothing was found, counted as 0: {named}"
        yield from self._judged_note()
        yield f"measures by {', '.join(self._providers())}"
        for row in self.rows.values():
            held = row.cost.index
            if held.approximation:
                recall = "not measured" if held.search_recall is None else f"{held.search_recall:.3f}"
                kind = f"approximate vector search ({held.approximation})"
                yield f"{row.name}: {kind}, recall@10 {recall} of exact search"

    def _judged_note(self) -> Iterator[str]:
        """Warn where the rows' first documents are judged to different extents: what is not judged gains nothing."""
        for measure in self.measures:
            shares = {row.name: row.measures[measure.name] for row in self.rows.values()}
            if measure.kind == "Judged" and max(shares.values()) - min(shares.values()) > _UNEVEN:
                least, most = min(shares, key=lambda name: shares[name]), max(shares, key=lambda name: shares[name])
                ends = f"{shares[least]:.2f} for {least} and {shares[most]:.2f} for {most}"
                yield (
                    f"{measure.name} is {ends}: what nobody judged counts as not relevant, so the former may be"
                    " better than it looks"
                )

    def _providers(self) -> Iterator[str]:
        """Yield each program with the measures that it computes."""
        providers = dict.fromkeys(measure.provider for measure in self.measures)
        for provider in providers:
            names = [measure.name for measure in self.measures if measure.provider == provider]
            yield f"{provider} ({', '.join(names)})"

    def to_json(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return the evaluation as JSON values, with the scores of every query where asked for."""
        return {
            "collection": dict(self.collection),
            "judgements": self.queries.to_json(),
            "measures": {measure.name: {"provider": measure.provider} for measure in self.measures},
            "baseline": self.baseline,
            "statistics": {
                "test": "paired randomisation, two-sided, Holm's correction",
                "permutations": self.statistics.permutations,
                "interval": "bootstrap, bias-corrected and accelerated",
                "resamples": self.statistics.resamples,
                "confidence": self.statistics.confidence,
                "seed": self.statistics.seed,
                "can_tell": self.can_tell,
            },
            "retrievers": {row.name: self._row_json(row, per_query=per_query) for row in self.rows.values()},
            "frontier": self.frontier,
            "notes": list(self.notes()),
        }

    def _row_json(self, row: Row, *, per_query: bool) -> dict[str, Any]:
        versus = {
            measure: {
                "difference": difference.mean,
                "interval": list(difference.interval),
                "p": difference.p,
                "corrected_p": difference.corrected_p,
                "wins": difference.outcomes.wins,
                "ties": difference.outcomes.ties,
                "losses": difference.outcomes.losses,
            }
            for measure, difference in row.versus.items()
        }
        values: dict[str, Any] = {
            "letter": row.letter,
            "measures": dict(row.measures),
            "intervals": {measure: list(interval) for measure, interval in row.intervals.items()},
            "beats": {measure: list(names) for measure, names in row.beats.items()},
            "versus": {self.baseline: versus} if versus else {},
            "cost": row.cost.to_json(),
            "dominated_by": list(row.dominated_by),
            "unanswered": row.unanswered,
        }
        if per_query:
            values["per_query"] = {measure: dict(scores) for measure, scores in row.per_query.items()}
        return values
