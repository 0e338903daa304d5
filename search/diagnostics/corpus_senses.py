"""The senses of a word in a corpus, found without a dictionary; and which words depend on their contexts most.

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

from corpora.progress import Progress, Silent
from indexer.contextual.states import Place, Span, StateReader
from search.diagnostics.anisotropy import Floats, token_anisotropy, unit
from search.diagnostics.occurrences import line_around, occurrences, window
from search.diagnostics.words import WORD
from search.errors import DiagnosisError

#: Least silhouette at which occurrences are said to fall into groups.
ONE_SENSE = 0.1

_MOST_SENSES = 6
_MOST_OCCURRENCES = 300
_LEAST_OCCURRENCES = 4


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

    `silhouettes` holds (k, silhouette) for each k tried; `occurrences` counts all, `read` those that were
    clustered, drawn at random where there are many.
    """

    word: str
    layer: int
    occurrences: int
    read: int
    groups: tuple[SenseGroup, ...]
    silhouettes: tuple[tuple[int, float], ...]


def corpus_senses(
    word: str,
    texts: Iterable[str],
    reader: StateReader,
    *,
    layer: int | None = None,
    most: int = _MOST_OCCURRENCES,
    examples: int = 3,
    seed: int = 0,
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
    rng = np.random.default_rng(seed)
    total, held = _draw(word, texts, most, rng)
    if not held:
        message = f"{word!r} stands in none of the texts as a word of its own"
        raise DiagnosisError(message)
    places = [window(place, reader)[0] for _, place in held]
    vectors = unit(reader.word_states(places)[layer])
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
    return CorpusSenses(word, layer, total, len(held), tuple(groups), silhouettes)


def group_vectors(
    vectors: Floats, *, seed: int = 0, most: int = _MOST_SENSES
) -> tuple[NDArray[np.int64], tuple[tuple[int, float], ...]]:
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
    silhouettes = tuple((k, score) for k, (score, _) in found.items())
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


class WordStability(NamedTuple):
    """A word, its occurrences read, and its self-similarity: their mean cosine less that of random tokens."""

    word: str
    occurrences: int
    self_similarity: float


@dataclass(frozen=True, slots=True)
class ContextDependence:
    """A corpus's most context-dependent and most stable words, in one layer; `words` had enough occurrences."""

    layer: int
    texts: int
    words: int
    least_occurrences: int
    anisotropy: float
    dependent: tuple[WordStability, ...]
    stable: tuple[WordStability, ...]


def context_dependence(
    texts: Sequence[str],
    reader: StateReader,
    *,
    layer: int | None = None,
    least: int = 10,
    shown: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> ContextDependence:
    """Rank a corpus's words by their self-similarity (Ethayarajh 2019), adjusted for anisotropy.

    Parameters
    ----------
    texts
        The corpus, or a sample of it: every text is one forward pass.
    reader
        The model.
    layer
        Whose states are compared; None: the last.
    least
        Least occurrences of a word, which keeps out words that only ever stand in one phrase.
    shown
        Words named at either end.
    seed
        Of the random tokens.
    progress
        Told of each text.

    Raises
    ------
    DiagnosisError
        If there is no such layer, or no word occurs often enough.
    """
    layer = reader.layers if layer is None else layer
    if not 0 <= layer <= reader.layers:
        message = f"{reader.name} has layers 0 to {reader.layers}, asked for layer {layer}"
        raise DiagnosisError(message)
    progress = progress or Silent()
    sums: dict[str, Floats] = {}
    counts: dict[str, int] = {}
    progress.start("reading words in context", len(texts), "texts")
    for number, offsets, states in reader.piece_states(texts):
        for word, span in _words_read(texts[number], offsets):
            rows = (offsets[:, 0] < span.end) & (offsets[:, 1] > span.start)
            vector = unit(states[layer, rows].mean(axis=0))
            # The sum of unit vectors is all that their mean cosine needs.
            sums[word] = sums[word] + vector if word in sums else vector
            counts[word] = counts.get(word, 0) + 1
        progress.advance()
    progress.finish()
    frequent = [word for word, count in counts.items() if count >= max(2, least)]
    if not frequent:
        message = f"none of the {len(counts)} words of {len(texts)} texts occurs {least} times; lower the least number"
        raise DiagnosisError(message)
    anisotropy = float(token_anisotropy(reader, texts[:200], np.random.default_rng(seed))[layer])
    ranked = sorted(
        (WordStability(word, counts[word], _mean_cosine(sums[word], counts[word]) - anisotropy) for word in frequent),
        key=lambda each: (each.self_similarity, each.word),
    )
    return ContextDependence(
        layer=layer,
        texts=len(texts),
        words=len(frequent),
        least_occurrences=least,
        anisotropy=anisotropy,
        dependent=tuple(ranked[:shown]),
        stable=tuple(ranked[::-1][:shown]),
    )


def _words_read(text: str, offsets: NDArray[np.int64]) -> Iterable[tuple[str, Span]]:
    """Yield the words of letters that the model reads whole, lower-cased."""
    end = int(offsets[:, 1].max()) if len(offsets) else 0
    for match in WORD.finditer(text):
        if match.end() <= end and match.group().isalpha():
            yield match.group().lower(), Span(*match.span())


def _mean_cosine(total: Floats, count: int) -> float:
    return float((total @ total - count) / (count * (count - 1)))
