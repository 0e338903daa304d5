"""Whitening: take the common direction out of a vector space and even out its spectrum.

    y = (x - a m) U l'^(-1/2),    l'_i = (1 - e) l_i + e mean(l)

m and U diag(l) U' are mean and covariance of the collection's vectors. e = 0 is textbook whitening (the
covariance becomes the identity), e = 1 only moves the origin. `y` is given before it is scaled to unit
length; whoever compares by cosine calls `indexer.vectors.normalize` on it.

`auto` takes e and a from `indexer.whitening_strength`, and leaves out the direction in which the space tells
long texts from short ones, where it has one: passages vary little along it, so that whitening would blow it
up, while every question lies at its far end.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from indexer.arrays import UNREADABLE_ARRAYS, read_arrays
from indexer.errors import DamagedIndexError, FormatVersionError, ModelError, other_format
from indexer.vector_statistics import BLOCK_ROWS, Float64, VectorStatistics, refuse_non_finite
from indexer.vectors import Vectors, as_float32
from indexer.whitening_spec import WhiteningMode, WhiteningSpec
from indexer.whitening_strength import GeneralSpace, Strength, choose

__all__ = ["VectorStatistics", "Whitening", "WhiteningMode", "WhiteningSpec"]

#: A direction with less variance than this share of the mean variance holds rounding errors, not text.
NULL_SHARE = 1e-5

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Whitening:
    """A fitted whitening.

    Attributes
    ----------
    spec
        What was asked for.
    mean
        (d,) float64 mean m of the vectors.
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
        general: GeneralSpace | VectorStatistics | None = None,
        share: float | None = None,
    ) -> Self:
        """Fit on the vectors of a collection, in one pass.

        Parameters
        ----------
        vectors
            (n, d) array, blocks of (b, d), or statistics already gathered. Rows of zeros are left out.
        spec
            How strong.
        general
            What general text looks like in the same space; `auto` then goes by it instead of by the
            collection. Statistics of whole texts are second best: they give a mean cosine only.
        share
            a, the share of the mean to take out; None: 1, or what `auto` settles on.

        Raises
        ------
        ModelError
            If a value is not a finite number, or `general` has other dimensions.
        """
        found = vectors if isinstance(vectors, VectorStatistics) else VectorStatistics.gather(vectors)
        _check_general(general, found.dimension)
        if spec.mode is WhiteningMode.NONE or found.is_degenerate:
            return cls._identity(found, spec, general)
        notes: list[str] = []
        auto = spec.mode is WhiteningMode.AUTO
        left_out = None
        if auto and isinstance(general, GeneralSpace) and general.tells_length:
            left_out = general.length_direction
            notes.append("left out the direction that tells long texts from short ones")
        spectrum, components = _principal(found.covariance, left_out)
        shrinkage, default_share = _strength(spec, found, general, notes)
        shrunk = (1.0 - shrinkage) * spectrum + shrinkage * spectrum.mean()
        kept = _kept_rank(spec, spectrum, shrunk, notes)
        return cls(
            spec,
            found.mean,
            components[:, :kept],
            spectrum[:kept],
            shrunk[:kept],
            shrinkage,
            default_share if share is None else share,
            found.mean_cosine,
            _general_anisotropy(general),
            found.count,
            tuple(notes),
        )

    @classmethod
    def _identity(
        cls, found: VectorStatistics, spec: WhiteningSpec, general: GeneralSpace | VectorStatistics | None
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
            _general_anisotropy(general),
            found.count,
            notes,
        )

    @property
    def is_identity(self) -> bool:
        """Whether vectors stay as they are (asked for, or nothing to fit on)."""
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
        refuse_non_finite(rows)
        matrix = self.components / np.sqrt(self.shrunk)
        out = np.empty((len(rows), self.dimension), np.float32)
        for at in range(0, len(rows), BLOCK_ROWS):
            block = rows[at : at + BLOCK_ROWS].astype(np.float64)
            out[at : at + BLOCK_ROWS] = (block - self.share * self.mean) @ matrix
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
            If the file is missing or damaged.
        FormatVersionError
            If another version of this format wrote it.
        """
        try:
            file = read_arrays(path)
            found = int(file["format_version"])
            if found != _FORMAT:
                raise other_format(f"{path.name} of {path.parent.name}", found, _FORMAT)
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
        except FormatVersionError:
            raise
        except UNREADABLE_ARRAYS as error:
            state = "is damaged" if path.exists() else "is missing"
            message = f"{path.name} of {path.parent.name} {state}; run: twindex check, then index again"
            raise DamagedIndexError(message) from error


def _check_general(general: GeneralSpace | VectorStatistics | None, dimension: int) -> None:
    if general is None:
        return
    found = general.dimension
    if found != dimension:
        message = f"general text has {found} dimensions, the collection {dimension}; encode both alike"
        raise ModelError(message)


def _general_anisotropy(general: GeneralSpace | VectorStatistics | None) -> float | None:
    if general is None:
        return None
    return general.anisotropy if isinstance(general, GeneralSpace) else general.mean_cosine


def _strength(
    spec: WhiteningSpec,
    found: VectorStatistics,
    general: GeneralSpace | VectorStatistics | None,
    notes: list[str],
) -> Strength:
    n, d = found.count, found.dimension
    if spec.shrinkage is None:
        return choose(found, general)
    if n <= d and spec.shrinkage < 1.0:
        # Whitened in full, n <= d vectors are the corners of a simplex: every pair has the same cosine.
        notes.append(
            f"{n} vectors in {d} dimensions have no spectrum worth evening out:"
            f" centred only, instead of a shrinkage of {spec.shrinkage:g}"
        )
        return Strength(1.0, 1.0)
    return Strength(spec.shrinkage, 1.0)


def _principal(covariance: Float64, left_out: Float64 | None) -> tuple[Float64, Float64]:
    """Return eigenvalues, largest first, and eigenvectors as columns, signs fixed, at right angles to one."""
    if left_out is None:
        values, vectors = np.linalg.eigh(covariance)
    else:
        # All columns but the first of this orthogonal matrix span what is at right angles to the direction.
        basis = np.linalg.qr(np.column_stack([left_out, np.eye(len(left_out))]))[0][:, 1 : len(left_out)]
        values, inner = np.linalg.eigh(basis.T @ covariance @ basis)
        vectors = basis @ inner
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
