"""The static encoder: a table of word vectors, a weight a word, and a weighted sum.

A text with word counts f has the vector sum over its words of t(f_w) * weight_w * table_w, scaled to unit
length; t(f) is f (`raw`) or 1 + ln f (`log`). Words that the table lacks are composed from their parts where
the table brings a `Composition`, and are left out otherwise.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from math import log
from pathlib import Path
from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexer.encoder import Coverage, Role
from indexer.errors import DamagedIndexError, FormatVersionError, other_format
from indexer.static import seal
from indexer.static.composition import Composition, load_composition
from indexer.static.tokenizer import TOKENIZER_VERSION, Spans, blocks, spans, words
from indexer.static.vocabulary import Vocabulary, mapped, span_hashes
from indexer.vectors import Vectors, as_float32, normalize

KIND = "averaged"
_FORMAT_VERSION = 1
_VERSIONS = (_FORMAT_VERSION, TOKENIZER_VERSION)
#: up to this many words in all, plain Python is faster than setting up the bulk path
_FEW_CHARACTERS = 4_000
_THREADS = min(4, os.cpu_count() or 1)


class TermFrequency(StrEnum):
    """How often a word counts that occurs f times in a text: f, or 1 + ln f."""

    RAW = "raw"
    LOG = "log"

    def of(self, count: int) -> float:
        """Return the factor for one count, 1 or more."""
        match self:
            case TermFrequency.RAW:
                return float(count)
            case TermFrequency.LOG:
                return 1.0 + log(count)
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, eq=False)
class AveragedEncoder:
    """Weighted averages of word vectors, of unit length. Make one with `averaged`, open one with `load`.

    Attributes
    ----------
    vocabulary : the table's V words, as the tokenizer writes them.
    table : (V, d) float32.
    weights : (V,) float32.
    term_frequency : what a repeated word counts.
    composition : vectors for words outside the table, or None.
    composed_weight : weight of such a word.
    fingerprint : hex digest of all the above and the tokenizer's version.
    name : where the table came from, for people.
    """

    vocabulary: Vocabulary
    table: Vectors
    weights: NDArray[np.float32]
    term_frequency: TermFrequency
    composition: Composition | None
    composed_weight: float
    fingerprint: str
    name: str = ""

    @property
    def dimension(self) -> int:
        """Dimensions d of the vectors."""
        return int(self.table.shape[1])

    def encode(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Vectors:
        """Return (n, d) float32 vectors of unit length, zeros for texts without a known word."""
        del role  # a word means the same on either side
        if sum(map(len, texts)) <= _FEW_CHARACTERS:
            return normalize(np.stack([self._sum(text) for text in texts])) if texts else self._empty(0)
        parts = blocks(texts)
        found = self._empty(len(texts))
        ends = np.cumsum([len(part) for part in parts])

        def fill(number: int) -> None:
            end = int(ends[number])
            found[end - len(parts[number]) : end] = normalize(self._sums(spans(parts[number])))

        if len(parts) == 1 or _THREADS == 1:
            for number in range(len(parts)):
                fill(number)
        else:
            with ThreadPoolExecutor(_THREADS) as pool:
                list(pool.map(fill, range(len(parts))))
        return found

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return how many word tokens of the texts have a vector in the table."""
        counts = (np.count_nonzero(self.vocabulary.ids_of_spans(spans(part)) >= 0) for part in blocks(texts))
        return int(sum(counts))

    def coverage(self, text: str) -> Coverage:
        """Return which of the text's words have a vector, in the table or composed."""
        known: list[str] = []
        unknown: list[str] = []
        for word in words(text):
            (unknown if self.vector(word) is None else known).append(word)
        return Coverage(tuple(known), tuple(unknown))

    def vector(self, word: str) -> Vectors | None:
        """Return the (d,) vector of a word as the tokenizer writes it, None where there is none."""
        row = self.vocabulary.id_of(word)
        if row >= 0:
            vector: Vectors = self.table[row]
            return vector
        return None if self.composition is None else self.composition.vector(word)

    def weight(self, word: str) -> float:
        """Return the weight of a word, which for a word outside the table is `composed_weight`."""
        row = self.vocabulary.id_of(word)
        return float(self.weights[row]) if row >= 0 else self.composed_weight

    def word_weights(self, text: str) -> list[tuple[str, float, Vectors]]:
        """Return (word, weight, (1, d) vector) for each known word token; they sum to the text's vector."""
        found = words(text)
        shares = {word: self.term_frequency.of(count) / count for word, count in Counter(found).items()}
        vectors = {word: self.vector(word) for word in shares}
        return [
            (word, shares[word] * self.weight(word), vector[None])
            for word in found
            if (vector := vectors[word]) is not None
        ]

    def _empty(self, n: int) -> Vectors:
        return np.empty((n, self.dimension), dtype=np.float32)

    def _sum(self, text: str) -> Vectors:
        """Sum one text word by word: the plain twin of `_sums`, and faster for a query."""
        counts: dict[str, int] = {}
        for word in words(text):
            counts[word] = counts.get(word, 0) + 1
        rows: list[int] = []
        factors: list[float] = []
        total = np.zeros(self.dimension, dtype=np.float32)
        for word, count in counts.items():
            row = self.vocabulary.id_of(word)
            if row >= 0:
                rows.append(row)
                factors.append(self.term_frequency.of(count))
            elif self.composition is not None and (vector := self.composition.vector(word)) is not None:
                total += np.float32(self.composed_weight * self.term_frequency.of(count)) * vector
        if rows:
            total += (np.array(factors, dtype=np.float32) * self.weights[rows]) @ self.table[rows]
        return total

    def _sums(self, found: Spans) -> Vectors:
        """Sum the word vectors of every text of a block: (n, d), not scaled."""
        hashes = span_hashes(found)
        ids = self.vocabulary.ids_of_hashes(hashes)
        known = ids >= 0
        total = self._product(np.maximum(ids, 0), known, found.offsets, self.table, self.weights)
        if self.composition is not None and not known.all():
            rows, vectors = self._compose(found, hashes, ids)
            composed = rows >= 0
            weights = np.full(len(vectors), self.composed_weight, dtype=np.float32)
            total += self._product(np.maximum(rows, 0), composed, found.offsets, vectors, weights)
        return total

    def _product(
        self,
        ids: NDArray[np.int32],
        counted: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        table: Vectors,
        weights: NDArray[np.float32],
    ) -> Vectors:
        """Multiply the (n, V) counts of the tokens that are `counted`, as weights, with the table."""
        from scipy.sparse import csr_array

        shape = (len(offsets) - 1, max(len(table), 1))
        if not len(table):
            return np.zeros((shape[0], self.dimension), dtype=np.float32)
        values = counted.astype(np.float32)
        matrix = csr_array((values, ids, offsets.astype(np.int32)), shape=shape)
        if self.term_frequency is TermFrequency.LOG:
            matrix.sum_duplicates()
            counts = matrix.data  # 0 where only uncounted tokens, which all carry id 0, fell together
            matrix.data = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0).astype(np.float32)
        matrix.data *= weights[matrix.indices]
        return as_float32(matrix @ table)

    def _compose(
        self, found: Spans, hashes: NDArray[np.uint64], ids: NDArray[np.int32]
    ) -> tuple[NDArray[np.int32], Vectors]:
        """Return for each token the row of its composed vector (-1: none), and those vectors."""
        assert self.composition is not None  # noqa: S101 - narrows the type; callers have looked
        missing = np.flatnonzero(ids < 0)
        _, first, inverse = np.unique(hashes[missing], return_index=True, return_inverse=True)
        vectors = [self.composition.vector(found.word(int(missing[at]))) for at in first]
        rows_of_words = np.full(len(vectors), -1, dtype=np.int32)
        have = [number for number, vector in enumerate(vectors) if vector is not None]
        rows_of_words[have] = np.arange(len(have), dtype=np.int32)
        rows = np.full(len(ids), -1, dtype=np.int32)
        rows[missing] = rows_of_words[inverse]
        table = np.array([vector for vector in vectors if vector is not None], dtype=np.float32)
        return rows, table.reshape(len(have), self.dimension)

    def save(self, folder: Path) -> None:
        """Write the table, its words and weights, and `encoder.json`, into an existing empty folder."""
        self.vocabulary.save(folder)
        np.save(folder / "table.npy", self.table, allow_pickle=False)
        np.save(folder / "weights.npy", self.weights, allow_pickle=False)
        if self.composition is not None:
            (folder / "composition").mkdir()
            self.composition.save(folder / "composition")
        files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
        content = {
            "kind": KIND,
            "format_version": _FORMAT_VERSION,
            "fingerprint": self.fingerprint,
            "name": self.name,
            "term_frequency": self.term_frequency,
            "composed": self.composition is not None,
            "composed_weight": self.composed_weight,
            "tokenizer_version": TOKENIZER_VERSION,
            "files": seal.seal(folder, files),
        }
        (folder / "encoder.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def averaged(
    words_: Sequence[str],
    table: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    term_frequency: TermFrequency | str = TermFrequency.RAW,
    composition: Composition | None = None,
    composed_weight: float = 1.0,
    name: str = "",
) -> AveragedEncoder:
    """Make an encoder of V distinct words, their (V, d) table and (V,) weights (1 each if not given).

    The words must be written as `tokenizer.words` writes them, or no text will ever match them.

    Raises
    ------
    ValueError
        If the sizes do not fit together, a word occurs twice, or a number is not finite.
    """
    vocabulary = words_ if isinstance(words_, Vocabulary) else Vocabulary.of(words_)
    vectors = as_float32(table)
    given = np.ones(len(vocabulary)) if weights is None else weights
    factors: NDArray[np.float32] = np.ascontiguousarray(given, dtype=np.float32)
    if len(vectors) != len(vocabulary) or factors.shape != (len(vocabulary),):
        message = f"{len(vocabulary)} words need as many rows and weights, found {vectors.shape}, {factors.shape}"
        raise ValueError(message)
    if not (np.isfinite(vectors).all() and np.isfinite(factors).all()):
        message = "word vectors and weights must be finite numbers"
        raise ValueError(message)
    how = TermFrequency(term_frequency)
    options = {
        "kind": KIND,
        "tokenizer": TOKENIZER_VERSION,
        "term_frequency": how,
        "composition": None if composition is None else composition.fingerprint,
        "composed_weight": composed_weight,
        "words": vocabulary.digest(),
        "shape": vectors.shape,
    }
    digest = hashlib.sha256(json.dumps(options, sort_keys=True).encode())
    digest.update(vectors.data)
    digest.update(factors.data)
    return AveragedEncoder(vocabulary, vectors, factors, how, composition, composed_weight, digest.hexdigest(), name)


def load(folder: Path) -> AveragedEncoder:
    """Open what `AveragedEncoder.save` wrote; table and words are memory-mapped.

    Raises
    ------
    DamagedIndexError
        If a file is missing, damaged or not the one that was written.
    FormatVersionError
        If another version of the tokenizer or of this format wrote it.
    """
    path = folder / "encoder.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        versions = (content["format_version"], content["tokenizer_version"])
        if versions != _VERSIONS:
            found, expected = (f"{one} (tokenizer version {two})" for one, two in (versions, _VERSIONS))
            raise other_format(str(path), found, expected)
        seal.check(folder, content["files"])
        return AveragedEncoder(
            vocabulary=Vocabulary.load(folder),
            table=mapped(folder / "table.npy"),
            weights=mapped(folder / "weights.npy"),
            term_frequency=TermFrequency(content["term_frequency"]),
            composition=load_composition(folder / "composition") if content["composed"] else None,
            composed_weight=float(content["composed_weight"]),
            fingerprint=str(content["fingerprint"]),
            name=str(content["name"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, DamagedIndexError | FormatVersionError):
            raise
        message = f"{path} is missing or damaged ({error}); write the index again"
        raise DamagedIndexError(message) from error


def verify(folder: Path) -> None:
    """Read every byte of a saved encoder and compare it with what was written.

    Raises
    ------
    DamagedIndexError
        If anything differs.
    """
    load(folder)
    content = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
    seal.check(folder, content["files"], complete=True)
