"""Which words of a corpus depend on their contexts most: self-similarity (Ethayarajh 2019), less anisotropy."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress, Silent
from indexer.contextual.states import Span, StateReader
from search.diagnostics.anisotropy import Floats, pairwise_cosine, token_anisotropy, unit
from search.diagnostics.words import WORD
from search.errors import DiagnosisError


class WordStability(NamedTuple):
    """A word, its occurrences read, and its self-similarity: their mean cosine less that of random tokens."""

    word: str
    occurrences: int
    self_similarity: float


@dataclass(frozen=True, slots=True)
class ContextDependence:
    """A corpus's most context-dependent and most stable words, in one layer.

    Attributes
    ----------
    layer
        Whose states.
    texts
        Texts read.
    words, least_occurrences
        Words ranked: those with so many occurrences or more.
    anisotropy
        Mean cosine of two random tokens.
    dependent, stable
        The two ends of the ranking.
    dependent_beside
        The most context-dependent words beside the everyday ones.
    self_similarities
        Of all ranked words, ascending.
    """

    layer: int
    texts: int
    words: int
    least_occurrences: int
    anisotropy: float
    dependent: tuple[WordStability, ...]
    dependent_beside: tuple[WordStability, ...]
    stable: tuple[WordStability, ...]
    self_similarities: tuple[float, ...]

    def place(self, self_similarity: float) -> float:
        """Return the share of the ranked words that depend on their contexts more than a word of this similarity."""
        return float(np.searchsorted(self.self_similarities, self_similarity) / len(self.self_similarities))


def context_dependence(
    texts: Sequence[str],
    reader: StateReader,
    *,
    layer: int | None = None,
    least: int = 10,
    shown: int = 10,
    everyday: Collection[str] = (),
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
    everyday
        Words, such as "which", of whose meaning the context is nearly all; the rest is ranked beside them, too.
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
    counts: Counter[str] = Counter()
    progress.start("reading words in context", len(texts), "texts")
    try:
        for number, offsets, states in reader.piece_states(texts):
            found = list(_words_read(texts[number], offsets))
            for word, span in found:
                rows = (offsets[:, 0] < span.end) & (offsets[:, 1] > span.start)
                vector = unit(states[layer, rows].mean(axis=0))
                # The sum of unit vectors is all that their mean cosine needs.
                sums[word] = sums[word] + vector if word in sums else vector
            counts.update(word for word, _ in found)
            progress.advance()
    finally:
        progress.finish()
    frequent = [word for word, count in counts.items() if count >= max(2, least)]
    if not frequent:
        message = f"none of the {len(counts)} words of {len(texts)} texts occurs {least} times; lower the least number"
        raise DiagnosisError(message)
    anisotropy = float(token_anisotropy(reader, texts[:200], np.random.default_rng(seed))[layer])
    ranked = sorted(
        (
            WordStability(word, counts[word], pairwise_cosine(sums[word], counts[word]) - anisotropy)
            for word in frequent
        ),
        key=lambda each: (each.self_similarity, each.word),
    )
    return ContextDependence(
        layer=layer,
        texts=len(texts),
        words=len(frequent),
        least_occurrences=least,
        anisotropy=anisotropy,
        dependent=tuple(ranked[:shown]),
        dependent_beside=tuple(islice((each for each in ranked if each.word not in everyday), shown)),
        stable=tuple(ranked[::-1][:shown]),
        self_similarities=tuple(each.self_similarity for each in ranked),
    )


def _words_read(text: str, offsets: NDArray[np.int64]) -> Iterable[tuple[str, Span]]:
    """Yield the words of letters that the model reads whole, lower-cased."""
    end = int(offsets[:, 1].max()) if len(offsets) else 0
    for match in WORD.finditer(text):
        if match.end() <= end and match.group().isalpha():
            yield match.group().lower(), Span(*match.span())
