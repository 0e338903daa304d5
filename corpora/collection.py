"""A collection: documents, and perhaps queries, judgements and background texts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from corpora.document import Document
from corpora.errors import CorpusError, UnreadableFileError
from corpora.judgements import Qrels, Query
from corpora.read_log import ReadLog


def _no_documents(_log: ReadLog) -> Iterator[Document]:
    return iter(())


@dataclass(frozen=True, slots=True)
class Collection:
    """What is searched and judged.

    Attributes
    ----------
    name
        A short name: that of the folder or file, or of the built-in collection.
    source
        Where it was opened: a path as the user wrote it, or `built-in`.
    read
        Streams the documents, anew at each call; `documents()` is the way to use it.
    queries
        Query id -> query.
    qrels
        Split -> query id -> document id -> grade.
    read_background
        Streams texts that are there for statistics only and never answer a query.
    exclude_same_id
        Whether queries are themselves documents, so that a hit with the query's id is left out.
    notes
        What was noticed while queries and judgements were read.
    """

    name: str
    source: str
    read: Callable[[ReadLog], Iterator[Document]]
    queries: Mapping[str, Query] = field(default_factory=dict)
    qrels: Mapping[str, Qrels] = field(default_factory=dict)
    read_background: Callable[[ReadLog], Iterator[Document]] = _no_documents
    exclude_same_id: bool = False
    notes: tuple[str, ...] = ()

    def documents(self, log: ReadLog | None = None) -> Iterator[Document]:
        """Stream the documents; each call begins anew and gives the same ones in the same order.

        Parameters
        ----------
        log
            Receives counts, skips and announcements; its `strict` stops at the first bad record.

        Raises
        ------
        CorpusError
            If a file cannot be read at all, or two records carry one id.
        """
        log = ReadLog() if log is None else log
        try:
            for document in self.read(log):
                log.documents += 1
                yield document
        except OSError as error:
            if isinstance(error, CorpusError):
                raise
            place = error.filename or self.source
            message = f"{place} cannot be read ({error.strerror or type(error).__name__}); see that it is there"
            raise UnreadableFileError(message) from error

    def background(self, log: ReadLog | None = None) -> Iterator[Document]:
        """Stream the background texts: for training and statistics, never to be found."""
        return self.read_background(ReadLog() if log is None else log)
