"""Texts of different lengths in rectangles: sorted by length, cut into batches of about equal numbers of pieces."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Pieces = Sequence[Sequence[int]]


def batches(lengths: Sequence[int], *, most_pieces: int, most_texts: int) -> Iterator[list[int]]:
    """Yield the rows in batches, longest texts first.

    Longest first, so that the largest buffers are made once and the last batches are small, which
    leaves no core idle for long at the end.

    Parameters
    ----------
    lengths
        Pieces of each text.
    most_pieces
        Most pieces in a batch, padding counted.
    most_texts
        Most texts in a batch.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist()
    start = 0
    while start < len(order):
        longest = max(1, lengths[order[start]])
        size = max(1, min(most_texts, most_pieces // longest))
        yield order[start : start + size]
        start += size


def padded(ids: Pieces, pad_id: int, multiple: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (n, t) int64 ids padded to the longest, and the (n, t) mask that is 1 where there is a piece.

    t is rounded up to `multiple`.
    """
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    width = -(-int(lengths.max()) // multiple) * multiple
    mask = np.arange(width) < lengths[:, None]
    array = np.full((len(ids), width), pad_id, dtype=np.int64)
    array[mask] = np.fromiter((piece for each in ids for piece in each), dtype=np.int64, count=int(lengths.sum()))
    return array, mask.astype(np.int64)
