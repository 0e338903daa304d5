"""How large cosines between unrelated texts are in a space: what a score must be compared with.

A cosine of .7 is a near duplicate in one space and an everyday value in another.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexer.vectors import Vectors, normalize

#: Percentages at which quantiles are kept; denser towards the top, where scores of hits lie.
LEVELS = (
    *(float(level) for level in range(0, 90, 5)),
    *(float(level) for level in range(90, 99)),
    *(99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 100.0),
)
DEFAULT_PAIRS = 100_000
#: Texts that pairs are drawn from, where there are more.
SAMPLE = 5_000


@dataclass(frozen=True, slots=True)
class CosineBackground:
    """Quantiles of the cosines of random pairs of texts.

    Attributes
    ----------
    values
        Cosines, rising, one for each of `LEVELS`.
    """

    values: tuple[float, ...]

    @classmethod
    def of(cls, cosines: ArrayLike) -> Self | None:
        """Return the background of a number of cosines; None if there are none."""
        array = np.asarray(cosines, np.float64)
        return cls(tuple(np.percentile(array, LEVELS).tolist())) if array.size else None

    @classmethod
    def from_json(cls, values: Sequence[float] | None) -> Self | None:
        """Return what `to_json` wrote; None for anything that is not one rising number a level."""
        if values is None or len(values) != len(LEVELS) or np.any(np.diff(np.asarray(values, np.float64)) < 0.0):
            return None
        return cls(tuple(float(value) for value in values))

    def to_json(self) -> list[float]:
        """Return the quantiles, to six places."""
        return [round(value, 6) for value in self.values]

    def percentile(self, score: float) -> float:
        """Return which percentage of random pairs has a lower cosine, 0 to 100.

        Linear between quantiles; a score that several quantiles equal gets the middle of them.
        """
        low = int(np.searchsorted(self.values, score, side="left"))
        high = int(np.searchsorted(self.values, score, side="right"))
        if low < high:
            return (LEVELS[low] + LEVELS[high - 1]) / 2.0
        return float(np.interp(score, self.values, LEVELS))


@dataclass
class RowSample:
    """Some rows of vectors that stream by: `rows` are their numbers, ascending."""

    rows: NDArray[np.int64]
    _kept: list[Vectors] = field(default_factory=list)

    def watch(self, blocks: Iterable[Vectors]) -> Iterator[Vectors]:
        """Pass blocks on, and keep the rows that are wanted."""
        self._kept, seen = [], 0
        for block in blocks:
            first, last = np.searchsorted(self.rows, (seen, seen + len(block)))
            self._kept.append(block[self.rows[first:last] - seen])
            seen += len(block)
            yield block

    @property
    def vectors(self) -> Vectors:
        """The rows seen so far: (r, d)."""
        return np.concatenate(self._kept) if self._kept else np.zeros((0, 1), np.float32)


def random_cosines(vectors: Vectors, rng: np.random.Generator, pairs: int = DEFAULT_PAIRS) -> NDArray[np.float64]:
    """Return the cosines of random pairs of different rows; of all pairs, where those are not more.

    Parameters
    ----------
    vectors
        (n, d), of any length. Rows of zeros are left out.
    rng
        Chooses the pairs.
    pairs
        Pairs wanted.

    Returns
    -------
    (p,) float64, empty for fewer than two rows.
    """
    units = normalize(vectors[np.any(vectors != 0.0, axis=1)])
    n = len(units)
    if n * (n - 1) // 2 <= pairs:
        first, second = np.triu_indices(n, k=1)
    else:
        first = rng.integers(n, size=pairs)
        # A step of 1 to n - 1 further on, around the end, is never the row itself.
        second = (first + rng.integers(1, n, size=pairs)) % n
    cosines = np.empty(len(first))
    for at in range(0, len(first), 4096):
        rows = slice(at, at + 4096)
        cosines[rows] = np.einsum("pd,pd->p", units[first[rows]], units[second[rows]], dtype=np.float64)
    return np.clip(cosines, -1.0, 1.0)
