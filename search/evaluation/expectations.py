"""Expected figures: a published table as a regression test."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from search.errors import ExpectationError
from search.evaluation.evaluation import Evaluation
from search.evaluation.measure_names import parse_measure

_FORM = re.compile(
    r"(?P<row>.+):(?P<measure>[^:]+?)\s*(?P<relation>>=|<=|=)\s*(?P<value>[^=<>+±]+?)"
    r"\s*(?:(?:\+-|\+/-|±)\s*(?P<tolerance>[^=<>+±]+))?"
)
#: What rounding may do to figures that are equal on paper.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure that a row is to reach: within the tolerance of a value, at least it (`>=`) or at most (`<=`)."""

    row: str
    measure: str
    relation: str
    value: float
    tolerance: float

    def holds(self, found: float) -> bool:
        """Return whether a figure is as expected."""
        low = self.value - self.tolerance - _ROUNDING
        high = self.value + self.tolerance + _ROUNDING
        return (self.relation == "<=" or found >= low) and (self.relation == ">=" or found <= high)

    def failure(self, found: float) -> str:
        """Say in one line what was found and what was expected."""
        relation = {"=": "", ">=": "at least ", "<=": "at most "}[self.relation]
        tolerance = f" +- {self.tolerance:g}" if self.tolerance else ""
        off = f"{abs(found - self.value):.4f} too {'low' if found < self.value else 'high'}"
        return f"{self.row}: {self.measure} is {found:.4f}, expected {relation}{self.value:g}{tolerance} ({off})"


def parse_expectation(text: str) -> Expectation:
    """Return the expectation that `ROW:MEASURE=VALUE+-TOLERANCE` states.

    Without a tolerance, `=` allows for the rounding of the value as it is written: `.645` is .6445 to .6455.
    `>=` and `<=` in place of `=` state a bound.

    Raises
    ------
    ExpectationError
        If the text has another form.
    MeasureError
        If the measure cannot be computed.
    """
    form = _FORM.fullmatch(text.strip())
    message = f'cannot read the expectation {text!r}; it is written like "contextual:nDCG@10=0.645+-0.005"'
    if form is None:
        raise ExpectationError(message)
    try:
        value = float(form["value"])
        tolerance = float(form["tolerance"]) if form["tolerance"] else 0.0
    except ValueError as error:
        raise ExpectationError(message) from error
    if not (abs(value) < float("inf") and 0 <= tolerance < float("inf")):
        raise ExpectationError(message)
    if form["tolerance"] is None and form["relation"] == "=":
        _, _, decimals = form["value"].partition(".")
        tolerance = 0.5 * 10.0 ** -len(decimals) if decimals.isdigit() else 0.0
    return Expectation(form["row"].strip(), parse_measure(form["measure"]).name, form["relation"], value, tolerance)


def check_expectations(evaluation: Evaluation, expected: Iterable[str | Expectation]) -> list[str]:
    """Return a line for each expectation that does not hold; none if all do.

    Raises
    ------
    ExpectationError
        If an expectation cannot be read, or names a row or measure that was not evaluated.
    """
    failures = []
    for one in expected:
        expectation = one if isinstance(one, Expectation) else parse_expectation(one)
        row = evaluation.rows.get(expectation.row)
        if row is None:
            message = f"expected a figure of {expectation.row!r}; there are {', '.join(evaluation.rows)}"
            raise ExpectationError(message)
        if expectation.measure not in row.measures:
            message = f"expected {expectation.measure}, which was not measured: {', '.join(row.measures)} were"
            raise ExpectationError(message)
        found = row.measures[expectation.measure]
        if not expectation.holds(found):
            failures.append(expectation.failure(found))
    return failures
