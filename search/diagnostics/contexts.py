"""Why there is no lookup table for contextual vectors: how many contexts a corpus has, and what they would weigh.

A token's contextual vector depends on its neighbours. A table would need a row for each word in each context. This
counts the distinct contexts of every word (the n words on either side), as they come, without keeping the texts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.static.tokenizer import words as tokenize
from search.errors import DiagnosisError

_BUFFER = 1 << 21
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

Hashes = NDArray[np.uint64]


class WordContexts(NamedTuple):
    """A word, how often it occurs, and in how many distinct contexts."""

    word: str
    tokens: int
    contexts: int


class Growth(NamedTuple):
    """How many distinct (word, context) pairs the first so many tokens hold."""

    tokens: int
    contexts: int


@dataclass(frozen=True, slots=True)
class ContextCount:
    """Contexts of one width.

    Attributes
    ----------
    window
        Words on either side.
    contexts
        Distinct (word, context) pairs, and so the rows of the table.
    new_at_the_end
        Share of the tokens of the second half whose context the first half (about) had not shown: what a table made
        of one half would not find in the other.
    growth
        The number of pairs at doubling numbers of tokens, and at the end.
    richest
        The words with the most distinct contexts.
    single
        Share of the words that occur in one context only.
    """

    window: int
    contexts: int
    new_at_the_end: float
    growth: tuple[Growth, ...]
    richest: tuple[WordContexts, ...]
    single: float

    def table_bytes(self, dimension: int) -> int:
        """Return what a float32 table of all contexts would weigh."""
        return self.contexts * dimension * 4


class TableWeight(NamedTuple):
    """What a table of all contexts of a width weighs."""

    window: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TableCosts:
    """What each way to a vector weighs, in bytes, and a query's forward pass, in milliseconds where it was measured."""

    static_bytes: int
    fitted_bytes: int
    contextual_bytes: tuple[TableWeight, ...]
    model_bytes: int
    forward_ms: float | None


@dataclass(frozen=True, slots=True)
class ContextSurvey:
    """The contexts of a corpus: `counts` by window, narrow ones first."""

    texts: int
    tokens: int
    words: int
    counts: tuple[ContextCount, ...]

    def costs(
        self, *, static_dimension: int, dimension: int, model_bytes: int, forward_ms: float | None = None
    ) -> TableCosts:
        """Compare tables: one row a word (static, fitted), one a context (by window), and the model instead."""
        return TableCosts(
            static_bytes=self.words * static_dimension * 4,
            fitted_bytes=self.words * dimension * 4,
            contextual_bytes=tuple(TableWeight(count.window, count.table_bytes(dimension)) for count in self.counts),
            model_bytes=model_bytes,
            forward_ms=forward_ms,
        )


class _DistinctPairs:
    """Distinct (word, context) pairs of one window width; 12 bytes each."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.growth: list[Growth] = []
        self._hashes: Hashes = np.zeros(0, np.uint64)
        self._words: NDArray[np.int32] = np.zeros(0, np.int32)
        self._pending: list[tuple[Hashes, NDArray[np.int32]]] = []
        self._size = 0

    def add(self, ids: NDArray[np.int32]) -> None:
        """Add the tokens of one text, given as word numbers."""
        self._pending.append((context_hashes(ids, self.window), ids))
        self._size += len(ids)
        if self._size >= _BUFFER:
            self.merge()

    def merge(self) -> int:
        """Take in what is pending and return the number of pairs."""
        if self._pending:
            hashes = np.concatenate([self._hashes, *(each for each, _ in self._pending)])
            words = np.concatenate([self._words, *(each for _, each in self._pending)])
            self._hashes, first = np.unique(hashes, return_index=True)
            self._words = words[first]
            self._pending, self._size = [], 0
        return len(self._hashes)

    def per_word(self, words: int) -> NDArray[np.int64]:
        """Return (V,) distinct contexts of each word."""
        self.merge()
        return np.bincount(self._words, minlength=words)


def context_hashes(ids: NDArray[np.int32], window: int) -> Hashes:
    """Return a 64-bit hash of each token with its `window` neighbours on either side, the text's ends being neighbours.

    Two of 10 million different contexts fall on one hash with a chance of 3 in a million.
    """
    padded = np.full(len(ids) + 2 * window, -1, dtype=np.int64)
    padded[window : window + len(ids)] = ids
    values = np.zeros(len(ids), dtype=np.uint64)
    for shift in range(2 * window + 1):
        values = (values ^ (padded[shift : shift + len(ids)] + 2).astype(np.uint64)) * _FIRST
        values ^= values >> np.uint64(32)
        values *= _SECOND
        values ^= values >> np.uint64(29)
    return values


def survey_contexts(
    texts: Iterable[str], *, windows: Sequence[int] = (0, 1, 2, 5), examples: int = 10
) -> ContextSurvey:
    """Count the distinct contexts of every word, in one pass over the texts.

    Parameters
    ----------
    texts
        The corpus; what the searcher's tokenizer makes of it counts.
    windows
        Words on either side; 0 is the word alone.
    examples
        Words named for each window.

    Raises
    ------
    DiagnosisError
        If a window is negative.
    """
    if not windows or min(windows) < 0:
        message = f"windows are numbers of words from 0, found {list(windows)}"
        raise DiagnosisError(message)
    pairs = [_DistinctPairs(window) for window in sorted(set(windows))]
    numbers: dict[str, int] = {}
    occurrences: list[int] = []
    tokens = count = 0
    next_mark = 1 << 10
    for text in texts:
        count += 1
        found = tokenize(text)
        if not found:
            continue
        ids = np.array([numbers.setdefault(word, len(numbers)) for word in found], dtype=np.int32)
        occurrences.extend([0] * (len(numbers) - len(occurrences)))
        for number in ids.tolist():
            occurrences[number] += 1
        tokens += len(found)
        for each in pairs:
            each.add(ids)
        if tokens >= next_mark:
            for each in pairs:
                each.growth.append(Growth(tokens, each.merge()))
            while next_mark <= tokens:
                next_mark *= 2
    names = list(numbers)
    return ContextSurvey(
        count, tokens, len(names), tuple(_count(each, names, occurrences, tokens, examples) for each in pairs)
    )


def _count(
    pairs: _DistinctPairs, names: Sequence[str], occurrences: Sequence[int], tokens: int, examples: int
) -> ContextCount:
    per_word = pairs.per_word(len(names))
    total = int(per_word.sum())
    growth = [*pairs.growth]
    if not growth or growth[-1].tokens < tokens:
        growth.append(Growth(tokens, total))
    # The mark nearest to half of the tokens; without one, the corpus is too small to halve.
    half = min(growth[:-1], key=lambda mark: abs(mark.tokens - tokens / 2), default=Growth(0, 0))
    rest = tokens - half.tokens
    richest = np.argsort(-per_word, kind="stable")[:examples]
    return ContextCount(
        window=pairs.window,
        contexts=total,
        new_at_the_end=(total - half.contexts) / rest if rest else 0.0,
        growth=tuple(growth),
        richest=tuple(WordContexts(names[word], occurrences[word], int(per_word[word])) for word in richest.tolist()),
        single=float((per_word == 1).mean()) if len(per_word) else 0.0,
    )
