"""The seam between files and documents: what every reader is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from corpora.document import Document
from corpora.options import ReadOptions
from corpora.read_log import ReadLog


class Reader(Protocol):
    """A function from one file to its documents, streamed.

    A record that cannot be read is skipped in the log; a file that cannot be read raises
    `UnreadableFileError`. Nothing but `CorpusError` and `OSError` escapes.
    """

    def __call__(self, path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
        """Stream the documents of one file in their order there."""
