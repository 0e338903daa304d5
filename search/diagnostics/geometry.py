"""The shape of a vector space, as a sample of its vectors shows it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.cosine_background import DEFAULT_PAIRS, CosineBackground, random_cosines
from indexer.vectors import Vectors, as_float32, normalize

Float64 = NDArray[np.float64]

#: Rows looked at for neighbours and the spectrum: every pair of them is compared.
DEFAULT_SAMPLE = 3000
_NEIGHBOURS = 10
_BINS = 40


class Histogram(NamedTuple):
    """Counts of values between edges; one more edge than counts."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a space looks like.

    Attributes
    ----------
    count, sampled, dimension
        Vectors n there are (rows of zeros apart), how many of them were looked at, and dimensions d.
    zero_rows
        Rows of zeros: texts of which the encoder knows nothing.
    duplicates
        Sampled rows that equal an earlier one.
    mean_cosine
        Mean cosine of random pairs: 0 in an isotropic space.
    nearest_cosine
        Mean cosine of a text and its nearest neighbour; None for one text.
    isoscore
        Rudman et al. 2022, 0 (one direction holds all variance) to 1 (all the same).
    effective_rank
        Roy and Vetterli 2007, 1 to d.
    first_1, first_3, first_10
        Share of the variance in the first directions, 0 to 1.
    hubness
        Skewness of the 10-occurrence: 0 where all texts are equally often among others' ten nearest.
    norm_mean, norm_spread
        Mean length before scaling to unit length, and the standard deviation over that mean.
    spectrum
        Eigenvalues of the covariance of the unit vectors, largest first.
    histogram
        Cosines of random pairs.
    background
        Their quantiles; None for one text.
    notes
        Why a figure says little.
    """

    count: int
    sampled: int
    dimension: int
    zero_rows: int
    duplicates: int
    mean_cosine: float
    nearest_cosine: float | None
    isoscore: float
    effective_rank: float
    first_1: float
    first_3: float
    first_10: float
    hubness: float | None
    norm_mean: float
    norm_spread: float
    spectrum: tuple[float, ...]
    histogram: Histogram
    background: CosineBackground | None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        return {
            "count": self.count,
            "sampled": self.sampled,
            "dimension": self.dimension,
            "zero_rows": self.zero_rows,
            "duplicates": self.duplicates,
            "mean_cosine": self.mean_cosine,
            "nearest_cosine": self.nearest_cosine,
            "isoscore": self.isoscore,
            "effective_rank": self.effective_rank,
            "variance_share": {"1": self.first_1, "3": self.first_3, "10": self.first_10},
            "hubness": self.hubness,
            "norm_mean": self.norm_mean,
            "norm_spread": self.norm_spread,
            "spectrum": [float(f"{value:.6g}") for value in self.spectrum],
            "histogram": {"edges": list(self.histogram.edges), "counts": list(self.histogram.counts)},
            "notes": list(self.notes),
        }


def geometry(
    vectors: Vectors,
    rng: np.random.Generator,
    *,
    sample: int = DEFAULT_SAMPLE,
    pairs: int = DEFAULT_PAIRS,
    unit: bool = True,
) -> Geometry:
    """Look at a space.

    Parameters
    ----------
    vectors
        (n, d), of any length; `norm_mean` and `norm_spread` are of these.
    rng
        Chooses rows and pairs.
    sample
        Most rows for neighbours and the spectrum.
    pairs
        Random pairs for cosines.
    unit
        Whether to scale rows to unit length first, as retrieval does. False shows the spectrum and IsoScore
        as whitening leaves them, before it is renormalised.
    """
    given = as_float32(vectors)
    known = np.any(given != 0.0, axis=1)
    rows = given[known]
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
    chosen = rows[np.sort(rng.choice(len(rows), sample, replace=False))] if len(rows) > sample else rows
    units = normalize(chosen)
    cosines = random_cosines(rows, rng, pairs)
    spectrum = covariance_spectrum(units if unit else chosen)
    nearest, hubs = _neighbours(units)
    norm = float(lengths.mean()) if len(lengths) else 0.0
    return Geometry(
        count=len(rows),
        sampled=len(chosen),
        dimension=given.shape[1],
        zero_rows=int((~known).sum()),
        duplicates=len(chosen) - len(np.unique(chosen, axis=0)),
        mean_cosine=float(cosines.mean()) if len(cosines) else 0.0,
        nearest_cosine=nearest,
        isoscore=isoscore(spectrum),
        effective_rank=effective_rank(spectrum),
        first_1=variance_share(spectrum, 1),
        first_3=variance_share(spectrum, 3),
        first_10=variance_share(spectrum, 10),
        hubness=hubs,
        norm_mean=norm,
        norm_spread=float(lengths.std() / norm) if norm else 0.0,
        spectrum=tuple(spectrum.tolist()),
        histogram=_histogram(cosines),
        background=CosineBackground.of(cosines),
        notes=_notes(len(chosen), given.shape[1]),
    )


def mean_cosine(vectors: Vectors, rng: np.random.Generator, pairs: int = DEFAULT_PAIRS) -> float:
    """Return the mean cosine of random pairs of different rows; 0 for fewer than two."""
    cosines = random_cosines(vectors, rng, pairs)
    return float(cosines.mean()) if len(cosines) else 0.0


def covariance_spectrum(vectors: Vectors) -> Float64:
    """Return the (d,) eigenvalues of the covariance of (n, d) vectors, largest first; zeros for n < 2."""
    wide = np.asarray(vectors, np.float64)
    if len(wide) < 2:
        return np.zeros(wide.shape[1])
    centred = wide - wide.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred / (len(wide) - 1))[::-1]
    return np.maximum(values, 0.0)


def isoscore(spectrum: Float64) -> float:
    """Return the IsoScore of a covariance's (d,) eigenvalues l.

    Rudman, Gillman, Rayne and Eickhoff, "IsoScore: measuring the uniformity of embedding space utilization",
    Findings of ACL 2022. With l scaled to length sqrt(d), the isotropy defect is
    delta = |l - 1| / sqrt(2 (d - sqrt(d))), and the score is (d phi - 1) / (d - 1) with
    phi = (d - delta^2 (d - sqrt(d)))^2 / d^2. That phi is (sum l)^2 / (d sum l^2), which is computed here: no
    cancellation. k equal eigenvalues among zeros give (k - 1) / (d - 1). No variance at all gives 0, and so
    does a single dimension.
    """
    d = len(spectrum)
    # Scaled by the largest, so that squares of tiny eigenvalues do not underflow.
    largest = float(spectrum.max(initial=0.0))
    if d < 2 or largest <= 0.0:
        return 0.0
    shares = spectrum / largest
    used = float(shares.sum() ** 2 / (shares**2).sum())
    return min(1.0, max(0.0, (used - 1.0) / (d - 1.0)))


def effective_rank(spectrum: Float64) -> float:
    """Return exp(entropy) of the singular values of the centred vectors, scaled to sum 1; 0 without variance.

    Roy and Vetterli, "The effective rank: a measure of effective dimensionality", EUSIPCO 2007. The singular
    values are the square roots of the covariance's eigenvalues, up to a factor that scaling removes.
    """
    roots = np.sqrt(np.maximum(spectrum, 0.0))
    total = float(roots.sum())
    if total <= 0.0:
        return 0.0
    shares = roots[roots > 0.0] / total
    return float(np.exp(-(shares * np.log(shares)).sum()))


def variance_share(spectrum: Float64, directions: int) -> float:
    """Return the share of the variance in the first directions; 0 without variance."""
    total = float(spectrum.sum())
    return float(spectrum[:directions].sum()) / total if total > 0.0 else 0.0


def skewness(values: NDArray[Any]) -> float:
    """Return the third standardised moment E((x - mean)^3) / sd^3; 0 where all values are the same."""
    centred = np.asarray(values, np.float64) - np.mean(values)
    variance = float(np.mean(centred**2))
    return float(np.mean(centred**3) / variance**1.5) if variance > 0.0 else 0.0


def occurrences(units: Vectors, k: int = _NEIGHBOURS) -> NDArray[np.int64]:
    """Return, for each of n unit rows, among how many other rows' k nearest it is (k at most n - 1).

    Radovanovic, Nanopoulos and Ivanovic, "Hubs in space", JMLR 2010: the skewness of these counts.
    """
    n = len(units)
    k = min(k, n - 1)
    counts = np.zeros(n, np.int64)
    if k < 1:
        return counts
    for cosines in _blocks(units):
        nearest = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
        counts += np.bincount(nearest.ravel(), minlength=n)
    return counts


def _blocks(units: Vectors) -> Iterator[Vectors]:
    """Yield the cosines of some rows with all rows, their own being minus infinity."""
    for start in range(0, len(units), 512):
        cosines = units[start : start + 512] @ units.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf
        yield cosines


def _neighbours(units: Vectors) -> tuple[float | None, float | None]:
    if len(units) < 2:
        return None, None
    best = np.concatenate([cosines.max(axis=1) for cosines in _blocks(units)])
    return float(np.clip(best, -1.0, 1.0).mean(dtype=np.float64)), skewness(occurrences(units))


def _histogram(cosines: Float64) -> Histogram:
    counts, edges = np.histogram(cosines, bins=_BINS, range=(-1.0, 1.0))
    return Histogram(tuple(np.round(edges, 6).tolist()), tuple(int(count) for count in counts))


def _notes(sampled: int, dimension: int) -> tuple[str, ...]:
    if sampled < 2:
        return (f"{sampled} texts: a space takes at least two to be looked at",)
    if sampled < 3 * dimension:
        note = (
            f"{sampled} vectors in {dimension} dimensions: IsoScore and effective rank come out lower than"
            f" {3 * dimension} or more would show"
        )
        return (note,)
    return ()
