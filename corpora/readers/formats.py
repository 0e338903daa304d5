"""Which reader reads which file: by the suffix, or by how the file begins."""

from collections.abc import Mapping
from pathlib import Path

from corpora.limits import Limits
from corpora.readers.lines import read_head
from corpora.readers.parquet import read_parquet
from corpora.readers.plaintext import read_html, read_markup, read_pdf, read_text
from corpora.readers.reader import Reader
from corpora.readers.records import read_json, read_jsonl
from corpora.readers.tables import read_csv, read_tsv
from corpora.readers.trec import read_trec

#: Suffix -> reader of a file that is one document.
TEXTS: Mapping[str, Reader] = {
    ".txt": read_text,
    ".text": read_text,
    ".md": read_markup,
    ".markdown": read_markup,
    ".rst": read_markup,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
}

#: Suffix -> reader of a file that holds many.
RECORDS: Mapping[str, Reader] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
    ".trec": read_trec,
    ".sgml": read_trec,
}

#: How a file of another name begins (in lower case) -> reader.
_BEGINNINGS: Mapping[bytes, Reader] = {
    b"%pdf-": read_pdf,
    b"par1": read_parquet,
    b"<!doctype html": read_html,
    b"<html": read_html,
    b"<doc>": read_trec,
    b"[": read_json,
    b"{": read_jsonl,
}


def format_suffix(path: Path) -> str:
    """Return the suffix that tells the format: that before `.gz` in a compressed file's name.

    PDF and Parquet files are compressed inside; with `.gz` they are none of the formats.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] != [".gz"]:
        return suffixes[-1] if suffixes else ""
    suffix = suffixes[-2] if len(suffixes) > 1 else ""
    return "" if suffix in {".pdf", ".parquet"} else suffix


def reader_for(path: Path, limits: Limits) -> Reader | None:
    """Return the reader of a file, or None if neither its name nor its beginning tells."""
    reader = {**TEXTS, **RECORDS}.get(format_suffix(path))
    if reader is not None:
        return reader
    head = read_head(path, limits).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return next((reader for start, reader in _BEGINNINGS.items() if head.startswith(start)), None)
