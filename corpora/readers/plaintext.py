"""Folders of texts: one document a file."""

from collections.abc import Iterator
from pathlib import Path

from corpora.document import Document
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.lines import read_whole


def read_text(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Read a `.txt` file as one document; it has no title."""
    text = read_whole(path, options, log, options.limits.text_bytes)
    yield Document(path.name, text.replace("\r\n", "\n").strip(), source=str(path))
