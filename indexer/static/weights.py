"""How often words occur in a corpus, and what a word weighs because of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress, Silent
from indexer.static.tokenizer import blocks, spans
from indexer.static.vocabulary import Vocabulary, span_hashes

MAX_WORDS = 1_000_000
#: a in a / (a + p), Arora et al. 2017's choice for word vectors trained on large corpora
SIF_CONSTANT = 1e-3


class Weighting(StrEnum):
    """Weight of a word: inverse document frequency, smooth inverse frequency, or 1."""

    IDF = "idf"
    SIF = "sif"
    UNIFORM = "uniform"


@dataclass(frozen=True, slots=True, eq=False)
class WordStatistics:
    """Counts of V words over a corpus, the most frequent word first.

    Attributes
    ----------
    words : the vocabulary.
    document_frequency : int64, (V,), texts that hold the word.
    collection_frequency : int64, (V,), occurrences of the word.
    n_texts : texts counted.
    n_tokens : words counted, those dropped from the vocabulary included.
    n_dropped : distinct words dropped because of the cap (at least; rare ones may be pruned more than once).
    """

    words: Vocabulary
    document_frequency: NDArray[np.int64]
    collection_frequency: NDArray[np.int64]
    n_texts: int
    n_tokens: int
    n_dropped: int = 0

    def weights(self, words: Sequence[str], weighting: Weighting | str = Weighting.IDF) -> NDArray[np.float32]:
        """Return (len(words),) float32 weights; a word that the corpus lacks weighs as if it occurred once.

        idf is ln(1 + n / df): positive even for a word in every text, so that no text becomes a zero vector.
        sif is a / (a + cf / tokens), after Arora, Liang and Ma, "A simple but tough-to-beat baseline for
        sentence embeddings", ICLR 2017.
        """
        ids = self.words.ids(words)
        match Weighting(weighting):
            case Weighting.IDF:
                return idf(_at(self.document_frequency, ids), self.n_texts)
            case Weighting.SIF:
                share = _at(self.collection_frequency, ids) / max(self.n_tokens, 1)
                return (SIF_CONSTANT / (SIF_CONSTANT + share)).astype(np.float32)
            case Weighting.UNIFORM:
                return np.ones(len(ids), dtype=np.float32)
            case _ as never:
                assert_never(never)

    def unseen_weight(self, weighting: Weighting | str = Weighting.IDF) -> float:
        """Return the weight of a word that the corpus lacks."""
        return float(self.weights([""], weighting)[0])


def _at(counts: NDArray[np.int64], ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return counts by word id, 1 for -1."""
    return np.append(counts, 1)[ids]


def idf(document_frequency: NDArray[np.int64], n_texts: int) -> NDArray[np.float32]:
    """Return ln(1 + n / df) as float32; df below 1 counts as 1.

    Examples
    --------
    >>> idf(np.array([1, 2]), 2).round(4).tolist()
    [1.0986, 0.6931]
    """
    return np.log1p(n_texts / np.maximum(document_frequency, 1)).astype(np.float32)


class WordCounter:
    """Counts words over blocks of texts, one pass, without a Python loop over words.

    Known words sit in arrays sorted by hash; a block's distinct words are merged in, and only a word seen for
    the first time becomes a Python string. When four times `max_words` are held, the rarest are forgotten.
    """

    def __init__(self, *, max_words: int = MAX_WORDS) -> None:
        """Start with nothing counted."""
        self._max_words = max_words
        self._hashes = np.empty(0, dtype=np.uint64)
        self._words = np.empty(0, dtype=object)
        self._counts = np.empty((2, 0), dtype=np.int64)  # texts with the word, occurrences
        self._n_texts = self._n_tokens = self._n_dropped = 0

    def add(self, texts: Sequence[str]) -> None:
        """Count the words of some texts."""
        for block in blocks(texts, characters=1 << 22):  # large, so that few merges are needed
            self._add_block(block)
        if len(self._words) > 4 * self._max_words:
            self._keep(self._order()[: 2 * self._max_words])

    def _add_block(self, texts: Sequence[str]) -> None:
        found = spans(texts)
        hashes, first, numbers = np.unique(span_hashes(found), return_index=True, return_inverse=True)
        size = len(hashes)
        occurrences = np.bincount(numbers, minlength=size)
        text_of_token = np.repeat(np.arange(len(texts)), np.diff(found.offsets))
        pairs = np.unique(text_of_token * np.int64(max(size, 1)) + numbers)
        in_texts = np.bincount(pairs % max(size, 1), minlength=size)
        self._n_texts += len(texts)
        self._n_tokens += len(numbers)
        at = np.searchsorted(self._hashes, hashes)
        known = np.zeros(size, dtype=bool)
        inner = at < len(self._hashes)
        known[inner] = self._hashes[at[inner]] == hashes[inner]
        self._counts[:, at[known]] += np.stack([in_texts[known], occurrences[known]])
        new = np.flatnonzero(~known)
        if new.size:
            strings = np.empty(len(new), dtype=object)
            strings[:] = [found.word(int(first[number])) for number in new]
            self._hashes = np.insert(self._hashes, at[new], hashes[new])
            self._words = np.insert(self._words, at[new], strings)
            added = np.stack([in_texts[new], occurrences[new]])
            self._counts = np.insert(self._counts, at[new], added, axis=1)

    def _order(self) -> NDArray[np.int64]:
        """Return places by occurrences, descending; equal counts by hash, which is the arrays' order."""
        return np.argsort(-self._counts[1], kind="stable")

    def _keep(self, places: NDArray[np.int64]) -> None:
        self._n_dropped += len(self._words) - len(places)
        places = np.sort(places)
        self._hashes, self._words = self._hashes[places], self._words[places]
        self._counts = self._counts[:, places]

    def statistics(self) -> WordStatistics:
        """Return what was counted so far, the `max_words` most frequent words of it."""
        order = self._order()
        kept = order[: self._max_words]
        return WordStatistics(
            Vocabulary.of(self._words[kept].tolist()),
            self._counts[0, kept],
            self._counts[1, kept],
            self._n_texts,
            self._n_tokens,
            self._n_dropped + len(order) - len(kept),
        )


def count_words(
    text_blocks: Iterable[Sequence[str]], *, max_words: int = MAX_WORDS, progress: Progress | None = None
) -> WordStatistics:
    """Count the words of a corpus that comes in blocks of texts.

    `max_words` caps the vocabulary; what is dropped is noted. A million words of 50 dimensions are 200 MB,
    and what lies beyond them in natural text occurs once or twice.
    """
    progress = progress or Silent()
    counter = WordCounter(max_words=max_words)
    progress.start("counting words", None, "texts")
    try:
        for texts in text_blocks:
            counter.add(texts)
            progress.advance(len(texts))
    finally:
        progress.finish()
    statistics = counter.statistics()
    if statistics.n_dropped:
        progress.note(
            f"{statistics.n_dropped:,} rare words left out of the static vocabulary, "
            f"which keeps the {max_words:,} most frequent"
        )
    return statistics
