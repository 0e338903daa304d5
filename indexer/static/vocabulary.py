"""A list of words with fast look-up that needs no building when it is opened.

Words are found through a hash table of two arrays (open addressing, linear probing) that is written once
and memory-mapped afterwards: opening 400,000 words costs a few page faults, and millions of words are looked
up by NumPy gathers. The 64-bit hash is computed from a word's bytes, eight at a time.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexer.arrays import UNREADABLE_ARRAYS, read_array
from indexer.errors import DamagedIndexError
from indexer.static.tokenizer import Spans

_SEED = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # the multipliers of splitmix64's finaliser
_BITS = 0xFFFFFFFFFFFFFFFF
#: keeps the first k bytes of a little-endian group of eight
_KEEP = np.array([(1 << (8 * k)) - 1 for k in range(9)], dtype=np.uint64)


def word_hash(word: str) -> int:
    """Hash one word to 64 bits, never 0 (which marks an empty slot): the plain twin of `span_hashes`."""
    data = word.encode("utf-8", "surrogatepass")
    value = (_SEED * (len(data) + 1)) & _BITS
    for start in range(0, max(len(data), 1), 8):
        value ^= int.from_bytes(data[start : start + 8], "little")
        value = (value * _FIRST) & _BITS
        value ^= value >> 32
    value = (value * _SECOND) & _BITS
    return (value ^ (value >> 29)) or 1


def span_hashes(spans: Spans) -> NDArray[np.uint64]:
    """Hash every word of a block of texts: uint64, one per word."""
    data, starts, lengths = spans.data, spans.starts, spans.ends - spans.starts
    # an unaligned view: group i is bytes i to i + 7
    groups = np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))
    values = (lengths.astype(np.uint64) + np.uint64(1)) * np.uint64(_SEED)
    values ^= groups[starts] & _KEEP[np.minimum(lengths, 8)]
    values = _stirred(values)
    done = 8
    longer = np.flatnonzero(lengths > done)
    while longer.size:
        rest = np.minimum(lengths[longer] - done, 8)
        values[longer] = _stirred(values[longer] ^ (groups[starts[longer] + done] & _KEEP[rest]))
        done += 8
        longer = longer[lengths[longer] > done]
    values *= np.uint64(_SECOND)
    values ^= values >> np.uint64(29)
    values[values == 0] = 1
    return values


def _stirred(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = values * np.uint64(_FIRST)
    values ^= values >> np.uint64(32)
    return values


@dataclass(frozen=True)
class Vocabulary(Sequence[str]):
    """V distinct words, numbered from 0 in the order they were given.

    Attributes
    ----------
    letters : uint8, all words in UTF-8, one after another.
    offsets : int64, (V + 1,); word i is `letters[offsets[i]:offsets[i + 1]]`.
    hashes : uint64, (S,), S a power of two above 2 V; 0 where a slot is empty.
    slots : int32, (S,), the word's number.
    """

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    slots: NDArray[np.int32]

    @classmethod
    def of(cls, words: Sequence[str]) -> "Vocabulary":
        """Make a vocabulary of distinct words.

        Raises
        ------
        ValueError
            If a word occurs twice; both places are named.
        """
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(word) for word in encoded], out=offsets[1:])
        letters = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        padded = np.concatenate([letters, np.zeros(8, dtype=np.uint8)])
        found = span_hashes(Spans(padded, offsets[:-1], offsets[1:], offsets[:1]))
        hashes, slots = _hash_table(found, words)
        return cls(letters, offsets, hashes, slots)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:  # type: ignore[override]  # no slices: `list(vocabulary)` has them
        """Return word `number`."""
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        number %= len(self)
        begin, end = self.offsets[number], self.offsets[number + 1]
        return self.letters[begin:end].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        data, offsets = self.letters.tobytes(), self.offsets.tolist()
        for begin, end in itertools.pairwise(offsets):
            yield data[begin:end].decode("utf-8", "surrogatepass")

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.id_of(word) >= 0

    @cached_property
    def _shift(self) -> int:
        return 64 - (len(self.hashes).bit_length() - 1)

    def id_of(self, word: str) -> int:
        """Return the number of a word, -1 for one that is not here."""
        wanted = word_hash(word)
        slot = wanted >> self._shift
        while (found := int(self.hashes[slot])) != wanted:
            if not found:
                return -1
            slot = (slot + 1) % len(self.hashes)
        return int(self.slots[slot])

    def ids(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Return int32 numbers of words, -1 for those that are not here."""
        return np.fromiter(map(self.id_of, words), dtype=np.int32, count=len(words))

    def ids_of_spans(self, spans: Spans) -> NDArray[np.int32]:
        """Return int32 numbers of all words of a block of texts, -1 for those that are not here."""
        return self.ids_of_hashes(span_hashes(spans))

    def ids_of_hashes(self, wanted: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return int32 numbers of words given by hash (uint64), -1 for those that are not here."""
        slot = (wanted >> np.uint64(self._shift)).astype(np.int64)
        found = self.hashes[slot]
        ids = self.slots[slot]
        ids[found != wanted] = -1
        open_ = np.flatnonzero((found != wanted) & (found != 0))
        while open_.size:
            slot[open_] = (slot[open_] + 1) & (len(self.hashes) - 1)
            found = self.hashes[slot[open_]]
            hit = found == wanted[open_]
            ids[open_[hit]] = self.slots[slot[open_[hit]]]
            open_ = open_[~hit & (found != 0)]
        return ids

    def digest(self) -> str:
        """Return the sha256 of the words, in order."""
        whole = hashlib.sha256(np.ascontiguousarray(self.offsets).data)
        whole.update(np.ascontiguousarray(self.letters).data)
        return whole.hexdigest()

    def save(self, folder: Path) -> None:
        """Write the arrays into an existing folder, as `words_*.npy`."""
        for name in ("letters", "offsets", "hashes", "slots"):
            np.save(folder / f"words_{name}.npy", getattr(self, name), allow_pickle=False)

    @classmethod
    def load(cls, folder: Path) -> "Vocabulary":
        """Open what `save` wrote, memory-mapped.

        Raises
        ------
        DamagedIndexError
            If a file is missing, truncated or does not fit the others.
        """
        arrays = {name: mapped(folder / f"words_{name}.npy") for name in ("letters", "offsets", "hashes", "slots")}
        vocabulary = cls(**arrays)
        size = len(vocabulary.hashes)
        if size & (size - 1) or len(vocabulary.slots) != size or vocabulary.offsets[-1] != len(vocabulary.letters):
            message = f"{folder}: the word list's files do not fit together; write the index again"
            raise DamagedIndexError(message)
        return vocabulary


def _hash_table(found: NDArray[np.uint64], words: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Place the words' hashes in a table at most half full; the same words give the same table."""
    _, first, counts = np.unique(found, return_index=True, return_counts=True)
    if len(first) < len(words):
        again = words[int(first[np.argmax(counts)])]
        message = f"the words of a vocabulary must be distinct, found {again!r} {counts.max()} times"
        raise ValueError(message)
    bits = max(4, (2 * len(words)).bit_length())
    size = 1 << bits
    hashes = np.zeros(size, dtype=np.uint64)
    slots = np.full(size, -1, dtype=np.int32)
    waiting = np.arange(len(words))
    place = (found >> np.uint64(64 - bits)).astype(np.int64)
    while waiting.size:
        free = waiting[hashes[place[waiting]] == 0]
        taken, winners = np.unique(place[free], return_index=True)
        hashes[taken] = found[free[winners]]
        slots[taken] = free[winners]
        waiting = waiting[slots[place[waiting]] != waiting]
        place[waiting] = (place[waiting] + 1) & (size - 1)
    return hashes, slots


def mapped(path: Path) -> NDArray[Any]:
    """Memory-map one `.npy` file read-only.

    Raises
    ------
    DamagedIndexError
        If it is missing, truncated or no such file.
    """
    try:
        # a plain array over the mapping: np.memmap makes every small read several times slower
        return np.asarray(read_array(path, mapped=True))
    except FileNotFoundError as error:
        message = f"{path} is missing; write the index again"
        raise DamagedIndexError(message) from error
    except UNREADABLE_ARRAYS as error:
        message = f"{path} is no whole .npy file ({error}); write the index again"
        raise DamagedIndexError(message) from error
