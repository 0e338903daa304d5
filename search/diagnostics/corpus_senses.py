"""The senses of a word in a corpus, found without a dictionary.

Occurrences are clustered by k-means on their unit vectors; k is the one with the largest silhouette (Rousseeuw 1987),
averaged within each group and then over groups: over occurrences, one outlier split off from all the rest would often
win. A word whose largest is below `ONE_SENSE` is said to have one sense. Clusters are groups of wordings: on words with
labelled senses they agree with the labels in part, and the reader is to judge by the lines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress, Silent, tracked
from indexer.contextual.states import Place, StateReader
from search.diagnostics.anisotropy import Floats, pairwise_cosine, unit
from search.diagnostics.occurrences import line_around, occurrences, window
from search.errors import DiagnosisError

#: Least silhouette at which occurrences are said to fall into groups.
ONE_SENSE = 0.1

_MOST_SENSES = 6
_MOST_OCCURRENCES = 300
_LEAST_OCCURRENCES = 4
_BLOCK = 32


class Grouping(NamedTuple):
    """A number of groups that was tried, and its silhouette."""

    groups: int
    silhouette: float


class ExampleLine(NamedTuple):
    """An occurrence as a line of text, the text it stands in (counted from 0), and its cosine to its group's centre."""

    line: str
    text: int
    cosine: float


@dataclass(frozen=True, slots=True)
class SenseGroup:
    """Occurrences that belong together: how many, and those nearest to their centre."""

    size: int
    examples: tuple[ExampleLine, ...]


@dataclass(frozen=True, slots=True)
class CorpusSenses:
    """A word's occurrences in groups, the largest first.

    `silhouettes` holds one for each number of groups tried; `occurrences` counts all, `read` those that were
    clustered, drawn at random where there are many; `mean_cosine` is that of all pairs of these, None without a pair.
    """

    word: str
    layer: int
    occurrences: int
    read: int
    groups: tuple[SenseGroup, ...]
    silhouettes: tuple[Grouping, ...]
    mean_cosine: float | None = None


def corpus_senses(
    word: str,
    texts: Iterable[str],
    reader: StateReader,
    *,
    layer: int | None = None,
    most: int = _MOST_OCCURRENCES,
    examples: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
) -> CorpusSenses:
    """Cluster the occurrences of a word in a corpus, the first in each text.

    Parameters
    ----------
    word
        The word; upper and lower case are equal.
    texts
        The corpus, streamed.
    reader
        The model.
    layer
        Whose states are clustered; None: the last.
    most
        Most occurrences clustered.
    examples
        Lines shown of each group.
    seed
        Of the draw and of k-means.
    progress
        Told of the texts looked through, and of those read.

    Raises
    ------
    DiagnosisError
        If there is no word, no such layer, or no text holds the word.
    """
    word = word.strip()
    if not word:
        message = "no word to look for; give one that the corpus holds"
        raise DiagnosisError(message)
    layer = reader.layers if layer is None else layer
    if not 0 <= layer <= reader.layers:
        message = f"{reader.name} has layers 0 to {reader.layers}, asked for layer {layer}"
        raise DiagnosisError(message)
    progress = progress or Silent()
    rng = np.random.default_rng(seed)
    total, held = _draw(word, tracked(texts, progress, f"looking for {word!r}", None, "texts"), most, rng)
    if not held:
        message = f"{word!r} stands in none of the texts as a word of its own"
        raise DiagnosisError(message)
    vectors = _vectors([place for _, place in held], reader, layer, progress)
    labels, silhouettes = group_vectors(vectors, seed=seed)
    groups = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        nearness = vectors[rows] @ unit(vectors[rows].mean(axis=0))
        best = [int(row) for row in np.argsort(-nearness, kind="stable")[:examples]]
        lines = tuple(
            ExampleLine(line_around(held[rows[row]][1]), held[rows[row]][0], float(nearness[row])) for row in best
        )
        groups.append(SenseGroup(len(rows), lines))
    groups.sort(key=lambda group: -group.size)
    mean = pairwise_cosine(vectors.sum(axis=0), len(vectors)) if len(vectors) > 1 else None
    return CorpusSenses(word, layer, total, len(held), tuple(groups), silhouettes, mean)


def _vectors(places: Sequence[Place], reader: StateReader, layer: int, progress: Progress) -> Floats:
    """Return the (n, d) unit vectors of words in their texts, read as far around them as the model reads."""
    parts = []
    progress.start("reading the word in context", len(places), "texts")
    try:
        for start in range(0, len(places), _BLOCK):
            block = [window(place, reader)[0] for place in places[start : start + _BLOCK]]
            parts.append(unit(reader.word_states(block)[layer]))
            progress.advance(len(block))
    finally:
        progress.finish()
    return np.concatenate(parts)


def group_vectors(
    vectors: Floats, *, seed: int = 0, most: int = _MOST_SENSES
) -> tuple[NDArray[np.int64], tuple[Grouping, ...]]:
    """Group (n, d) unit vectors: (n,) labels, and the silhouette of each k tried (none below four vectors)."""
    one = np.zeros(len(vectors), dtype=np.int64)
    distinct = len(np.unique(vectors.round(6), axis=0))
    if len(vectors) < _LEAST_OCCURRENCES or distinct < 2:
        return one, ()
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_samples

    found = {}
    for k in range(2, min(most, distinct, len(vectors) // 2) + 1):
        labels = KMeans(k, n_init=10, random_state=seed).fit_predict(vectors)
        each = silhouette_samples(vectors, labels, metric="cosine")
        over_groups = np.mean([each[labels == label].mean() for label in range(k)])
        found[k] = (float(over_groups), labels.astype(np.int64))
    silhouettes = tuple(Grouping(k, score) for k, (score, _) in found.items())
    score, labels = max(found.values(), key=lambda each: each[0])
    return (labels if score >= ONE_SENSE else one), silhouettes


def _draw(word: str, texts: Iterable[str], most: int, rng: np.random.Generator) -> tuple[int, list[tuple[int, Place]]]:
    """Return how many texts hold the word, and `most` of them, each as likely (Vitter's algorithm R)."""
    total = 0
    held: list[tuple[int, Place]] = []
    for number, text in enumerate(texts):
        span = next(occurrences(word, text), None)
        if span is None:
            continue
        total += 1
        if len(held) < most:
            held.append((number, Place(text, span)))
        elif (slot := int(rng.integers(total))) < most:
            held[slot] = (number, Place(text, span))
    return total, sorted(held, key=lambda each: each[0])
