"""How alike any two tokens are in each layer, which must be known before a cosine says anything.

In a narrow space every two vectors have a high cosine; Ethayarajh 2019, "How Contextual are Contextualized Word
Representations?", measures it on tokens drawn at random and subtracts it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from corpora.builtin.lee import open_lee
from indexer.contextual.states import StateReader
from search.errors import DiagnosisError

Floats = NDArray[np.float64]

_TOKENS_PER_TEXT = 8
_TEXTS = 40
_CHARACTERS = 250


def background_texts() -> list[str]:
    """Return general English news, cut short: what random tokens are drawn from unless a corpus is given."""
    documents = open_lee().background()
    return [document.searchable_text[:_CHARACTERS] for document, _ in zip(documents, range(_TEXTS), strict=False)]


def token_anisotropy(
    reader: StateReader, texts: Sequence[str], rng: np.random.Generator, *, per_text: int = _TOKENS_PER_TEXT
) -> Floats:
    """Return the mean cosine of two random tokens, by layer: (1 + L,) float64.

    Up to `per_text` tokens are drawn of each text; all pairs of the drawn tokens count.

    Raises
    ------
    DiagnosisError
        If the texts have fewer than two tokens.
    """
    drawn = []
    for _, _, states in reader.piece_states([text for text in texts if text.strip()]):
        count = states.shape[1]
        chosen = rng.choice(count, min(per_text, count), replace=False)
        drawn.append(states[:, chosen].astype(np.float64))
    vectors = np.concatenate(drawn, axis=1) if drawn else np.zeros((1 + reader.layers, 0, 1))
    if vectors.shape[1] < 2:
        message = f"random tokens need background texts of two words or more, found {len(texts)} texts"
        raise DiagnosisError(message)
    return mean_cosine(vectors)


def mean_cosine(vectors: NDArray[np.floating]) -> Floats:
    """Return the mean cosine over all pairs of n vectors, for each of the leading axes of (..., n, d).

    The squared length of the sum of unit vectors is n plus the sum of the cosines of all ordered pairs.
    """
    units = unit(vectors)
    n = units.shape[-2]
    total = (units.sum(axis=-2) ** 2).sum(axis=-1)
    known = (units**2).sum(axis=(-1, -2))
    return np.asarray((total - known) / (n * (n - 1)), dtype=np.float64)


def pairwise_cosine(total: Floats, count: int) -> float:
    """Return the mean cosine over all pairs of `count` unit vectors, two or more, that sum to `total`."""
    return float((total @ total - count) / (count * (count - 1)))


def unit(vectors: NDArray[np.floating]) -> Floats:
    """Scale the vectors of (..., d) to unit length in float64; zeros stay zeros."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float64)
