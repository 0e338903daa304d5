"""Staging: the collection is read once, cut into passages, and kept in the document store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.collection import Collection
from corpora.document import Document, Passage
from corpora.fingerprint import CollectionFingerprint
from corpora.passages import PieceOffsets, Split, Window, split_passages
from corpora.progress import Progress
from corpora.read_log import ReadLog
from indexer.prior import KnownCuts
from indexer.stores.documents import DocumentWriter

_BATCH = 1000
#: Bytes of a text beyond which it is tokenised by itself, so that a batch of books does not fill the memory.
_LONGEST = 1 << 15


@dataclass(frozen=True, slots=True)
class Staged:
    """What staging found: counts, the collection's fingerprint, and how many texts are longer than a window."""

    documents: int
    fingerprint: str
    over_budget: int
    cut: int


def stage(
    collection: Collection,
    path: Path,
    window: Window,
    piece_offsets: PieceOffsets,
    *,
    limit: int | None = None,
    known: KnownCuts | None = None,
    log: ReadLog,
    progress: Progress,
) -> Staged:
    """Read a collection into a new document store at `path`; documents that are known are cut as before.

    Raises
    ------
    CorpusError
        If the collection cannot be read, or an id occurs twice.
    """
    fingerprint = CollectionFingerprint()
    writer = DocumentWriter(path)
    count = over_budget = cut = 0
    progress.start("reading", None, "documents")
    try:
        documents = islice(collection.documents(log), limit)
        while batch := list(islice(documents, _BATCH)):
            cuts = known(batch) if known else {}
            offsets = _offsets_at_once([d for d in batch if d.doc_id not in cuts], window, piece_offsets)
            splits = [
                _split_before(document, cuts[document.doc_id], window)
                if document.doc_id in cuts
                else split_passages(document, window, offsets)
                for document in batch
            ]
            for document in batch:
                fingerprint.add_document(document)
            writer.add([(document, split.passages) for document, split in zip(batch, splits, strict=True)])
            count += len(batch)
            over_budget += sum(split.over_budget for split in splits)
            cut += sum(split.cut for split in splits)
            progress.advance(len(batch))
    except BaseException:
        writer.abandon()
        raise
    finally:
        progress.finish()
    writer.close()
    fingerprint.add_judgements(collection.queries, collection.qrels)
    return Staged(count, fingerprint.hexdigest(), over_budget, cut)


def _split_before(document: Document, passages: list[Passage], window: Window) -> Split:
    """Return the split that `split_passages` gave of the same document before."""
    cut = window.whole and passages[-1].end < len(document.searchable_text)
    return Split(passages, cut or len(passages) > 1, cut)


def _offsets_at_once(batch: Sequence[Document], window: Window, piece_offsets: PieceOffsets) -> PieceOffsets:
    """Return a `piece_offsets` that has looked at the texts of a batch together, which a tokenizer does in parallel."""
    texts = [document.searchable_text for document in batch]
    # The texts that `split_passages` will ask for: a text of fewer bytes than the budget has fewer pieces.
    long = [text for text in texts if window.budget <= len(text.encode("utf-8", "surrogatepass")) <= _LONGEST]
    found = dict(zip(long, piece_offsets(long), strict=True)) if len(long) > 1 else {}

    def offsets(asked: Sequence[str]) -> Sequence[NDArray[np.integer[Any]]]:
        if len(asked) == 1 and asked[0] in found:
            return [found[asked[0]]]
        return piece_offsets(asked)

    return offsets


def background_texts(collection: Collection, fallback: Iterator[Document]) -> list[str]:
    """Return general texts that statistics of a space may be taken from: the collection's own, or the fallback's."""
    own = [document.searchable_text for document in collection.background()]
    return own or [document.searchable_text for document in fallback]
