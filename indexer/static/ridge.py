"""Ridge regression on a sparse matrix with many right-hand sides.

    D = argmin ||A D - R||^2 + penalty ||D||^2

Where the smaller side of A is small, its Gram matrix is factored; otherwise conjugate gradients (Hestenes and
Stiefel 1952) run on many right-hand sides at once, with one step length for each. A'A is never formed then:
memory is O(nnz + (n + V) d).
"""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress, Silent
from indexer.vectors import Vectors

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Up to this many rows or columns the Gram matrix is factored.
DIRECT_LIMIT = 2500
#: A right-hand side is solved when its residual is this share of what it began with.
TOLERANCE = 1e-3
MAX_ITERATIONS = 200
#: Right-hand sides that one thread works on at once: a few columns of everything fit its cache better.
_COLUMNS = 64
_THREADS = min(4, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True, eq=False)
class RidgeSolution:
    """What a solver found.

    Attributes
    ----------
    coefficients
        (V, d) float32, D.
    iterations
        Steps of conjugate gradients, those of the slowest right-hand side; 0 for a direct solution.
    residual
        Largest residual of the normal equations over the right-hand sides, as a share of the first one.
    """

    coefficients: Vectors
    iterations: int
    residual: float


def solve_ridge(
    matrix: "csr_array",
    targets: Vectors,
    penalty: float,
    *,
    tolerance: float = TOLERANCE,
    direct_limit: int = DIRECT_LIMIT,
    progress: Progress | None = None,
) -> RidgeSolution:
    """Solve min ||A D - R||^2 + penalty ||D||^2 for D.

    Parameters
    ----------
    matrix
        A, (n, V) sparse float32.
    targets
        R, (n, d) float32.
    penalty
        Above 0.
    tolerance
        Where conjugate gradients stop (`TOLERANCE`), or after `MAX_ITERATIONS`.
    direct_limit
        Largest smaller side that is solved directly.

    Raises
    ------
    ValueError
        If the penalty is not above 0 or the sizes differ.
    """
    if not penalty > 0.0:
        message = f"the ridge penalty must be above 0, found {penalty}"
        raise ValueError(message)
    if matrix.shape[0] != len(targets):
        message = f"{matrix.shape[0]} rows need as many targets, found {len(targets)}"
        raise ValueError(message)
    if min(matrix.shape) == 0 or not targets.shape[1]:
        return RidgeSolution(np.zeros((matrix.shape[1], targets.shape[1]), np.float32), 0, 0.0)
    if min(matrix.shape) <= direct_limit:
        return _direct(matrix, targets, penalty)
    return _iterative(matrix, targets, penalty, tolerance, progress or Silent())


def _direct(matrix: "csr_array", targets: Vectors, penalty: float) -> RidgeSolution:
    """Factor A A' + penalty I (then D = A' Y), or A'A + penalty I, whichever is smaller; in float64."""
    from scipy.linalg import cho_factor, cho_solve

    wide = matrix.astype(np.float64)
    dual = matrix.shape[0] <= matrix.shape[1]
    gram = (wide @ wide.T if dual else wide.T @ wide).toarray()
    gram[np.diag_indices(len(gram))] += penalty
    factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    right = targets if dual else wide.T @ targets
    solved = cho_solve(factor, np.asarray(right, np.float64), check_finite=False)
    coefficients = wide.T @ solved if dual else solved
    return RidgeSolution(np.ascontiguousarray(coefficients, np.float32), 0, 0.0)


def _iterative(
    matrix: "csr_array", targets: Vectors, penalty: float, tolerance: float, progress: Progress
) -> RidgeSolution:
    """Run conjugate gradients on blocks of right-hand sides, a few blocks at a time."""
    dimensions = targets.shape[1]
    transposed = matrix.T.tocsr()
    coefficients = np.empty((matrix.shape[1], dimensions), np.float32)
    starts = range(0, dimensions, _COLUMNS)
    progress.start("fitting word vectors", dimensions, "dimensions")

    def solve(start: int) -> tuple[int, float]:
        columns = slice(start, min(start + _COLUMNS, dimensions))
        right = transposed @ np.ascontiguousarray(targets[:, columns], np.float32)
        solved, iterations, residual = _conjugate_gradients(matrix, transposed, right, penalty, tolerance)
        coefficients[:, columns] = solved
        return iterations, residual

    found: list[tuple[int, float]] = []
    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            for start, outcome in zip(starts, pool.map(solve, starts), strict=True):
                found.append(outcome)
                progress.advance(min(_COLUMNS, dimensions - start))
    finally:
        progress.finish()
    return RidgeSolution(coefficients, max(steps for steps, _ in found), max(rest for _, rest in found))


def _conjugate_gradients(
    matrix: "csr_array", transposed: "csr_array", right: Vectors, penalty: float, tolerance: float
) -> tuple[Vectors, int, float]:
    """Solve (A'A + penalty I) D = right; return D, steps and the largest relative residual.

    Preconditioned by the diagonal: words differ in frequency by orders of magnitude, and most of the
    system's ill condition is that. A right-hand side of zeros (a dimension in which the encoder is constant)
    has step lengths 0/0: it takes steps of 0, and so does one that is solved, while the others go on.
    """
    squared = np.bincount(matrix.indices, np.square(matrix.data, dtype=np.float64), minlength=matrix.shape[1])
    inverse = (1.0 / (squared + penalty)).astype(np.float32)[:, None]
    solution = np.zeros_like(right)
    residual = right.copy()
    beginning = _columns(right, right)
    goal = beginning * tolerance**2
    scaled = inverse * residual
    direction = scaled.copy()
    slope = _columns(residual, scaled)
    left = beginning
    steps = 0
    while steps < MAX_ITERATIONS and (left > goal).any():
        steps += 1
        product = transposed @ (matrix @ direction)
        product += np.float32(penalty) * direction
        length = _quotient(slope, _columns(direction, product), left > goal)
        solution += length * direction
        residual -= length * product
        left = _columns(residual, residual)
        np.multiply(inverse, residual, out=scaled)
        steeper = _columns(residual, scaled)
        direction *= _quotient(steeper, slope, left > goal)
        direction += scaled
        slope = steeper
    shares = np.divide(left, beginning, out=np.zeros_like(left), where=beginning > 0)
    return solution, steps, float(np.sqrt(shares.max()))


def _columns(first: Vectors, second: Vectors) -> NDArray[np.float64]:
    """Return the inner product of each pair of columns."""
    products: NDArray[np.float64] = np.einsum("vd,vd->d", first, second, dtype=np.float64)
    return products


def _quotient(above: NDArray[np.float64], below: NDArray[np.float64], where: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Divide where asked and possible; 0 elsewhere."""
    return np.divide(above, below, out=np.zeros_like(above), where=where & (below > 0)).astype(np.float32)
