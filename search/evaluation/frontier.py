"""The frontier of quality against cost: the rows that no other row beats on both."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Point(NamedTuple):
    """How good a row is (more is better) and what it costs, in the same order for all rows (less is better).

    A cost of None is unknown and is compared with nothing.
    """

    quality: float
    costs: Sequence[float | None]


def dominates(one: Point, other: Point) -> bool:
    """Return whether one point is nowhere worse than the other and somewhere better.

    Where a cost of one is unknown, the point cannot be said to be no worse: it does not dominate. Nor does it
    where no cost is known of either.
    """
    if all(cost is None for cost in one.costs):
        return False
    better = one.quality > other.quality
    if one.quality < other.quality:
        return False
    for mine, theirs in zip(one.costs, other.costs, strict=True):
        if mine is None and theirs is None:
            continue
        if mine is None or theirs is None or mine > theirs:
            return False
        better = better or mine < theirs
    return better


def dominators(points: Mapping[str, Point]) -> dict[str, tuple[str, ...]]:
    """Return for each row those that dominate it; none for a row on the frontier."""
    return {
        name: tuple(other for other, rival in points.items() if other != name and dominates(rival, point))
        for name, point in points.items()
    }


def frontier(points: Mapping[str, Point]) -> list[str]:
    """Return the rows that no other dominates, best quality first."""
    beaten = dominators(points)
    return sorted((name for name in points if not beaten[name]), key=lambda name: -points[name].quality)
