"""Is a difference more than chance? Paired randomisation, Holm's correction, bootstrap intervals.

Randomisation: R. A. Fisher 1935; for retrieval, M. D. Smucker, J. Allan and B. Carterette, "A comparison of
statistical significance tests for information retrieval evaluation", CIKM 2007. Correction: S. Holm, "A
simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979. Intervals:
B. Efron, "Better bootstrap confidence intervals", JASA 82, 1987.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Below this many judged queries no difference is called one.
FEWEST_QUERIES = 30
PERMUTATIONS = 10_000
RESAMPLES = 10_000
_ROWS_AT_ONCE = 1_000


class Outcomes(NamedTuple):
    """On how many queries one row scores higher, the same, and lower than another."""

    wins: int
    ties: int
    losses: int


def enough_queries(queries: int) -> bool:
    """Return whether there are enough judged queries to tell rows apart."""
    return queries >= FEWEST_QUERIES


def randomisation_p(differences: Floats, rng: np.random.Generator, *, permutations: int = PERMUTATIONS) -> Floats:
    """Return the two-sided p of paired randomisation tests.

    If two systems were alike, the sign of each query's difference would be a coin's. p = (b + 1) / (m + 1),
    where b of m random assignments of signs give a mean at least as far from 0 as the one observed.

    Parameters
    ----------
    differences
        (q, t) float64: a row a query, a column a test. All tests see the same coins.
    rng
        Source of the signs.
    permutations
        m.

    Returns
    -------
    Floats
        (t,) float64 in (0, 1]; 1 where every difference is 0.
    """
    q, t = differences.shape
    observed = np.abs(differences.sum(axis=0))
    # Sums that are equal on paper differ in their last digits, by the order of summation.
    at_least = observed - 1e-11 * np.abs(differences).sum(axis=0)
    extreme = np.zeros(t, dtype=np.int64)
    for rows in _chunks(permutations):
        signs = rng.integers(0, 2, size=(rows, q), dtype=np.int8) * np.int8(2) - np.int8(1)
        extreme += (np.abs(signs.astype(np.float64) @ differences) >= at_least).sum(axis=0)
    return np.asarray((extreme + 1) / (permutations + 1), dtype=np.float64)


def exact_p(differences: Floats) -> Floats:
    """Return the two-sided p over all 2^q assignments of signs: the plain twin of `randomisation_p`.

    Parameters
    ----------
    differences
        (q, t) float64, q at most 20.

    Raises
    ------
    ValueError
        If q is above 20.
    """
    q = len(differences)
    if q > 20:
        message = f"{q} queries have 2^{q} assignments of signs; ask for at most 20, or use randomisation_p"
        raise ValueError(message)
    signs = 1.0 - 2.0 * ((np.arange(2**q)[:, None] >> np.arange(q)) & 1)
    at_least = np.abs(differences.sum(axis=0)) - 1e-11 * np.abs(differences).sum(axis=0)
    return np.asarray((np.abs(signs @ differences) >= at_least).mean(axis=0), dtype=np.float64)


def holm(p: Floats) -> Floats:
    """Return p values corrected for being many, by Holm's step-down method.

    Parameters
    ----------
    p
        (t,) float64.

    Returns
    -------
    Floats
        (t,) float64: the smallest level at which each would be called significant, at most 1.
    """
    order = np.argsort(p, kind="stable")
    stepped = p[order] * np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(stepped)) if len(p) else stepped
    return corrected


def bootstrap_intervals(
    values: Floats, rng: np.random.Generator, *, resamples: int = RESAMPLES, confidence: float = 0.95
) -> Floats:
    """Return bias-corrected and accelerated bootstrap intervals of column means.

    What scipy.stats.bootstrap(method="BCa") computes, for many columns on the same resamples in one product:
    the acceleration of a mean has a closed form.

    Parameters
    ----------
    values
        (q, t) float64: a row a query, a column a quantity.
    rng
        Source of the resamples.
    resamples
        How many.
    confidence
        The share of such intervals that are to hold the true mean.

    Returns
    -------
    Floats
        (t, 2) float64, low and high. One query, or equal values, give an interval without width.
    """
    from scipy.special import ndtr, ndtri

    q, t = values.shape
    mean = values.mean(axis=0)
    if q < 2:
        return np.column_stack((mean, mean))
    means = np.concatenate([_resampled(values, rows, rng) for rows in _chunks(resamples)])
    slack = 1e-12 * np.abs(values).max(axis=0)
    below = ((means < mean - slack).sum(axis=0) + (means <= mean + slack).sum(axis=0)) / (2 * resamples)
    # All values alike, or so few that every resample lies on one side: no correction to be had.
    bias = ndtri(np.clip(below, 0.5 / resamples, 1 - 0.5 / resamples))
    deviations = values - mean
    spread = (deviations**2).sum(axis=0)
    varied = np.ptp(values, axis=0) > slack
    acceleration = np.zeros(t)
    np.divide((deviations**3).sum(axis=0), 6 * spread**1.5, out=acceleration, where=varied)
    intervals = np.empty((t, 2))
    for side, level in enumerate(((1 - confidence) / 2, (1 + confidence) / 2)):
        shifted = bias + ndtri(level)
        quantiles = ndtr(bias + shifted / (1 - acceleration * shifted))
        intervals[:, side] = [np.quantile(means[:, column], quantiles[column]) for column in range(t)]
    intervals[~varied] = mean[~varied, None]
    return intervals


def outcomes(differences: Floats) -> Outcomes:
    """Return on how many queries a difference is above, at and below 0."""
    alike = np.abs(differences) <= 1e-12
    above = int(((differences > 0) & ~alike).sum())
    return Outcomes(above, int(alike.sum()), len(differences) - above - int(alike.sum()))


def _chunks(total: int) -> Iterator[int]:
    while total > 0:
        yield min(total, _ROWS_AT_ONCE)
        total -= _ROWS_AT_ONCE


def _resampled(values: Floats, rows: int, rng: np.random.Generator) -> Floats:
    """Return the column means of `rows` samples with replacement."""
    q = len(values)
    drawn = rng.integers(0, q, size=(rows, q)) + q * np.arange(rows)[:, None]
    weights = np.bincount(drawn.ravel(), minlength=rows * q).reshape(rows, q)
    return np.asarray(weights.astype(np.float64) @ values / q, dtype=np.float64)
