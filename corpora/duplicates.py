"""One id, one document: found in a stream with a few bytes of memory a record."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document
from corpora.errors import DuplicateIdError
from corpora.options import Duplicates
from corpora.read_log import ReadLog

#: Documents looked at together, and the characters that end such a batch early.
_BATCH_DOCUMENTS = 256
_BATCH_CHARACTERS = 1 << 20


class SeenHashes:
    """Which 64-bit hashes have been seen before, in 8 to 24 bytes each.

    Sorted runs, each at least twice as long as the next: looking up is a binary search in each of a few.
    """

    def __init__(self) -> None:
        """Start with none seen."""
        self._runs: list[NDArray[np.int64]] = []

    def add(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Take in (n,) hashes; return for each whether it was there before, or earlier among these."""
        seen = np.ones(len(hashes), dtype=np.bool_)
        seen[np.unique(hashes, return_index=True)[1]] = False
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            seen |= run[place] == hashes
        if not seen.all():
            self._runs.append(np.sort(hashes[~seen]))
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            self._runs.append(np.sort(np.concatenate([self._runs.pop(), self._runs.pop()])))
        return seen


def unique(read: Callable[[ReadLog], Iterator[Document]], duplicates: Duplicates, log: ReadLog) -> Iterator[Document]:
    """Stream documents with each id once.

    Ids are remembered as 64-bit hashes. Before a collection is refused, the documents are read again to see
    that two ids and not only two hashes are equal, and to name both places. Where one of several is chosen,
    the hash decides: among ten million ids, the odds that two share one are 3 in a million.

    Parameters
    ----------
    read
        Reads the documents, anew at each call.
    duplicates
        Refuse a second document with an id, keep the first, or keep the last (which reads everything twice).
    log
        Is told how many were left out.

    Raises
    ------
    DuplicateIdError
        If there is one and it is to be refused.
    """
    if duplicates is Duplicates.LAST:
        yield from _last(read, log)
        return
    seen = SeenHashes()
    for batch in _batches(read(log)):
        again = seen.add(np.fromiter((hash(document.doc_id) for document in batch), np.int64, len(batch)))
        if not again.any():
            yield from batch
            continue
        for document, is_again in zip(batch, again.tolist(), strict=True):
            if is_again and duplicates is Duplicates.REFUSE:
                _refuse_second(read, document)
            if is_again and duplicates is Duplicates.FIRST:
                _count(document, log)
            else:
                yield document


def _last(read: Callable[[ReadLog], Iterator[Document]], log: ReadLog) -> Iterator[Document]:
    """Stream each id's last document, in the order in which those stand."""
    hashes = np.fromiter((hash(document.doc_id) for document in read(ReadLog())), np.int64)
    # np.unique finds first places; in reverse they are the last ones.
    last = np.zeros(len(hashes), dtype=np.bool_)
    last[len(hashes) - 1 - np.unique(hashes[::-1], return_index=True)[1]] = True
    for document, is_last in zip(read(log), last, strict=False):
        if is_last:
            yield document
        else:
            _count(document, log)


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.text)
        if len(batch) == _BATCH_DOCUMENTS or characters > _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _refuse_second(read: Callable[[ReadLog], Iterator[Document]], document: Document) -> None:
    """Raise an error that names both places, unless no earlier document really has this id."""
    first = next(earlier for earlier in read(ReadLog()) if earlier.doc_id == document.doc_id)
    if first.source == document.source:
        return
    message = (
        f"{first.source} and {document.source} hold the same id {document.doc_id[:80]!r}; give each document "
        "its own, or choose one with --duplicates first|last"
    )
    raise DuplicateIdError(message)


def _count(document: Document, log: ReadLog) -> None:
    log.skip("id used more than once", document.source, document.doc_id[:60])
