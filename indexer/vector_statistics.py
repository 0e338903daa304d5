"""Mean, scatter and mean cosine of vectors, gathered block by block."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from indexer.errors import ModelError
from indexer.vectors import Vectors

Float64 = NDArray[np.float64]

BLOCK_ROWS = 8192


@dataclass(frozen=True, slots=True)
class VectorStatistics:
    """Mean and scatter of vectors in float64, gathered block by block and added up.

    Rows of zeros (texts of which the encoder knows nothing) are counted and otherwise left out.

    Attributes
    ----------
    count
        Rows n that are not zeros.
    zero_rows
        Rows that are.
    mean
        (d,) mean m of the rows.
    scatter
        (d, d) sum of (x - m)(x - m)'.
    unit_sum
        (d,) sum of the rows scaled to unit length.
    """

    count: int
    zero_rows: int
    mean: Float64
    scatter: Float64
    unit_sum: Float64

    @classmethod
    def of(cls, block: Vectors) -> Self:
        """Return the statistics of one (b, d) block.

        Raises
        ------
        ModelError
            If a value is not a finite number.
        """
        wide = np.asarray(block, np.float64)
        if wide.ndim != 2:
            message = f"vectors must be an (n, d) array, found shape {wide.shape}"
            raise ValueError(message)
        refuse_non_finite(wide)
        lengths = np.sqrt(np.einsum("nd,nd->n", wide, wide))
        known = lengths > 0.0
        rows, lengths = wide[known], lengths[known]
        mean = rows.mean(axis=0) if len(rows) else np.zeros(wide.shape[1])
        centred = rows - mean
        return cls(len(rows), int((~known).sum()), mean, centred.T @ centred, (1.0 / lengths) @ rows)

    @classmethod
    def gather(cls, blocks: Vectors | Iterable[Vectors]) -> Self:
        """Return the statistics of an (n, d) array or of all blocks of an iterable, in one pass.

        Raises
        ------
        ModelError
            If there is no block, or a value is not a finite number.
        """
        if isinstance(blocks, np.ndarray):
            blocks = [blocks[at : at + BLOCK_ROWS] for at in range(0, max(len(blocks), 1), BLOCK_ROWS)]
        total: Self | None = None
        for block in blocks:
            part = cls.of(block)
            total = part if total is None else total + part
        if total is None:
            message = "there are no vectors to take statistics of; give at least one block"
            raise ModelError(message)
        return total

    def __add__(self, other: Self) -> Self:
        """Return the statistics of both sets (Chan, Golub and LeVeque 1979: no cancellation)."""
        count = self.count + other.count
        zero_rows = self.zero_rows + other.zero_rows
        if not self.count or not other.count:
            some = other if other.count else self
            return type(self)(count, zero_rows, some.mean, some.scatter, some.unit_sum)
        step = other.mean - self.mean
        scatter = self.scatter + other.scatter
        scatter += np.outer(step, step) * (self.count * other.count / count)
        mean = self.mean + step * (other.count / count)
        return type(self)(count, zero_rows, mean, scatter, self.unit_sum + other.unit_sum)

    @property
    def dimension(self) -> int:
        """Dimensions d."""
        return len(self.mean)

    @property
    def covariance(self) -> Float64:
        """(d, d) sample covariance (n - 1 below the line); zeros for fewer than two rows."""
        return self.scatter / max(self.count - 1, 1)

    @property
    def is_degenerate(self) -> bool:
        """Whether there are fewer than two different rows (rounding apart)."""
        size = float(self.mean @ self.mean) * self.count
        return self.count < 2 or float(np.trace(self.scatter)) <= 1e-10 * size

    @property
    def mean_cosine(self) -> float:
        """Mean cosine c over all pairs of different rows, exact: (|sum u|^2 - n) / (n (n - 1)).

        0 for fewer than two rows.
        """
        if self.count < 2:
            return 0.0
        total = float(self.unit_sum @ self.unit_sum)
        return (total - self.count) / (self.count * (self.count - 1.0))


def refuse_non_finite(values: NDArray[Any]) -> None:
    """Raise ModelError if a value of an (n, d) array is not a finite number."""
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        message = (
            f"row {int(np.argmin(finite))} of {len(values)} vectors holds a value that is not a finite"
            " number; the encoder overflowed: try --precision fp32"
        )
        raise ModelError(message)
