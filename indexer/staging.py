"""Staging: the collection is read once, cut into passages, and kept in the document store."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from corpora.collection import Collection
from corpora.document import Document
from corpora.fingerprint import CollectionFingerprint
from corpora.passages import PieceOffsets, Window, split_passages
from corpora.progress import Progress
from corpora.read_log import ReadLog
from indexer.stores.documents import DocumentWriter

_BATCH = 1000


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
    log: ReadLog,
    progress: Progress,
) -> Staged:
    """Read a collection into a new document store at `path`.

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
            splits = [split_passages(document, window, piece_offsets) for document in batch]
            for document in batch:
                fingerprint.add_document(document)
            writer.add([(document, split.passages) for document, split in zip(batch, splits, strict=True)])
            count += len(batch)
            over_budget += sum(split.over_budget for split in splits)
            cut += sum(split.cut for split in splits)
            progress.advance(len(batch))
    finally:
        writer.close()
        progress.finish()
    fingerprint.add_judgements(collection.queries, collection.qrels)
    return Staged(count, fingerprint.hexdigest(), over_budget, cut)


def background_texts(collection: Collection, fallback: Iterator[Document]) -> list[str]:
    """Return general texts that statistics of a space may be taken from: the collection's own, or the fallback's."""
    own = [document.searchable_text for document in collection.background()]
    return own or [document.searchable_text for document in fallback]
