"""How contextual the states of a model are, layer by layer.

The measures of Ethayarajh, "How contextual are contextualized word representations?", EMNLP 2019, each with
what an anisotropic space would give to words that have nothing in common taken off.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.vectors import normalize

#: (m, d) states of m occurrences
States = NDArray[np.float32]


def self_similarity(states: States) -> float:
    """Return the mean cosine of all pairs of a word's m occurrences, each in another context.

    1: the same vector everywhere, as a static embedding has it. NaN for fewer than two.
    """
    m = len(states)
    if m < 2:
        return float("nan")
    total = normalize(states).sum(axis=0, dtype=np.float64)
    return (float(total @ total) - m) / (m * (m - 1.0))


def intra_sentence_similarity(states: States) -> float:
    """Return the mean cosine of a sentence's t words with the mean of their vectors; NaN for no word."""
    if not len(states):
        return float("nan")
    middle = states.mean(axis=0, dtype=np.float64)[None].astype(np.float32)
    return float((normalize(states) @ normalize(middle)[0]).mean(dtype=np.float64))


def explained_by_static(states: States) -> float:
    """Return the share of the variance of a word's m occurrences that one vector can explain at most.

    s_1^2 / sum s_i^2 of the singular values of the occurrences, not centred: the "maximum explainable
    variance". 1: one static vector would do. NaN for no occurrence, or states of zeros.
    """
    if not len(states):
        return float("nan")
    wide = np.asarray(states, np.float64)
    # The smaller of the two products has the same eigenvalues.
    gram = wide @ wide.T if len(wide) <= wide.shape[1] else wide.T @ wide
    total = float(np.trace(gram))
    return float(np.linalg.eigvalsh(gram)[-1]) / total if total > 0.0 else float("nan")


class Contextuality(NamedTuple):
    """The measures of one layer, means over words or sentences, and what anisotropy accounts for in each.

    Attributes
    ----------
    self_similarity, intra_sentence, explained_static
        As measured.
    random_cosine
        Mean cosine of random words in different texts: what is taken off the first two.
    random_explained
        The share that one vector explains of as many random words: what is taken off the third.
    """

    self_similarity: float
    intra_sentence: float
    explained_static: float
    random_cosine: float
    random_explained: float

    @property
    def adjusted_self_similarity(self) -> float:
        """Self-similarity beyond that of unrelated words; near 0: entirely contextual."""
        return self.self_similarity - self.random_cosine

    @property
    def adjusted_intra_sentence(self) -> float:
        """Similarity inside a sentence beyond that of unrelated words."""
        return self.intra_sentence - self.random_cosine

    @property
    def adjusted_explained_static(self) -> float:
        """Share explained by a static vector, beyond that for unrelated words."""
        return self.explained_static - self.random_explained


def contextuality(
    words: Sequence[States], random: States, sentences: Sequence[float], rng: np.random.Generator
) -> Contextuality:
    """Return the measures of one layer.

    Parameters
    ----------
    words
        For each word its (m, d) occurrences in m texts; words of fewer than two are left out.
    random
        (r, d) states of random words, each from another text: the measure of anisotropy.
    sentences
        `intra_sentence_similarity` of each sentence.
    rng
        Chooses, for each word, as many random words as it has occurrences.
    """
    several = [states for states in words if len(states) > 1]
    baselines = [
        explained_by_static(random[rng.choice(len(random), min(len(states), len(random)), replace=False)])
        for states in several
        if len(random)
    ]
    return Contextuality(
        _mean([self_similarity(states) for states in several]),
        _mean(sentences),
        _mean([explained_by_static(states) for states in several]),
        self_similarity(random),
        _mean(baselines),
    )


def _mean(values: Sequence[float]) -> float:
    kept = [value for value in values if not np.isnan(value)]
    return float(np.mean(kept)) if kept else float("nan")
