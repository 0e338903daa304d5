"""Vectors for words that a table lacks, composed from their parts: character n-grams or word pieces."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from indexer.errors import DamagedIndexError
from indexer.static.vocabulary import Vocabulary, mapped
from indexer.vectors import Vectors


class Composition(Protocol):
    """Makes a vector for a word from its parts."""

    @property
    def kind(self) -> str:
        """Name under which `load_composition` finds the loader."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that decides the vectors."""

    def vector(self, word: str) -> Vectors | None:
        """Return the (d,) float32 vector of one word, None where it has no known part."""

    def save(self, folder: Path) -> None:
        """Write it into an existing empty folder."""


@dataclass(frozen=True)
class NgramComposition:
    """fastText's: the mean of the vectors of a word's character n-grams, found by hash in a bucket table.

    Bojanowski et al., "Enriching word vectors with subword information", TACL 5, 2017. `table` is
    (buckets, d) float32; n-grams have `shortest` to `longest` characters, `<` and `>`
    marking the word's ends.
    """

    table: Vectors
    shortest: int
    longest: int
    kind: str = "ngrams"

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of the buckets and the lengths."""
        digest = hashlib.sha256(f"{self.kind} {self.shortest} {self.longest} {self.table.shape}".encode())
        digest.update(np.ascontiguousarray(self.table).data)
        return digest.hexdigest()

    def vector(self, word: str) -> Vectors | None:
        """Return the (d,) mean of the word's n-gram vectors."""
        buckets = [_fasttext_hash(part) % len(self.table) for part in ngrams(word, self.shortest, self.longest)]
        return self.table[buckets].mean(axis=0) if buckets else None

    def save(self, folder: Path) -> None:
        """Write `ngrams.npy` and `composition.json`."""
        np.save(folder / "ngrams.npy", self.table, allow_pickle=False)
        options = {"kind": self.kind, "shortest": self.shortest, "longest": self.longest}
        (folder / "composition.json").write_text(json.dumps(options), encoding="utf-8")


def ngrams(word: str, shortest: int, longest: int) -> list[str]:
    """Return the n-grams of `<word>` that fastText uses: all but the bare `<` and `>`."""
    marked = f"<{word}>"
    return [
        marked[start : start + length]
        for start in range(len(marked))
        for length in range(shortest, min(longest, len(marked) - start) + 1)
        if not (length == 1 and (start == 0 or start == len(marked) - 1))
    ]


def _fasttext_hash(part: str) -> int:
    """FNV-1a over bytes taken as signed, which is how fastText's C++ compiled on common machines."""
    value = 2166136261
    for byte in part.encode("utf-8", "surrogatepass"):
        value ^= byte if byte < 128 else byte | 0xFFFFFF00
        value = (value * 16777619) & 0xFFFFFFFF
    return value


@dataclass(frozen=True)
class PieceComposition:
    """The mean of the vectors of a word's pieces, cut greedily, longest first, as WordPiece does.

    Schuster and Nakajima, "Japanese and Korean voice search", 2012. `pieces` names the P rows of `table`,
    (P, d) float32; pieces that continue a word begin with `prefix`. Rows of zeros are pieces
    without a vector.
    """

    pieces: Vocabulary
    table: Vectors
    prefix: str = "##"
    kind: str = "pieces"

    @cached_property
    def fingerprint(self) -> str:
        """Hex digest of the pieces and their vectors."""
        digest = hashlib.sha256(f"{self.kind} {self.prefix} {self.pieces.digest()} {self.table.shape}".encode())
        digest.update(np.ascontiguousarray(self.table).data)
        return digest.hexdigest()

    def vector(self, word: str) -> Vectors | None:
        """Return the (d,) mean of the piece vectors, None if the word cannot be cut into known pieces."""
        rows: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                row = self.pieces.id_of((self.prefix if start else "") + word[start:end])
                if row >= 0:
                    break
            else:
                return None
            rows.append(row)
            start = end
        return self.table[rows].mean(axis=0) if rows else None

    def save(self, folder: Path) -> None:
        """Write `pieces.npy`, the piece list and `composition.json`."""
        np.save(folder / "pieces.npy", self.table, allow_pickle=False)
        self.pieces.save(folder)
        options = {"kind": self.kind, "prefix": self.prefix}
        (folder / "composition.json").write_text(json.dumps(options), encoding="utf-8")


def load_composition(folder: Path) -> Composition:
    """Open what a composition's `save` wrote, memory-mapped.

    Raises
    ------
    DamagedIndexError
        If a file is missing or damaged.
    """
    try:
        options = json.loads((folder / "composition.json").read_text(encoding="utf-8"))
        return _LOADERS[options.pop("kind")](folder, options)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, DamagedIndexError):
            raise
        message = f"{folder / 'composition.json'} is missing or damaged ({error}); write the index again"
        raise DamagedIndexError(message) from error


_LOADERS: dict[str, Callable[[Path, dict[str, int | str]], Composition]] = {
    "ngrams": lambda folder, options: NgramComposition(
        mapped(folder / "ngrams.npy"), int(options["shortest"]), int(options["longest"])
    ),
    "pieces": lambda folder, options: PieceComposition(
        Vocabulary.load(folder), mapped(folder / "pieces.npy"), str(options["prefix"])
    ),
}
