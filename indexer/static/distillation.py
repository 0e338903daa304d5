"""From texts and a contextual encoder to a static one: counts, words encoded alone, the finished encoder."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress, Silent
from indexer.encoder import Encoder
from indexer.static.averaging import AveragedEncoder, TermFrequency, averaged
from indexer.static.fitting import FittedTable
from indexer.static.tokenizer import token_ids, words
from indexer.static.vocabulary import Vocabulary
from indexer.vectors import Vectors, normalize

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Contextual vectors (n, d) to the space that is fitted to: centred or whitened, of unit length.
Space = Callable[[Vectors], Vectors]

_BLOCK = 4096


def centring(mean: NDArray[np.floating]) -> Space:
    """Return the space whose origin is `mean`, (d,): the weakest of all whitenings."""
    origin = np.asarray(mean, np.float32)
    return lambda vectors: normalize(vectors - origin)


def word_counts(text_blocks: Iterable[Sequence[str]], vocabulary: Vocabulary) -> "csr_array":
    """Return how often each of V words occurs in each text, (n, V) float32; other words are not counted."""
    from scipy.sparse import csr_array

    parts: list[NDArray[np.int32]] = []
    counts: list[NDArray[np.float32]] = []
    lengths: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
    for texts in text_blocks:
        found = token_ids(texts, vocabulary)
        rows = np.repeat(np.arange(len(texts)), np.diff(found.offsets))
        known = found.ids >= 0
        ones = np.ones(int(known.sum()), np.float32)
        # Built through coordinates, which adds up equal ones.
        shape = (len(texts), len(vocabulary))
        block = csr_array((ones, (rows[known], found.ids[known])), shape=shape)
        parts.append(block.indices.astype(np.int32))
        counts.append(block.data)
        lengths.append(np.diff(block.indptr).astype(np.int64))
    indptr = np.cumsum(np.concatenate(lengths))
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    indices = np.concatenate([np.empty(0, np.int32), *parts])
    data = np.concatenate([np.empty(0, np.float32), *counts])
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(vocabulary)))


def words_alone(encoder: Encoder, listed: Sequence[str], space: Space, *, progress: Progress | None = None) -> Vectors:
    """Encode each of V words as a text of its own, in a space: (V, d) float32, the prior of `fit_table`."""
    progress = progress or Silent()
    texts = list(listed)
    table = np.zeros((len(texts), encoder.dimension), np.float32)
    progress.start("encoding words alone", len(texts), "words")
    for start in range(0, len(texts), _BLOCK):
        part = texts[start : start + _BLOCK]
        table[start : start + len(part)] = space(encoder.encode(part))
        progress.advance(len(part))
    progress.finish()
    return table


def pieces_of(definition: str) -> list[str]:
    """Return the pieces of a tokenizer, given as the text of its `tokenizer.json`, in its order."""
    vocabulary = json.loads(definition)["model"].get("vocab", {})
    # WordPiece and BPE map pieces to ids; Unigram lists pieces with scores.
    return [piece if isinstance(piece, str) else str(piece[0]) for piece in vocabulary]


def whole_words(pieces: Iterable[str]) -> list[str]:
    """Return the pieces of a word-piece vocabulary that are words of their own, as the tokenizer writes them.

    They are the words that a general model holds to be common: vectors for them cover most words of queries
    that a corpus lacks.

    Examples
    --------
    >>> whole_words(["[CLS]", "!", "bank", "##ing", "Bank"])
    ['bank']
    """
    listed = list(pieces)
    # SentencePiece and byte-level BPE mark the beginning of a word, WordPiece its continuation.
    marker = next((mark for mark in "\u2581\u0120" if any(piece.startswith(mark) for piece in listed)), "")
    begun = (piece.removeprefix(marker) for piece in listed if piece.startswith(marker))
    return list(dict.fromkeys(word for word in begun if words(word) == [word]))


@dataclass(frozen=True, slots=True, eq=False)
class FurtherWords:
    """Words that the corpus lacks and queries may hold: their vectors (w, d) alone, in the fit's space."""

    words: Sequence[str]
    alone: Vectors


def static_encoder(
    vocabulary: Vocabulary,
    fitted: FittedTable,
    *,
    further: FurtherWords | None = None,
    unseen_weight: float | None = None,
    term_frequency: TermFrequency = TermFrequency.RAW,
    name: str = "",
) -> AveragedEncoder:
    """Return the encoder of fitted word vectors.

    Parameters
    ----------
    vocabulary
        The V words of the fit.
    fitted
        Their vectors and weights.
    further
        Words to add; those of the vocabulary are passed over. A word gets its prior s P, as if no passage
        held it.
    unseen_weight
        Weight of such a word, idf ** exponent for one passage; None: the largest of the fit's weights.
    term_frequency
        What a repeated word counts; as in the fit.
    name
        For people.
    """
    if further is None or not len(further.words):
        return averaged(vocabulary, fitted.table, fitted.weights, term_frequency=term_frequency, name=name)
    new = vocabulary.ids(further.words) < 0
    listed = [word for word, is_new in zip(further.words, new, strict=True) if is_new]
    rows = np.float32(fitted.prior_scale) * normalize(further.alone[new] - fitted.prior_mean)
    weight = unseen_weight if unseen_weight is not None else float(fitted.weights.max(initial=0.0))
    weights = np.concatenate([fitted.weights, np.full(len(listed), weight, np.float32)])
    table = np.concatenate([fitted.table, rows])
    both = [*vocabulary, *listed]
    return averaged(both, table, weights, term_frequency=term_frequency, name=name)


def share_rows(count: int, share: float, *, seed: int = 0) -> NDArray[np.int64]:
    """Return the rows, ascending, of a share of `count` texts, drawn at random; at least one where there is one.

    Larger shares hold the rows of smaller ones, so that raising a share encodes only what is new.

    Raises
    ------
    ValueError
        If the share is not above 0 and at most 1.
    """
    if not 0.0 < share <= 1.0:
        message = f"the share of texts to fit on must be above 0 and at most 1, found {share}"
        raise ValueError(message)
    order = np.random.default_rng(seed).permutation(count)
    return np.sort(order[: max(1, round(share * count))]).astype(np.int64)
