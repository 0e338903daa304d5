"""Early layers look static but are not: what a linear classifier reads out of vectors whose cosines are all near 1.

A probe is a logistic regression from a word's vector to its sense, scored on occurrences that it was not trained on
(cross-validation). Where it does better than naming the commonest sense, the sense is in the vector, however alike
the cosines say the vectors are.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from search.diagnostics.anisotropy import Floats, unit
from search.errors import DiagnosisError

_FOLDS = 5
#: Strength of the ridge; the vectors are scaled to unit variance in all, and there are fewer of them than dimensions.
_INVERSE_RIDGE = 1.0

Labels = NDArray[np.int64]


class ProbedLayer(NamedTuple):
    """One layer.

    `accuracy` is the probe's. `same` and `different` are the mean cosines of two occurrences in one sense and in two;
    `cosine_auc` is how often the former of such a pair is larger, .5 being chance.
    """

    layer: int
    accuracy: float
    same: float
    different: float
    cosine_auc: float


@dataclass(frozen=True, slots=True)
class Probe:
    """Sense by layer; `majority` is the accuracy of always naming a word's commonest sense (or the commoner answer)."""

    layers: tuple[ProbedLayer, ...]
    majority: float
    occurrences: int
    words: int
    notes: tuple[str, ...] = ()

    @property
    def standard_error(self) -> float:
        """Standard error of an accuracy of one half on so many occurrences: what a difference has to exceed."""
        return float(0.5 / np.sqrt(self.occurrences))


def probe_senses(
    vectors: NDArray[np.floating], words: Sequence[str], senses: Sequence[str], *, folds: int = _FOLDS, seed: int = 0
) -> Probe:
    """Probe the sense of each word separately, and average over occurrences.

    Parameters
    ----------
    vectors
        (1 + L, n, d) states of n occurrences, by layer.
    words, senses
        The n words and their senses. Words with a single sense, and senses with a single occurrence, cannot be
        cross-validated and are left out.
    folds
        Parts that each word's occurrences are cut into, fewer where its rarest sense has fewer.
    seed
        Of the cut.

    Raises
    ------
    DiagnosisError
        If nothing remains, or the numbers do not fit together.
    """
    if not vectors.shape[1] == len(words) == len(senses):
        message = f"found {vectors.shape[1]} vectors, {len(words)} words and {len(senses)} senses; give as many of each"
        raise DiagnosisError(message)
    groups, notes = _groups(words, senses)
    if not groups:
        message = "no word has two senses with two occurrences each; a probe needs both to learn and to be asked"
        raise DiagnosisError(message)
    total = sum(len(rows) for rows, _ in groups)
    layers = []
    for layer, states in enumerate(vectors):
        right = sum(
            _cross_validated(states[rows], labels, min(folds, int(np.bincount(labels).min())), seed)
            for rows, labels in groups
        )
        layers.append(ProbedLayer(layer, right / total, *_cosine_figures(states, groups)))
    majority = sum(int(np.bincount(labels).max()) for _, labels in groups) / total
    return Probe(tuple(layers), majority, total, len(groups), tuple(notes))


class PairStates(NamedTuple):
    """A word in two contexts, n times: its (1 + L, n, d) states in each, and (n,) whether it means the same, 0 or 1."""

    first: NDArray[np.floating]
    second: NDArray[np.floating]
    same: Labels


def probe_pairs(
    pairs: PairStates, words: Sequence[str], *, train: PairStates | None = None, folds: int = _FOLDS
) -> Probe:
    """Probe whether a word means the same in two contexts, from |u - v| and u * v of its unit vectors u and v.

    Without pairs to train on, a word is asked about only when none of its pairs was trained on (folds are grouped by
    word).

    Parameters
    ----------
    pairs
        What is asked about.
    words
        The n words.
    train
        What the probe learns from; None: the other folds.
    folds
        Groups of words.

    Raises
    ------
    DiagnosisError
        If there is only one kind of answer to learn, or, for folds, fewer than two words.
    """
    labels = np.asarray(pairs.same, dtype=np.int64)
    groups = np.unique(np.array(words), return_inverse=True)[1]
    if pairs.first.shape != pairs.second.shape or not pairs.first.shape[1] == len(labels) == len(groups):
        shapes = f"{pairs.first.shape} and {pairs.second.shape}"
        message = f"found vectors of {shapes}, {len(labels)} answers, {len(groups)} words; give as many of each"
        raise DiagnosisError(message)
    learned = labels if train is None else np.asarray(train.same, dtype=np.int64)
    if len(np.unique(learned)) < 2 or (train is None and len(np.unique(groups)) < 2):
        message = "a probe of pairs learns from both answers, and without training pairs from two words or more"
        raise DiagnosisError(message)
    count = min(folds, len(np.unique(groups)))
    layers = []
    for layer, (left, right) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        features, cosines = _pair_features(left, right)
        if train is None:
            correct = _right_by_group(features, labels, groups, count)
        else:
            seen, _ = _pair_features(train.first[layer], train.second[layer])
            correct = _right_of(features, labels, seen, learned)
        same, different = cosines[labels == 1], cosines[labels == 0]
        figures = (_mean(same), _mean(different), _auc(same, different))
        layers.append(ProbedLayer(layer, correct / len(labels), *figures))
    majority = float(max(labels.mean(), 1 - labels.mean()))
    return Probe(tuple(layers), majority, len(labels), len(np.unique(groups)))


def _pair_features(first: NDArray[np.floating], second: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Return (n, 2 d) features of pairs, and their (n,) cosines."""
    u, v = unit(first), unit(second)
    return np.concatenate([np.abs(u - v), u * v], axis=1), np.asarray((u * v).sum(axis=1))


def _groups(words: Sequence[str], senses: Sequence[str]) -> tuple[list[tuple[Labels, Labels]], list[str]]:
    """Return for each usable word the rows of its occurrences and their senses as numbers."""
    groups, left_out = [], 0
    for word in dict.fromkeys(words):
        rows = [row for row, each in enumerate(words) if each == word]
        counts = {sense: sum(senses[row] == sense for row in rows) for sense in dict.fromkeys(senses[r] for r in rows)}
        usable = [row for row in rows if counts[senses[row]] > 1]
        left_out += len(rows) - len(usable)
        labels = np.unique([senses[row] for row in usable], return_inverse=True)[1] if usable else np.zeros(0, np.int64)
        if len(np.unique(labels)) > 1:
            groups.append((np.array(usable, dtype=np.int64), labels.astype(np.int64)))
        else:
            left_out += len(usable)
    return groups, [f"{left_out} occurrences without a second sense or a twin were left out"] if left_out else []


def _cross_validated(states: NDArray[np.floating], labels: Labels, folds: int, seed: int) -> int:
    """Return how many occurrences are classified rightly by probes that had not seen them."""
    from sklearn.model_selection import StratifiedKFold

    parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(states, labels)
    return _right(states.astype(np.float64), labels, parts)


def _right_by_group(features: Floats, labels: Labels, groups: NDArray[np.int64], folds: int) -> int:
    from sklearn.model_selection import GroupKFold

    return _right(features, labels, GroupKFold(folds).split(features, labels, groups))


def _right(features: Floats, labels: Labels, parts: Any) -> int:
    return sum(_right_of(features[test], labels[test], features[train], labels[train]) for train, test in parts)


def _right_of(features: Floats, labels: Labels, train: Floats, learned: Labels) -> int:
    """Return how many labels a probe names that has learned from other rows."""
    from threadpoolctl import threadpool_limits

    # On a few dozen rows, threads cost ten times what they bring.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # a probe that has not quite converged is a probe all the same
        return int((_predicted(train, learned, features) == labels).sum())


def _predicted(train: Floats, labels: Labels, test: Floats) -> Labels:
    """Fit a logistic regression and return what it says of the test rows.

    A ridge's solution lies in the span of the training rows, so it is sought there: the same probe, in m dimensions
    instead of d.
    """
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(labels)) < 2:
        return np.full(len(test), labels[0])
    mean = train.mean(axis=0)
    centred = train - mean
    scale = centred.std() or 1.0
    if len(train) < train.shape[1]:
        basis = np.linalg.svd(centred, full_matrices=False)[2].T
        centred, moved = centred @ basis, (test - mean) @ basis
    else:
        moved = test - mean
    model = LogisticRegression(C=_INVERSE_RIDGE, max_iter=200, tol=1e-3).fit(centred / scale, labels)
    return np.asarray(model.predict(moved / scale), dtype=np.int64)


def _cosine_figures(
    states: NDArray[np.floating], groups: Sequence[tuple[Labels, Labels]]
) -> tuple[float, float, float]:
    same: list[Floats] = []
    different: list[Floats] = []
    for rows, labels in groups:
        units = unit(states[rows])
        cosines = units @ units.T
        upper = np.triu_indices(len(rows), 1)
        equal = (labels[:, None] == labels)[upper]
        same.append(cosines[upper][equal])
        different.append(cosines[upper][~equal])
    # Compared within a word: how alike its occurrences are at all differs from word to word.
    pairs = [len(first) * len(second) for first, second in zip(same, different, strict=True)]
    areas = [_auc(first, second) for first, second in zip(same, different, strict=True)]
    return (
        float(np.concatenate(same).mean()),
        float(np.concatenate(different).mean()),
        float(np.average(areas, weights=pairs)),
    )


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _auc(larger: Floats, smaller: Floats) -> float:
    """Return how often a value of the first kind is above one of the second, ties counting half; .5 without a pair."""
    if not (len(larger) and len(smaller)):
        return 0.5
    ordered = np.sort(smaller)
    below = np.searchsorted(ordered, larger, "left")
    up_to = np.searchsorted(ordered, larger, "right")
    return float((below + up_to).sum() / 2 / (len(larger) * len(smaller)))
