"""Whitening: take the common direction out of a vector space and even out its spectrum.

    y = (x - a m) U l'^(-1/2),    l'_i = (1 - e) l_i + e mean(l)

m and U diag(l) U' are mean and covariance of the vectors of the collection. e = 0 is textbook whitening (the
covariance becomes the identity), e = 1 only moves the origin. `y` is given before it is scaled to unit
length; whoever compares by cosine calls `indexer.vectors.normalize` on it.
"""

import hashlib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from indexer.errors import DamagedIndexError, ModelError, SpecError
from indexer.vectors import Vectors, as_float32

Float64 = NDArray[np.float64]

#: A direction with less variance than this share of the mean variance holds rounding errors, not text.
NULL_SHARE = 1e-5

_FORMAT = 1
_BLOCK_ROWS = 8192


class WhiteningMode(StrEnum):
    """How the strength of a whitening is chosen."""

    AUTO = "auto"
    NONE = "none"
    RANK = "rank"
    SHRINKAGE = "shrinkage"


@dataclass(frozen=True, slots=True)
class WhiteningSpec:
    """A whitening as asked for.

    ==============  ====================================================================
    `auto`          strength from the measured anisotropy (`choose_shrinkage`)
    `none`          vectors stay as they are
    `128`           an integer from 1 up: the first 128 principal directions, e = 0
    `0.1`, `0`      a number from 0 to 1 that is no integer above 0: shrinkage e, all directions
                    (`1.0` is e = 1, centring alone; `1` is rank 1)
    `128/0.1`       both
    ==============  ====================================================================
    """

    mode: WhiteningMode = WhiteningMode.AUTO
    rank: int | None = None
    shrinkage: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the notation.

        Raises
        ------
        SpecError
            If the text is none of the forms above.
        """
        given = text.strip().lower()
        if given in {WhiteningMode.AUTO, WhiteningMode.NONE}:
            return cls(WhiteningMode(given))
        first, slash, second = given.partition("/")
        try:
            if slash:
                return cls(WhiteningMode.RANK, _rank(first), _shrinkage(second))
            if first.isdecimal() and int(first) > 0:
                return cls(WhiteningMode.RANK, _rank(first), 0.0)
            return cls(WhiteningMode.SHRINKAGE, None, _shrinkage(first))
        except ValueError:
            message = (
                f"whitening {text!r} is none of: auto, none, a rank (128), a shrinkage from 0 to 1 (0.1),"
                " or both (128/0.1)"
            )
            raise SpecError(message) from None

    def notation(self) -> str:
        """Return the text that parses to this spec."""
        match self.mode:
            case WhiteningMode.AUTO | WhiteningMode.NONE:
                return str(self.mode)
            case WhiteningMode.RANK:
                return f"{self.rank}/{self.shrinkage}" if self.shrinkage else str(self.rank)
            case WhiteningMode.SHRINKAGE:
                return str(self.shrinkage)


def _rank(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise ValueError(text)
    return int(text)


def _shrinkage(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError(text)
    return value


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
        _refuse_non_finite(wide)
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
            blocks = [blocks[at : at + _BLOCK_ROWS] for at in range(0, max(len(blocks), 1), _BLOCK_ROWS)]
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


def _refuse_non_finite(values: NDArray[np.floating]) -> None:
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        message = (
            f"row {int(np.argmin(finite))} of {len(values)} vectors holds a value that is not a finite"
            " number; the encoder overflowed: try --precision fp32"
        )
        raise ModelError(message)


def choose_shrinkage(anisotropy: float) -> float:
    """Return e for a space whose random texts have this mean cosine: 1 - c^2."""
    return float(1.0 - np.clip(anisotropy, 0.0, 1.0) ** 2)


def small_sample_shrinkage(spectrum: Float64, count: int) -> float:
    """Return the e below which n vectors say nothing about the spectrum.

    The oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010): the e whose shrunk
    covariance is nearest to the true one for Gaussian vectors. Near 1 for n far below d, near 0 above.

    Parameters
    ----------
    spectrum
        (d,) eigenvalues of the sample covariance.
    count
        Vectors n it was taken from.
    """
    d = len(spectrum)
    trace, squares = float(spectrum.sum()), float((spectrum**2).sum())
    spread = (count + 1.0 - 2.0 / d) * (squares - trace**2 / d)
    if spread <= 0.0:
        return 1.0
    return float(min(1.0, ((1.0 - 2.0 / d) * squares + trace**2) / spread))


@dataclass(frozen=True, slots=True)
class Whitening:
    """A fitted whitening.

    Attributes
    ----------
    spec
        What was asked for.
    mean
        (d,) float64 mean m.
    components
        (d, r) float64 principal directions U, the first coordinate largest in size being positive.
    spectrum
        (r,) float64 eigenvalues l of the covariance.
    shrunk
        (r,) float64 l'.
    shrinkage
        e as used.
    share
        a, the share of the mean that is taken out.
    anisotropy
        Mean cosine of the texts before whitening.
    general_anisotropy
        The same for general text, where it was measured.
    count
        Vectors it was fitted on.
    notes
        What was done that a user would not expect.
    """

    spec: WhiteningSpec
    mean: Float64
    components: Float64
    spectrum: Float64
    shrunk: Float64
    shrinkage: float
    share: float
    anisotropy: float
    general_anisotropy: float | None
    count: int
    notes: tuple[str, ...] = ()

    @classmethod
    def fit(
        cls,
        vectors: Vectors | Iterable[Vectors] | VectorStatistics,
        spec: WhiteningSpec,
        *,
        general: Vectors | Iterable[Vectors] | VectorStatistics | None = None,
        share: float = 1.0,
    ) -> Self:
        """Fit on the vectors of a collection, in one pass.

        Parameters
        ----------
        vectors
            (n, d) array, blocks of (b, d), or statistics already gathered.
        spec
            How strong.
        general
            Vectors of general text in the same space; `auto` then measures the anisotropy there.
        share
            a, the share of the mean to take out.

        Raises
        ------
        ModelError
            If a value is not a finite number, or `general` has other dimensions.
        """
        found = vectors if isinstance(vectors, VectorStatistics) else VectorStatistics.gather(vectors)
        elsewhere = _gathered(general, found.dimension)
        if spec.mode is WhiteningMode.NONE or found.is_degenerate:
            return cls._identity(found, spec, elsewhere)
        spectrum, components = _principal(found.covariance)
        notes: list[str] = []
        shrinkage = spec.shrinkage
        if shrinkage is None:
            shrinkage = choose_shrinkage((elsewhere or found).mean_cosine)
        floor = small_sample_shrinkage(spectrum, found.count)
        small = found.count <= found.dimension
        if (small or spec.mode is WhiteningMode.AUTO) and shrinkage < floor:
            notes.append(
                f"{found.count} vectors are few for {found.dimension} dimensions:"
                f" shrinkage raised from {shrinkage:.3f} to {floor:.3f}"
            )
            shrinkage = floor
        shrunk = (1.0 - shrinkage) * spectrum + shrinkage * spectrum.mean()
        kept = _kept_rank(spec, spectrum, shrunk, notes)
        return cls(
            spec,
            found.mean,
            components[:, :kept],
            spectrum[:kept],
            shrunk[:kept],
            shrinkage,
            share,
            found.mean_cosine,
            None if elsewhere is None else elsewhere.mean_cosine,
            found.count,
            tuple(notes),
        )

    @classmethod
    def _identity(
        cls, found: VectorStatistics, spec: WhiteningSpec, general: VectorStatistics | None
    ) -> Self:
        d = found.dimension
        notes: tuple[str, ...] = ()
        if spec.mode is not WhiteningMode.NONE:
            what = "all vectors are the same" if found.count > 1 else f"{found.count} vectors to fit on"
            notes = (f"not whitened: {what}, so there is no spectrum to even out",)
        return cls(
            spec,
            np.zeros(d),
            np.eye(d),
            np.ones(d),
            np.ones(d),
            1.0,
            0.0,
            found.mean_cosine,
            None if general is None else general.mean_cosine,
            found.count,
            notes,
        )

    @property
    def is_identity(self) -> bool:
        """Whether vectors stay as they are (asked for, or nothing to fit on); predictions then say nothing."""
        return self.share == 0.0 and not np.any(self.mean)

    @property
    def dimension(self) -> int:
        """Dimensions r of whitened vectors."""
        return int(self.components.shape[1])

    @property
    def input_dimension(self) -> int:
        """Dimensions d of the vectors it takes."""
        return int(self.components.shape[0])

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that decides the whitened vectors."""
        digest = hashlib.sha256(b"whitening 1")
        for array in (self.mean * self.share, self.components, self.shrunk):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return digest.hexdigest()

    def transform(self, vectors: Vectors) -> Vectors:
        """Return (n, r) whitened vectors, not yet scaled to unit length; rows of zeros stay zeros.

        Raises
        ------
        ModelError
            If a value is not a finite number.
        """
        rows = as_float32(vectors)
        if rows.shape[1] != self.input_dimension:
            message = f"the whitening takes {self.input_dimension} dimensions, found {rows.shape[1]}"
            raise ValueError(message)
        _refuse_non_finite(rows)
        matrix = self.components / np.sqrt(self.shrunk)
        out = np.empty((len(rows), self.dimension), np.float32)
        for at in range(0, len(rows), _BLOCK_ROWS):
            block = rows[at : at + _BLOCK_ROWS].astype(np.float64)
            out[at : at + _BLOCK_ROWS] = (block - self.share * self.mean) @ matrix
        out[~rows.any(axis=1)] = 0.0
        return out

    def predicted_mean(self) -> Float64:
        """Return the (r,) mean that `transform` gives the vectors it was fitted on: zero for a = 1."""
        remaining = (1.0 - self.share) * (self.mean @ self.components)
        return np.asarray(remaining / np.sqrt(self.shrunk))

    def predicted_covariance(self) -> Float64:
        """Return the (r, r) covariance that `transform` gives them: diag(l / l')."""
        return np.diag(self.spectrum / self.shrunk)

    def save(self, path: Path) -> None:
        """Write an .npz file, equal bytes for equal values; no pickle."""
        with path.open("wb") as handle:
            np.savez(
                handle,
                allow_pickle=False,
                format_version=np.int64(_FORMAT),
                spec=np.array(self.spec.notation()),
                mean=self.mean,
                components=self.components,
                spectrum=self.spectrum,
                shrunk=self.shrunk,
                scalars=np.array([self.shrinkage, self.share, self.anisotropy]),
                general=np.array([np.nan if self.general_anisotropy is None else self.general_anisotropy]),
                count=np.int64(self.count),
                notes=np.array(self.notes, dtype=np.str_),
            )

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        DamagedIndexError
            If the file is missing, damaged, or of another format.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                found = int(file["format_version"])
                if found != _FORMAT:
                    message = f"{path.name} has format {found}, expected {_FORMAT}; index again"
                    raise DamagedIndexError(message)
                shrinkage, share, anisotropy = (float(value) for value in file["scalars"])
                general = float(file["general"][0])
                return cls(
                    WhiteningSpec.parse(str(file["spec"])),
                    file["mean"],
                    file["components"],
                    file["spectrum"],
                    file["shrunk"],
                    shrinkage,
                    share,
                    anisotropy,
                    None if np.isnan(general) else general,
                    int(file["count"]),
                    tuple(str(note) for note in file["notes"]),
                )
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            if isinstance(error, DamagedIndexError):
                raise
            state = "is damaged" if path.exists() else "is missing"
            message = f"{path.name} of {path.parent.name} {state}; run: twindex check, then index again"
            raise DamagedIndexError(message) from error


def _gathered(
    vectors: Vectors | Iterable[Vectors] | VectorStatistics | None, dimension: int
) -> VectorStatistics | None:
    if vectors is None:
        return None
    found = vectors if isinstance(vectors, VectorStatistics) else VectorStatistics.gather(vectors)
    if found.dimension != dimension:
        message = (
            f"general text has {found.dimension} dimensions, the collection {dimension}; encode both alike"
        )
        raise ModelError(message)
    return found if found.count > 1 else None


def _principal(covariance: Float64) -> tuple[Float64, Float64]:
    """Return eigenvalues, largest first, and eigenvectors as columns, signs fixed."""
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return values, np.ascontiguousarray(vectors * signs)


def _kept_rank(spec: WhiteningSpec, spectrum: Float64, shrunk: Float64, notes: list[str]) -> int:
    wanted = len(spectrum) if spec.rank is None else spec.rank
    if wanted > len(spectrum):
        notes.append(f"rank {wanted} is more than the {len(spectrum)} dimensions there are; all are kept")
        wanted = len(spectrum)
    # l' is at least e mean(l): only a whitening of almost no shrinkage can blow a null direction up.
    filled = int((shrunk > NULL_SHARE * spectrum.mean()).sum())
    if filled < wanted:
        notes.append(f"{wanted - filled} of {wanted} directions hold no variance; left out")
        wanted = filled
    return wanted
