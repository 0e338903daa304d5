"""Why a retriever that is linear in the words scored a document so: exact shares that sum to the score.

Static and fitted: a text's vector is a weighted sum of word vectors, the cosine of two sums is a sum over pairs of
words, and whitening is an affine map y = (x - a m) M, which adds one more "word" to each side: the collection's
mean. BM25 is a sum over terms by definition.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.encoder import WordEncoder
from indexer.vectors import Vectors
from indexer.whitening import Whitening

Floats = NDArray[np.float64]


class WordPairShare(NamedTuple):
    """What a query word and a document word add to the score together, all their repetitions counted."""

    query_word: str
    document_word: str
    share: float


class WordShare(NamedTuple):
    """What one word adds to the score."""

    word: str
    share: float


@dataclass(frozen=True, slots=True)
class WordExplanation:
    """A cosine taken apart: `score` = sum of `pairs` + sum of `query_mean` + sum of `document_mean` + `constant`.

    Attributes
    ----------
    score
        The sum of all shares: the retriever's score, up to rounding.
    pairs
        Every pair of a query word and a document word, largest share first.
    query_mean, document_mean
        What each word adds together with the other side's mean term. Whitening takes the collection's mean out of
        both texts; without whitening these are empty.
    constant
        What the two mean terms add together, whatever the words.
    unknown
        Query words without a vector, which add nothing.
    """

    score: float
    pairs: tuple[WordPairShare, ...]
    query_mean: tuple[WordShare, ...]
    document_mean: tuple[WordShare, ...]
    constant: float
    unknown: tuple[str, ...]

    @property
    def query_words(self) -> list[WordShare]:
        """What each query word adds with all document words, largest first."""
        return _summed((pair.query_word, pair.share) for pair in self.pairs)

    @property
    def document_words(self) -> list[WordShare]:
        """What each document word adds with all query words, largest first: the decisive words stand in front."""
        return _summed((pair.document_word, pair.share) for pair in self.pairs)


def explain_words(
    query: str, text: str, encoder: WordEncoder, whitening: Whitening | None = None, *, spread: bool = False
) -> WordExplanation:
    """Take apart the score of a text (a document's best passage) for a query.

    A text of which the encoder knows nothing has no vector: the score is 0 and there are no shares.

    Parameters
    ----------
    query, text
        What was compared.
    encoder, whitening
        The retriever's.
    spread
        Whether the collection's mean is taken out of the words, of each in proportion to its weight, instead of
        standing beside them: the pairs alone then sum to the score. Where all words have much in common, which is what
        whitening takes out, shares with the mean left in are large numbers that cancel.
    """
    query_words, query_vectors = _word_vectors(query, encoder)
    text_words, text_vectors = _word_vectors(text, encoder)
    unknown = encoder.coverage(query).unknown
    nothing = WordExplanation(0.0, (), (), (), 0.0, unknown)
    if not (query_words and text_words):
        return nothing
    scales = [np.linalg.norm(vectors.sum(axis=0)) for vectors in (query_vectors, text_vectors)]
    if not all(scales):
        return nothing
    # The last row on each side is the mean term: it is there once, whatever the words.
    left, right = (
        _mapped(vectors / scale, whitening)
        for vectors, scale in ((query_vectors, scales[0]), (text_vectors, scales[1]))
    )
    moved = whitening is not None and not whitening.is_identity
    if moved and spread:
        left, right = _spread(left, _weights(query, encoder)), _spread(right, _weights(text, encoder))
        moved = False
    lengths = [float(np.linalg.norm(side.sum(axis=0))) for side in (left, right)]
    if not all(lengths):
        return nothing
    shares = (left @ right.T) / (lengths[0] * lengths[1])
    pairs = [
        WordPairShare(first, second, float(shares[row, column]))
        for row, first in enumerate(query_words)
        for column, second in enumerate(text_words)
    ]
    return WordExplanation(
        score=float(shares.sum()),
        pairs=tuple(sorted(pairs, key=lambda pair: -pair.share)),
        query_mean=_mean_shares(query_words, shares[:-1, -1]) if moved else (),
        document_mean=_mean_shares(text_words, shares[-1, :-1]) if moved else (),
        constant=float(shares[-1, -1]),
        unknown=unknown,
    )


def query_direction(query: Vectors, whitening: Whitening | None = None) -> Floats:
    """Return the (d,) direction along which word vectors add to the score of a query.

    Parameters
    ----------
    query
        (1, r): its vector of unit length in the space that is searched.
    whitening
        What leads there from the encoder's d dimensions.
    """
    row = np.asarray(query, np.float64).reshape(-1)
    return row if whitening is None else (whitening.components / np.sqrt(whitening.shrunk)) @ row


def document_word_shares(
    direction: Floats, text: str, encoder: WordEncoder, whitening: Whitening | None = None
) -> list[WordShare]:
    """Return what each word of a text adds to its score with the whole query, largest first.

    The sums of `explain_words` over query words, the query's mean term among them, without the pairs: one product a
    text. Together with the text's own mean term they sum to the score.
    """
    words, vectors = _word_vectors(text, encoder)
    total = vectors.sum(axis=0)
    length = float(np.linalg.norm(total))
    if not length:
        return []
    unit = np.asarray(total / length, np.float32)[None]
    scale = length * (1.0 if whitening is None else float(np.linalg.norm(whitening.transform(unit))))
    if not scale:
        return []
    shares = vectors @ direction / scale
    return sorted((WordShare(word, float(share)) for word, share in zip(words, shares, strict=True)), key=_largest)


def _largest(share: WordShare) -> float:
    return -share.share


def _word_vectors(text: str, encoder: WordEncoder) -> tuple[list[str], Floats]:
    """Return the distinct known words and the (m, d) sums of their weighted vectors."""
    sums: dict[str, Floats] = {}
    for word, weight, vector in encoder.word_weights(text):
        addend = weight * np.asarray(vector, dtype=np.float64).reshape(-1)
        sums[word] = sums[word] + addend if word in sums else addend
    rows = np.array(list(sums.values())).reshape(len(sums), encoder.dimension)
    return list(sums), rows


def _mapped(vectors: Floats, whitening: Whitening | None) -> Floats:
    """Return the (m + 1, r) words in the space that is searched, the mean term last (zeros without whitening)."""
    if whitening is None:
        return np.vstack([vectors, np.zeros(vectors.shape[1])])
    matrix = whitening.components / np.sqrt(whitening.shrunk)
    return np.vstack([vectors, -whitening.share * whitening.mean]) @ matrix


def _weights(text: str, encoder: WordEncoder) -> Floats:
    """Return the (m,) weights of the distinct known words, of all their repetitions together."""
    sums: dict[str, float] = {}
    for word, weight, _ in encoder.word_weights(text):
        sums[word] = sums.get(word, 0.0) + weight
    return np.array(list(sums.values()))


def _spread(rows: Floats, weights: Floats) -> Floats:
    """Return (m + 1, r) rows whose last one has been given to the others in proportion to their weights."""
    total = weights.sum()
    parts = weights / total if total else np.full(len(weights), 1.0 / len(weights))
    return np.vstack([rows[:-1] + parts[:, None] * rows[-1], np.zeros(rows.shape[1])])


def _mean_shares(words: Sequence[str], shares: Floats) -> tuple[WordShare, ...]:
    return tuple(WordShare(word, float(share)) for word, share in zip(words, shares, strict=True))


def _summed(shares: Iterable[tuple[str, float]]) -> list[WordShare]:
    sums: dict[str, float] = {}
    for word, share in shares:
        sums[word] = sums.get(word, 0.0) + share
    return sorted((WordShare(word, share) for word, share in sums.items()), key=lambda each: -each.share)


class TermStatistics(NamedTuple):
    """What BM25 knows of one query term in one document.

    `idf` is the index's own; lengths are in terms; `frequency` is 0 where the document lacks the term.
    """

    term: str
    query_frequency: int
    frequency: int
    document_frequency: int
    idf: float
    length: float
    average_length: float


class TermShare(NamedTuple):
    """What a term adds: `share` = query frequency * idf * saturation.

    `saturation` grows with the term's frequency towards k1 + 1, the slower the longer the document;
    `length_factor` is 1 for a document of average length and above 1 for a longer one.
    """

    statistics: TermStatistics
    saturation: float
    length_factor: float
    share: float


@dataclass(frozen=True, slots=True)
class TermExplanation:
    """A BM25 score taken apart: `score` is the sum of the terms' shares, which stand largest first."""

    score: float
    terms: tuple[TermShare, ...]

    @property
    def document_words(self) -> list[WordShare]:
        """The terms that the document has, largest share first."""
        return [WordShare(each.statistics.term, each.share) for each in self.terms if each.statistics.frequency]


def explain_terms(statistics: Iterable[TermStatistics], *, k1: float, b: float) -> TermExplanation:
    """Take a BM25 score apart (Robertson and Zaragoza 2009), given each term's statistics.

    share = qf * idf * f (k1 + 1) / (f + k1 (1 - b + b length / average length))
    """
    shares = []
    for each in statistics:
        length_factor = 1.0 - b + b * each.length / each.average_length if each.average_length else 1.0
        below = each.frequency + k1 * length_factor
        saturation = each.frequency * (k1 + 1.0) / below if below else 0.0
        shares.append(TermShare(each, saturation, length_factor, each.query_frequency * each.idf * saturation))
    shares.sort(key=lambda share: -share.share)
    return TermExplanation(float(sum(share.share for share in shares)), tuple(shares))
