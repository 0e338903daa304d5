"""Vectors of one space in another: chance, at the same dimension; and how many shared texts bring them back.

Two layers, models or whitenings can have equally many dimensions and nothing else in common: the numbers fit, the
search runs, and what it finds is noise. If some texts are known in both spaces, the best rotation between them
(orthogonal Procrustes; Schoenemann 1966) maps one onto the other, as far as a rotation can.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search.diagnostics.anisotropy import unit
from search.errors import DiagnosisError

Floats = NDArray[np.floating]

#: Shared texts that a map is fitted on, unless told otherwise.
SIZES = (10, 30, 100, 300, 1000, 3000)


@dataclass(frozen=True, slots=True, eq=False)
class RotationMap:
    """x -> (x - source_mean) rotation + target_mean; `rotation` is (d, e) with orthonormal columns or rows."""

    source_mean: NDArray[np.float64]
    target_mean: NDArray[np.float64]
    rotation: NDArray[np.float64]

    def apply(self, vectors: Floats) -> NDArray[np.float64]:
        """Map (n, d) vectors of the source space into the target space: (n, e) float64."""
        return np.asarray((vectors - self.source_mean) @ self.rotation + self.target_mean)


def procrustes(source: Floats, target: Floats, *, centred: bool = True) -> RotationMap:
    """Fit the rotation (reflections allowed) that takes n vectors of one space nearest to their twins in another.

    Parameters
    ----------
    source, target
        (n, d) and (n, e) vectors of the same n texts.
    centred
        Whether the means are moved onto each other first: in a narrow space they are most of every vector.

    Raises
    ------
    DiagnosisError
        If there are no texts, or not the same number in both spaces.
    """
    if len(source) != len(target) or not len(source):
        message = f"a map needs the same texts in both spaces, found {len(source)} and {len(target)}"
        raise DiagnosisError(message)
    first, second = source.astype(np.float64), target.astype(np.float64)
    means = [side.mean(axis=0) if centred else np.zeros(side.shape[1]) for side in (first, second)]
    left, _, right = np.linalg.svd((first - means[0]).T @ (second - means[1]), full_matrices=False)
    return RotationMap(means[0], means[1], np.asarray(left @ right))


class MappedRecall(NamedTuple):
    """What a map fitted on `texts` shared texts brings back: recall, and the mean cosine to the true vectors."""

    texts: int
    recall: float
    cosine: float


@dataclass(frozen=True, slots=True)
class Portability:
    """Recall at k of queries asked in a space, of which the documents' vectors are.

    Attributes
    ----------
    k
        Hits looked at.
    queries, documents
        How many.
    home
        Recall of the queries' own vectors.
    foreign
        Recall of the other space's vectors, used as they are; None where the dimensions differ.
    chance
        Recall of a random order: k of the documents.
    mapped
        Recall after maps fitted on more and more shared texts.
    """

    k: int
    queries: int
    documents: int
    home: float
    foreign: float | None
    chance: float
    mapped: tuple[MappedRecall, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SharedTexts:
    """(N, d) vectors of the same N texts in the foreign space and at home; none of them need be a document."""

    foreign: Floats
    home: Floats


def portability(
    documents: Floats,
    relevant: Sequence[Collection[int]],
    *,
    home: Floats,
    foreign: Floats,
    shared: SharedTexts | None = None,
    k: int = 10,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
) -> Portability:
    """Ask queries of one space in another, as they are and through maps fitted on shared texts.

    Parameters
    ----------
    documents
        (n, d) vectors in the home space.
    relevant
        The rows of the relevant documents, for each query; queries without any are left out.
    home, foreign
        (q, d) and (q, e) vectors of the queries, at home and in the other space.
    shared
        Texts known in both.
    k
        Hits looked at.
    sizes
        How many shared texts to fit on; all of them is always among these.
    seed
        Of the order in which shared texts are taken.

    Raises
    ------
    DiagnosisError
        If there is no judged query, or the numbers of vectors do not fit together.
    """
    if not len(home) == len(foreign) == len(relevant) or not len(documents):
        message = (
            f"found {len(home)} and {len(foreign)} vectors of {len(relevant)} queries over {len(documents)} documents; "
            "each query needs one in both spaces"
        )
        raise DiagnosisError(message)
    judged = [row for row, rows in enumerate(relevant) if len(rows)]
    if not judged:
        message = f"none of the {len(relevant)} queries has a relevant document"
        raise DiagnosisError(message)
    wanted = [set(relevant[row]) for row in judged]
    rows, own, other = unit(documents), home[judged], foreign[judged]
    found = []
    if shared is not None:
        order = np.random.default_rng(seed).permutation(len(shared.foreign))
        for size in sorted({*(size for size in sizes if 0 < size < len(order)), len(order)}):
            chosen = np.sort(order[:size])
            moved = procrustes(shared.foreign[chosen], shared.home[chosen]).apply(other)
            cosine = float((unit(moved) * unit(own)).sum(axis=1).mean())
            found.append(MappedRecall(size, _recall(moved, rows, wanted, k), cosine))
    return Portability(
        k=k,
        queries=len(judged),
        documents=len(documents),
        home=_recall(own, rows, wanted, k),
        foreign=_recall(other, rows, wanted, k) if other.shape[1] == rows.shape[1] else None,
        chance=min(1.0, k / len(documents)),
        mapped=tuple(found),
    )


def _recall(queries: Floats, documents: NDArray[np.float64], wanted: Sequence[set[int]], k: int) -> float:
    scores = unit(queries) @ documents.T
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    shares = [len(rows.intersection(hits.tolist())) / len(rows) for rows, hits in zip(wanted, best, strict=True)]
    return float(np.mean(shares))
