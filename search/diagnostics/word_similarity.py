"""Do near words have near vectors? Rank correlation with human judgements of word pairs.

Two published sets come with gensim: WordSim-353 (relatedness; Finkelstein et al. 2002) and SimLex-999
(similarity proper; Hill, Reichart and Korhonen 2015).
"""

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.errors import ModelNotFoundError
from indexer.static.word_vectors import WordVectors
from indexer.vectors import as_float32, normalize


class WordPair(NamedTuple):
    """Two words and what people said of them, higher meaning nearer."""

    first: str
    second: str
    score: float


class PairSet(StrEnum):
    """Published sets of word pairs."""

    WORDSIM_353 = "wordsim353"
    SIMLEX_999 = "simlex999"


_FILES = {PairSet.WORDSIM_353: "wordsim353.tsv", PairSet.SIMLEX_999: "simlex999.txt"}


class WordSimilarity(NamedTuple):
    """Spearman's rank correlation over the covered pairs (nan if fewer than 2), and how many these are."""

    spearman: float
    covered: int
    pairs: int


def word_pairs(which: PairSet | str) -> list[WordPair]:
    """Read one of the published sets out of gensim's package, found by path.

    Raises
    ------
    ModelNotFoundError
        If gensim's data files are not there.
    """
    found = importlib.util.find_spec("gensim")
    name = _FILES[PairSet(which)]
    path = Path(found.origin).parent / "test" / "test_data" / name if found and found.origin else Path(name)
    if not path.is_file():
        message = f"{path} is missing; expected it in gensim's test data, install gensim again"
        raise ModelNotFoundError(message)
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line.strip() and not line.startswith("#"))
    return [WordPair(first, second, float(score)) for first, second, score in rows]


def word_similarity(vectors: WordVectors, pairs: Sequence[WordPair]) -> WordSimilarity:
    """Correlate cosines with human scores over the pairs that the table covers, as written or lower-cased.

    Pairs with an unknown word are left out and not counted as 0, as is usual; `covered` says how many remain.
    """
    wanted = {form for pair in pairs for word in pair[:2] for form in (word, word.lower())}
    row_of: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        if word in wanted:
            row_of.setdefault(word, row)
    rows = [(_row(row_of, pair.first), _row(row_of, pair.second), pair.score) for pair in pairs]
    known = [(first, second, score) for first, second, score in rows if first is not None and second is not None]
    if len(known) < 2:
        return WordSimilarity(math.nan, len(known), len(pairs))
    first_rows, second_rows, scores = zip(*known, strict=True)
    first, second = (normalize(vectors.matrix[list(rows)]) for rows in (first_rows, second_rows))
    cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
    return WordSimilarity(rank_correlation(cosines, np.array(scores)), len(known), len(pairs))


def with_even_features(vectors: WordVectors) -> WordVectors:
    """Return the table with each of its d dimensions scaled to unit length over the vocabulary.

    GloVe's authors did so before they took cosines (Pennington, Socher and Manning 2014, Table 3); most others do not.
    """
    lengths = np.sqrt(np.einsum("vd,vd->d", vectors.matrix, vectors.matrix, dtype=np.float64))
    matrix = as_float32(vectors.matrix / np.where(lengths > 0.0, lengths, 1.0))
    return replace(vectors, matrix=matrix)


def rank_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return Spearman's rank correlation of two (n,) arrays, ties at their mean rank; nan where one is constant."""
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(first), rankdata(second)])
    return float(np.corrcoef(ranks)[0, 1]) if len(first) > 1 and ranks.std(axis=1).all() else math.nan


def _row(row_of: dict[str, int], word: str) -> int | None:
    return row_of.get(word, row_of.get(word.lower()))
