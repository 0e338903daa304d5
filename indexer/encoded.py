"""Encoded texts kept between runs: what a forward pass has computed is not computed again.

One folder an encoder, named by the encoder's fingerprint, holds numbered blocks of (digest, vector) pairs, with the
tokens that were read of each text and the seconds that took: what was encoded once keeps its cost. A block
appears whole or not at all, so a build that was killed goes on where it stopped, and an update encodes only
texts that are new. A block that cannot be read is left out, and its texts are encoded again.
"""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress
from indexer.arrays import UNREADABLE_ARRAYS, read_arrays
from indexer.encoder import Counted, CountingEncoder, Encoder
from indexer.stores.documents import DocumentStore
from indexer.vectors import Vectors

BLOCK = 8192
#: Blocks kept in memory: after updates the texts of one stretch lie in several.
_OPEN_BLOCKS = 8
#: Texts, evenly spread, that are encoded first to tell how long the others will take.
_TRIAL = 128


class _Block(NamedTuple):
    """What a file holds."""

    digests: NDArray[np.void]
    vectors: Vectors
    tokens: NDArray[np.int32]
    seconds: NDArray[np.float32]


class EncodedTexts:
    """The blocks of one encoder."""

    def __init__(self, folder: Path, dimension: int) -> None:
        """Read which digests the blocks of a folder (made if absent) hold."""
        self._folder = folder
        self._dimension = dimension
        folder.mkdir(parents=True, exist_ok=True)
        self._paths: list[Path] = []
        self._open: dict[int, Vectors] = {}
        self._is_sorted = False
        digests, blocks, places, tokens, seconds = [], [], [], [], []
        for path in sorted(folder.glob("block-*.npz")):
            found = self._read(path)
            if found is None:
                continue
            digests.append(found.digests)
            blocks.append(np.full(len(found.digests), len(self._paths), np.int64))
            places.append(np.arange(len(found.digests), dtype=np.int64))
            tokens.append(found.tokens)
            seconds.append(found.seconds)
            self._paths.append(path)
        empty = np.zeros(0, np.int64)
        self._tokens = np.concatenate(tokens) if tokens else np.zeros(0, np.int32)
        self._seconds = np.concatenate(seconds) if seconds else np.zeros(0, np.float32)
        self._earlier = np.ones(len(self._tokens), np.bool_)
        self._digests: NDArray[np.void] = np.concatenate(digests) if digests else np.zeros(0, "V16")
        self._blocks = np.concatenate(blocks) if blocks else empty
        self._places = np.concatenate(places) if places else empty
        self._is_sorted = False

    def _sort(self) -> None:
        """Order by digest, when next something is looked for: blocks are added many at a time."""
        if self._is_sorted:
            return
        halves = _halves(self._digests)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        self._digests, self._blocks, self._places = self._digests[order], self._blocks[order], self._places[order]
        self._tokens, self._seconds, self._earlier = self._tokens[order], self._seconds[order], self._earlier[order]
        self._high, self._low = np.ascontiguousarray(halves[order].T)
        self._is_sorted = True

    @staticmethod
    def is_readable(path: Path) -> bool:
        """Return whether a block is as it was written: a zip file's checksums cover every byte of the arrays."""
        try:
            held = read_arrays(path)
            return len(held["digests"]) == len(held["vectors"])
        except UNREADABLE_ARRAYS:
            return False

    def _read(self, path: Path) -> _Block | None:
        try:
            held = read_arrays(path)
            digests, vectors = held["digests"].view("V16").reshape(-1), held["vectors"]
            # Blocks of earlier versions say neither.
            tokens = held["tokens"] if "tokens" in held else np.full(len(digests), -1, np.int32)
            seconds = held["seconds"] if "seconds" in held else np.zeros(len(digests), np.float32)
        except UNREADABLE_ARRAYS:
            return None
        whole = vectors.shape == (len(digests), self._dimension) and vectors.dtype == np.float32
        whole = whole and tokens.shape == seconds.shape == (len(digests),)
        return _Block(digests, vectors, tokens, seconds) if whole and np.isfinite(vectors).all() else None

    def find(self, digests: NDArray[np.void]) -> NDArray[np.int64]:
        """Return the place of each digest among those held, -1 where it is not held."""
        self._sort()
        held = len(self._high)
        if not held:
            return np.full(len(digests), -1, np.int64)
        high, low = _halves(digests).T
        places = np.searchsorted(self._high, high)
        while True:
            at = np.minimum(places, held - 1)
            same = self._high[at] == high
            # Two digests may share their first half: then the next place is looked at.
            further = same & (self._low[at] != low) & (places < held)
            if not further.any():
                return np.where(same & (self._low[at] == low) & (places < held), places, -1).astype(np.int64)
            places[further] += 1

    def add(
        self,
        digests: NDArray[np.void],
        vectors: Vectors,
        tokens: NDArray[np.int32] | None = None,
        seconds: float | NDArray[np.float32] = 0.0,
    ) -> None:
        """Keep the vectors of some texts, durably, as one block.

        Parameters
        ----------
        digests, vectors
            (b,) and (b, d).
        tokens
            (b,) tokens read of each text; -1 where nobody counted.
        seconds
            What encoding took: (b,), or all texts together, which they share by their tokens.
        """
        read = np.full(len(digests), -1, np.int32) if tokens is None else tokens.astype(np.int32)
        took = _shared(seconds, read) if isinstance(seconds, float) else seconds
        number = 1 + max((int(path.stem.split("-")[1]) for path in self._folder.glob("block-*.npz")), default=0)
        path = self._folder / f"block-{number:06d}.npz"
        aside = path.with_suffix(".part")
        with aside.open("wb") as handle:
            raw = np.frombuffer(digests.tobytes(), np.uint8).reshape(-1, 16)
            np.savez(handle, digests=raw, vectors=vectors, tokens=read, seconds=took)
            handle.flush()
            os.fsync(handle.fileno())
        aside.replace(path)
        self._digests = np.concatenate([self._digests, digests])
        self._blocks = np.concatenate([self._blocks, np.full(len(digests), len(self._paths), np.int64)])
        self._places = np.concatenate([self._places, np.arange(len(digests), dtype=np.int64)])
        self._tokens = np.concatenate([self._tokens, read])
        self._seconds = np.concatenate([self._seconds, took])
        self._earlier = np.concatenate([self._earlier, np.zeros(len(digests), np.bool_)])
        self._paths.append(path)
        self._keep_open(len(self._paths) - 1, vectors)
        self._is_sorted = False

    def tokens(self, digests: NDArray[np.void]) -> NDArray[np.int64]:
        """Return how many tokens were read of each of some texts, all of them held; -1 where nobody counted."""
        places = self.find(digests)  # which may sort what is looked at next
        return self._tokens[places].astype(np.int64)

    def earlier_seconds(self, digests: NDArray[np.void]) -> float:
        """Return what encoding those of some texts took that were held when this folder was opened."""
        places = self.find(digests)
        places = places[places >= 0]
        return float(self._seconds[places[self._earlier[places]]].sum(dtype=np.float64))

    @property
    def folder(self) -> Path:
        """Where the blocks lie."""
        return self._folder

    @property
    def size(self) -> int:
        """How many vectors the blocks hold."""
        return len(self._digests)

    def keep_only(self, digests: NDArray[np.void]) -> None:
        """Write the vectors of the given texts, all of them held, into new blocks, and remove the old ones."""
        old = list(self._paths)
        for start in range(0, len(digests), BLOCK):
            part = digests[start : start + BLOCK]
            places = self.find(part)
            self.add(part, self.gather(part), self._tokens[places], self._seconds[places])
        for path in old:
            path.unlink()
        fresh = EncodedTexts(self._folder, self._dimension)
        self.__dict__.update(fresh.__dict__)

    def gather(self, digests: NDArray[np.void]) -> Vectors:
        """Return the (n, d) vectors of texts that are all held.

        Raises
        ------
        KeyError
            If a text is not held.
        """
        places = self.find(digests)
        if (places < 0).any():
            message = f"{int((places < 0).sum())} texts have not been encoded"
            raise KeyError(message)
        vectors = np.empty((len(digests), self._dimension), np.float32)
        blocks = self._blocks[places]
        for block in np.unique(blocks):
            here = blocks == block
            vectors[here] = self._block(int(block))[self._places[places[here]]]
        return vectors

    def _block(self, number: int) -> Vectors:
        if number not in self._open:
            found = self._read(self._paths[number])
            if found is None:
                message = f"block {self._paths[number].name} of the encoded texts was damaged while in use"
                raise KeyError(message)
            self._keep_open(number, found.vectors)
        return self._open[number]

    def _keep_open(self, number: int, vectors: Vectors) -> None:
        self._open[number] = vectors
        while len(self._open) > _OPEN_BLOCKS:
            self._open.pop(next(iter(self._open)))


def _halves(digests: NDArray[np.void]) -> NDArray[np.uint64]:
    """Return (n, 2) halves of the digests as numbers."""
    return np.frombuffer(digests.tobytes(), dtype="<u8").reshape(-1, 2)


def encode_missing(
    held: EncodedTexts,
    encoder: Encoder,
    documents: DocumentStore,
    rows: NDArray[np.int64],
    progress: Progress,
    task: str,
) -> int:
    """Encode those of the given ascending rows that are not held yet, block by block; return how many there were."""
    digests = documents.digests()
    missing = rows[held.find(digests[rows]) < 0]
    count = len(missing)
    if count > 4 * _TRIAL:
        trial = missing[:: count // _TRIAL][:_TRIAL]
        seconds = _encode(held, encoder, documents, digests, trial) * count / len(trial)
        progress.note(f"{task}: {count:,} texts will take about {_duration(seconds)}")
        missing = np.setdiff1d(missing, trial, assume_unique=True)
    progress.start(task, len(missing), "texts")
    for start in range(0, len(missing), BLOCK):
        part = missing[start : start + BLOCK]
        _encode(held, encoder, documents, digests, part)
        progress.advance(len(part))
    progress.finish()
    return count


def _encode(
    held: EncodedTexts,
    encoder: Encoder,
    documents: DocumentStore,
    digests: NDArray[np.void],
    rows: NDArray[np.int64],
) -> float:
    """Encode the texts of some rows, keep them, and return the seconds that encoding took."""
    return keep_encoded(held, encoder, digests[rows], list(documents.iter_texts(rows)))


def keep_encoded(held: EncodedTexts, encoder: Encoder, digests: NDArray[np.void], texts: Sequence[str]) -> float:
    """Encode some texts, keep them with their cost, and return the seconds that encoding took."""
    started = time.perf_counter()
    if isinstance(encoder, CountingEncoder):
        found = encoder.encode_counted(texts)
    else:
        found = Counted(encoder.encode(texts), np.full(len(texts), -1, np.int32))
    seconds = time.perf_counter() - started
    held.add(digests, found.vectors, found.tokens, seconds)
    return seconds


def _shared(seconds: float, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return seconds shared out by tokens; evenly where nobody counted them."""
    weights = np.maximum(tokens, 1).astype(np.float64)
    return np.asarray(seconds * weights / max(1.0, float(weights.sum())), np.float32)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def iter_blocks(held: EncodedTexts, digests: NDArray[np.void]) -> Iterator[Vectors]:
    """Yield the vectors of all digests in order, (b, d) at a time."""
    for start in range(0, len(digests), BLOCK):
        yield held.gather(digests[start : start + BLOCK])
