"""Word vectors fitted to the contextual vectors of one corpus, in closed form.

    W = s P + D,    D = argmin ||A W - X||^2 + ridge ||D||^2

A holds one row a passage: word counts times weights, of unit length. X holds the passages' contextual
vectors, P each word of the vocabulary encoded alone, s = <AP, X> / <AP, AP>. A text is then encoded as the
unit vector of a W: a weighted average of word vectors, no forward pass. Neither queries nor judgements are
used. X and P are centred: what all passages share tells none of them apart, and a query is compared with
passages that were encoded by the same table.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from corpora.progress import Progress, Silent
from indexer.static.averaging import TermFrequency
from indexer.static.ridge import TOLERANCE, RidgeSolution, solve_ridge
from indexer.static.weights import idf
from indexer.vectors import Vectors, as_float32, normalize

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Where the ridge is not chosen on held-out passages, because there are too few of them.
DEFAULT_RIDGE = 0.3
RIDGES = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.2)
_FEWEST_PASSAGES = 100
_HELD_OUT = 2_000
_TRAINING = 20_000
#: Dimensions that the ridge is chosen in: random directions of the teacher's space.
_PROBES = 64
#: Teacher vectors shorter than this are all one point.
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How word vectors are fitted.

    Attributes
    ----------
    ridge
        Penalty on what a word's vector departs from its prior; None: chosen on held-out passages.
    exponent
        A word weighs idf ** exponent.
    term_frequency
        What a repeated word counts.
    tolerance
        Where conjugate gradients stop, as a share of the first residual.
    seed
        Draws the held-out passages.
    """

    ridge: float | None = None
    exponent: float = 1.25
    term_frequency: TermFrequency = TermFrequency.RAW
    tolerance: float = TOLERANCE
    seed: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class FittedTable:
    """Fitted word vectors, and how they came about.

    Attributes
    ----------
    table
        (V, d) float32, W.
    weights
        (V,) float32, idf ** exponent.
    prior_mean
        (d,) float32: mean of the words encoded alone, taken off before they are scaled to unit length.
    prior_scale
        s; 0 without a prior.
    ridge
        The penalty used; 0 where nothing was fitted.
    passages
        Rows fitted to, those without words or without a vector left out.
    iterations
        Steps of conjugate gradients; 0 for a direct solution.
    residual
        What they left of the normal equations' first residual.
    held_out_cosine
        Mean cosine of encoded held-out passages with the teacher's vectors (in a random projection); NaN
        where no passages were held out.
    seconds
        Wall time of the fit.
    """

    table: Vectors
    weights: NDArray[np.float32]
    prior_mean: NDArray[np.float32]
    prior_scale: float
    ridge: float
    passages: int
    iterations: int
    residual: float
    held_out_cosine: float
    seconds: float


def fit_table(
    counts: "csr_array",
    teacher: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    idf_weights: NDArray[np.float32] | None = None,
    options: FitOptions | None = None,
    progress: Progress | None = None,
) -> FittedTable:
    """Fit a table of word vectors to the contextual vectors of passages.

    Parameters
    ----------
    counts
        (n, V): how often each word occurs in each passage (`word_counts`).
    teacher
        (n, d) contextual vectors X, centred or whitened, of unit length. Rows of zeros are left out.
    prior
        (V, d) each word encoded alone, in the teacher's space; None: words start from nothing.
    idf_weights
        (V,) idf over the whole corpus; None: taken from `counts`. The two differ where only a share of the
        passages is fitted to.
    options
        `FitOptions`, the defaults where None.
    progress
        Told of the fit.

    Raises
    ------
    ValueError
        If sizes differ, or a vector holds a value that is not a finite number.
    """
    started = time.perf_counter()
    options = options or FitOptions()
    progress = progress or Silent()
    vectors = as_float32(teacher)
    words = counts.shape[1]
    alone = np.zeros((words, vectors.shape[1]), np.float32) if prior is None else as_float32(prior)
    if idf_weights is None:
        idf_weights = idf(np.bincount(counts.indices, minlength=words), counts.shape[0])
    _check(counts, vectors, alone, idf_weights)
    weights: NDArray[np.float32] = np.power(idf_weights, np.float32(options.exponent), dtype=np.float32)
    prior_mean = alone.mean(axis=0) if words else np.zeros(vectors.shape[1], np.float32)
    centred = normalize(alone - prior_mean)

    rows = np.flatnonzero((np.diff(counts.indptr) > 0) & (np.abs(vectors).max(axis=1, initial=0) > _NOTHING))
    table = FittedTable(centred, weights, prior_mean, float(prior is not None), 0.0, 0, 0, 0.0, np.nan, 0.0)
    if not len(rows):
        progress.note("the passages' contextual vectors are all alike: words keep the vectors they have alone")
        return replace(table, seconds=time.perf_counter() - started)
    matrix = design(counts[rows], weights, options.term_frequency)
    targets = vectors[rows]
    ridge, cosine = options.ridge, np.nan
    if ridge is None:
        ridge, cosine = _choose_ridge(matrix, targets, centred, options, progress)
    solution, scale = _fit(matrix, targets, centred, ridge, options, progress)
    return replace(
        table,
        table=solution.coefficients,
        prior_scale=scale,
        ridge=ridge,
        passages=len(rows),
        iterations=solution.iterations,
        residual=solution.residual,
        held_out_cosine=cosine,
        seconds=time.perf_counter() - started,
    )


def distil_table(prior: ArrayLike, idf_weights: NDArray[np.float32], exponent: float = 1.0) -> FittedTable:
    """Return the table of words encoded alone, centred and of unit length: a fit to no passages.

    `prior` is (V, d), `idf_weights` (V,).
    """
    alone = as_float32(prior)
    mean = alone.mean(axis=0) if len(alone) else np.zeros(alone.shape[1], np.float32)
    weights = np.power(idf_weights, np.float32(exponent), dtype=np.float32)
    return FittedTable(normalize(alone - mean), weights, mean, 1.0, 0.0, 0, 0, 0.0, np.nan, 0.0)


def _check(counts: "csr_array", vectors: Vectors, prior: Vectors, idf_weights: NDArray[np.float32]) -> None:
    expected = ((counts.shape[0], vectors.shape[1]), (counts.shape[1], vectors.shape[1]), (counts.shape[1],))
    found = (vectors.shape, prior.shape, idf_weights.shape)
    if found != expected:
        message = (
            f"counts of {counts.shape[0]} passages and {counts.shape[1]} words need teacher, prior and idf of"
            f" shapes {expected}, found {found}"
        )
        raise ValueError(message)
    for name, array in (("teacher", vectors), ("prior", prior)):
        if not np.isfinite(array).all():
            row = int(np.argmin(np.isfinite(array).all(axis=1)))
            message = f"row {row} of the {name}'s vectors holds a value that is not a finite number"
            raise ValueError(message)


def design(counts: "csr_array", weights: NDArray[np.float32], term_frequency: TermFrequency) -> "csr_array":
    """Return A, (n, V) float32: counts (or 1 + ln of them) times weights, rows of unit length."""
    from scipy.sparse import csr_array

    data = counts.data.astype(np.float32)
    if term_frequency is TermFrequency.LOG:
        data = 1 + np.log(data)
    data *= weights[counts.indices]
    lengths = np.diff(counts.indptr)
    numbers = np.repeat(np.arange(counts.shape[0]), lengths)
    squares = np.bincount(numbers, np.square(data, dtype=np.float64), minlength=counts.shape[0])
    data /= np.sqrt(np.where(squares > 0, squares, 1.0)).astype(np.float32)[numbers]
    return csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def _fit(
    matrix: "csr_array",
    targets: Vectors,
    prior: Vectors,
    ridge: float,
    options: FitOptions,
    progress: Progress,
) -> tuple[RidgeSolution, float]:
    """Return W (as a solution's coefficients) and s."""
    predicted = as_float32(matrix @ prior)
    above = float(np.einsum("nd,nd->", predicted, targets, dtype=np.float64))
    below = float(np.einsum("nd,nd->", predicted, predicted, dtype=np.float64))
    scale = max(above / below, 0.0) if below > 0 else 0.0
    predicted *= -np.float32(scale)
    predicted += targets
    solution = solve_ridge(matrix, predicted, ridge, tolerance=options.tolerance, progress=progress)
    return replace(solution, coefficients=solution.coefficients + np.float32(scale) * prior), scale


def _choose_ridge(
    matrix: "csr_array", targets: Vectors, prior: Vectors, options: FitOptions, progress: Progress
) -> tuple[float, float]:
    """Return the ridge whose fit to some passages predicts others best, and the mean cosine of those.

    A tenth of the passages is held out, at most `_HELD_OUT`, and at most `_TRAINING` others are fitted to;
    all in `_PROBES` random directions, which keep cosines close enough to tell one ridge from another.
    """
    count = len(targets)
    if count < _FEWEST_PASSAGES:
        return DEFAULT_RIDGE, np.nan
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(count)
    size = min(count // 10, _HELD_OUT)
    held, training = np.sort(order[:size]), np.sort(order[size : size + _TRAINING])
    dimensions = targets.shape[1]
    probes, _ = np.linalg.qr(rng.standard_normal((dimensions, min(_PROBES, dimensions))))
    probes = probes.astype(np.float32)
    seen, unseen = matrix[training], matrix[held]
    # Words of other passages play no part; leaving them out keeps a choice of ridge far below the fit's cost.
    used = np.flatnonzero(np.bincount(np.concatenate([seen.indices, unseen.indices]), minlength=matrix.shape[1]))
    seen, unseen, prior = seen[:, used], unseen[:, used], prior[used] @ probes
    goal, expected = targets[training] @ probes, normalize(targets[held] @ probes)
    best = (DEFAULT_RIDGE, -np.inf)
    progress.start("choosing the ridge", len(RIDGES), "fits")
    for ridge in RIDGES:
        solution, _ = _fit(seen, goal, prior, ridge, replace(options, tolerance=1e-2), Silent())
        found = normalize(unseen @ solution.coefficients)
        cosine = float(np.einsum("nd,nd->n", found, expected, dtype=np.float64).mean())
        best = max(best, (ridge, cosine), key=lambda pair: pair[1])
        progress.advance()
    progress.finish()
    return best
