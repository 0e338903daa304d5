"""Files that are one document each: `.txt`, `.md`, `.rst`, `.html`, `.pdf`."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from corpora.document import Document
from corpora.encodings import bom_encoding, clean
from corpora.errors import UnreadableFileError
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.confinement import CONFINEMENT
from corpora.readers.lines import read_head, read_whole
from corpora.readers.markup import MARKUP

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}[\"']?\s{0,5}([\w.:-]{1,40})", re.IGNORECASE)


def read_text(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Read a text file as one document; it has no title."""
    text = read_whole(path, options, log, options.limits.text_bytes)
    yield Document(path.name, text.replace("\r\n", "\n").strip(), source=str(path))


def read_markup(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Read a Markdown or reStructuredText file as one document; its first heading is the title."""
    source = read_whole(path, options, log, options.limits.text_bytes)
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    title, text = next(MARKUP[suffix] for suffix in reversed(suffixes) if suffix in MARKUP)(source)
    yield Document(path.name, text, title, source=str(path))


def read_html(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Read an HTML page as one document, in the encoding that it names; parsed in a confined process."""
    limits = options.limits
    if not options.encoding:
        head = read_head(path, limits)
        named = None if bom_encoding(head) else _META_CHARSET.search(head)
        options = _in_named_encoding(options, named[1].decode("ascii") if named else "")
    try:
        source = read_whole(path, options, log, limits.html_bytes)
    except UnreadableFileError:
        # The page may be wrong about itself.
        if options.encoding is None:
            raise
        source = read_whole(path, replace(options, encoding=None), log, limits.html_bytes)
    answer = CONFINEMENT.parse(
        {"kind": "html", "html": source},
        seconds=limits.html_seconds,
        memory_bytes=limits.parser_memory_bytes,
        where=str(path),
    )
    yield Document(path.name, clean(answer["text"]), clean(answer["title"]), source=str(path))


def _in_named_encoding(options: ReadOptions, name: str) -> ReadOptions:
    """Return options with the encoding that a page names, as browsers understand the name."""
    name = name.lower()
    if not name or name in {"utf-8", "utf8"} or name.startswith(("utf-16", "utf16")):
        return options
    name = "cp1252" if name in {"iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii"} else name
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return options
    return replace(options, encoding=name)


def read_pdf(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Read a PDF file as one document; parsed in a confined process with a deadline."""
    limits = options.limits
    if (size := path.stat().st_size) > limits.pdf_bytes:
        message = f"{path}: {size:,} bytes, more than the {limits.pdf_bytes:,} read of a PDF; split it"
        raise UnreadableFileError(message)
    answer = CONFINEMENT.parse(
        {"kind": "pdf", "path": str(path.resolve()), "pages": limits.pdf_pages},
        seconds=limits.pdf_seconds,
        memory_bytes=limits.parser_memory_bytes,
        where=str(path),
    )
    for note in answer["notes"]:
        log.announce(f"{path}: {note}")
    yield Document(path.name, clean(answer["text"]), clean(answer["title"]), source=str(path))
