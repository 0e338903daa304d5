"""Parquet files, streamed in batches of rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.encodings import clean
from corpora.errors import UnreadableFileError
from corpora.limits import MEBIBYTE, Limits
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.records import Record, documents

#: Bytes of text that a batch of rows should hold.
_BATCH_BYTES = 8 * MEBIBYTE


def read_parquet(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream the rows of a Parquet file; only the columns that are kept are read.

    Raises
    ------
    UnreadableFileError
        If the file is damaged, or declares columns that grow beyond the limits.
    """
    return documents(path, _records(path, options, log), options, log)


def _records(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Record]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, buffer_size=MEBIBYTE, pre_buffer=False) as file:
            rows = _rows_a_batch(path, file.metadata, options.limits)
            number = 0
            for batch in file.iter_batches(batch_size=rows, columns=_columns(file, options)):
                names = [clean(name) for name in batch.schema.names]
                columns = [_values(column) for column in batch.columns]
                for values in zip(*columns, strict=True):
                    number += 1
                    record = dict(zip(names, values, strict=True))
                    if sum(len(value) for value in values if isinstance(value, str)) > options.limits.record_bytes:
                        log.skip(f"row longer than {options.limits.record_bytes:,} characters", f"{path}:{number}")
                        continue
                    yield number, record
    except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as error:
        if isinstance(error, UnreadableFileError):
            raise
        reason = " ".join(str(error).split())[:160] or type(error).__name__
        message = f"{path}: not a readable Parquet file ({reason}); write it again"
        raise UnreadableFileError(message) from None


def _columns(file: Any, options: ReadOptions) -> list[str] | None:
    """Return the columns to read, where the options name all that are wanted; else None for all."""
    if options.metadata_fields is None or options.id_field is None or not options.text_fields:
        return None
    named = {options.id_field, options.title_field, *options.text_fields, *options.metadata_fields}
    return [name for name in file.schema_arrow.names if name in named or name.lower() == "title"] or None


def _rows_a_batch(path: Path, metadata: Any, limits: Limits) -> int:
    """Return how many rows to decode at once, from what the file says about itself.

    Only row groups are asked: pyarrow aborts the whole process on some damaged descriptions of columns.

    Raises
    ------
    UnreadableFileError
        If the file declares that it grows beyond the limits.
    """
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    grown, packed = sum(group.total_byte_size for group in groups), max(1, path.stat().st_size)
    if grown > limits.inflated_bytes and grown / packed > limits.inflated_ratio:
        message = (
            f"{path}: grows from {packed:,} to {grown:,} bytes, more than {limits.inflated_ratio:.0f} to 1; "
            "write it again with less compression if you trust it"
        )
        raise UnreadableFileError(message)
    largest = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=1)
    return int(min(4096, max(1, _BATCH_BYTES // max(1, largest))))


def _values(column: Any) -> list[Any]:
    """Return a column's values as Python objects; text that is not UTF-8 is repaired."""
    import pyarrow as pa

    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        raw = column.cast(pa.binary()).to_pylist()
        return [None if value is None else value.decode(errors="replace") for value in raw]
