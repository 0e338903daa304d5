"""Encoded texts kept between runs: what a forward pass has computed is not computed again.

One folder an encoder, named by the encoder's fingerprint, holds numbered blocks of (digest, vector) pairs. A block
appears whole or not at all, so a build that was killed goes on where it stopped, and an update encodes only
texts that are new. A block that cannot be read is left out, and its texts are encoded again.
"""

import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress
from indexer.encoder import Encoder
from indexer.stores.documents import DocumentStore
from indexer.vectors import Vectors

BLOCK = 8192
#: Blocks kept in memory: after updates the texts of one stretch lie in several.
_OPEN_BLOCKS = 8
#: Texts, evenly spread, that are encoded first to tell how long the others will take.
_TRIAL = 128


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
        digests, blocks, places = [], [], []
        for path in sorted(folder.glob("block-*.npz")):
            found = self._read(path)
            if found is None:
                continue
            digests.append(found[0])
            blocks.append(np.full(len(found[0]), len(self._paths), np.int64))
            places.append(np.arange(len(found[0]), dtype=np.int64))
            self._paths.append(path)
        empty = np.zeros(0, np.int64)
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
        self._high, self._low = np.ascontiguousarray(halves[order].T)
        self._is_sorted = True

    @staticmethod
    def is_readable(path: Path) -> bool:
        """Return whether a block is as it was written: a zip file's checksums cover every byte of the arrays."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                return len(held["digests"]) == len(held["vectors"])
        except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            return False

    def _read(self, path: Path) -> tuple[NDArray[np.void], Vectors] | None:
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
                digests, vectors = held["digests"].view("V16").reshape(-1), held["vectors"]
        except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
            return None
        whole = vectors.shape == (len(digests), self._dimension) and vectors.dtype == np.float32
        return (digests, vectors) if whole and np.isfinite(vectors).all() else None

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

    def add(self, digests: NDArray[np.void], vectors: Vectors) -> None:
        """Keep the vectors of some texts, durably, as one block."""
        number = 1 + max((int(path.stem.split("-")[1]) for path in self._folder.glob("block-*.npz")), default=0)
        path = self._folder / f"block-{number:06d}.npz"
        aside = path.with_suffix(".part")
        with aside.open("wb") as handle:
            raw = np.frombuffer(digests.tobytes(), np.uint8).reshape(-1, 16)
            np.savez(handle, digests=raw, vectors=vectors)
            handle.flush()
            os.fsync(handle.fileno())
        aside.replace(path)
        self._digests = np.concatenate([self._digests, digests])
        self._blocks = np.concatenate([self._blocks, np.full(len(digests), len(self._paths), np.int64)])
        self._places = np.concatenate([self._places, np.arange(len(digests), dtype=np.int64)])
        self._paths.append(path)
        self._keep_open(len(self._paths) - 1, vectors)
        self._is_sorted = False

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
            self.add(part, self.gather(part))
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
            self._keep_open(number, found[1])
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
    texts = list(documents.iter_texts(rows))
    started = time.perf_counter()
    vectors = encoder.encode(texts)
    seconds = time.perf_counter() - started
    held.add(digests[rows], vectors)
    return seconds


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def iter_blocks(held: EncodedTexts, digests: NDArray[np.void]) -> Iterator[Vectors]:
    """Yield the vectors of all digests in order, (b, d) at a time."""
    for start in range(0, len(digests), BLOCK):
        yield held.gather(digests[start : start + BLOCK])
