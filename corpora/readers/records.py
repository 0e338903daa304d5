"""Files of records: `.jsonl`, `.json`, `.csv`, `.tsv`, `.parquet`, each also as `.gz` (but Parquet)."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.encodings import clean
from corpora.errors import UnreadableFileError
from corpora.options import ReadOptions
from corpora.read_log import ReadLog
from corpora.readers.fields import SAMPLE_RECORDS, choose_fields, to_document
from corpora.readers.lines import read_lines, read_whole

#: A record and its number: that of its line, or its place in the file, from 1.
Record = tuple[int, Mapping[str, Any]]

# NaN and Infinity are no JSON; they become null.
_parse = json.JSONDecoder(parse_constant=lambda _: None).decode


def read_jsonl(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream a file with one JSON object a line; a line that is none is skipped."""
    return documents(path, jsonl_records(path, options, log), options, log)


def jsonl_records(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Record]:
    """Stream (line number, object) of a `.jsonl` file; empty lines are passed over."""
    for number, line in read_lines(path, options, log):
        try:
            record = _parse(line)
        except (ValueError, RecursionError) as error:
            if line.strip():
                log.skip("not JSON", f"{path}:{number}", _reason(error))
            continue
        if not isinstance(record, dict):
            log.skip("not a JSON object", f"{path}:{number}", line.strip()[:40])
            continue
        # Half a surrogate pair can only come from an escape.
        yield number, _cleaned(record) if "\\u" in line else record


def read_json(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Read a `.json` file: a list of objects, an object that holds one, or one object a line."""
    text = read_whole(path, options, log, options.limits.json_bytes)
    try:
        content = _parse(text)
    except (ValueError, RecursionError) as error:
        first = text.lstrip().split("\n", 1)[0]
        try:
            is_lines = isinstance(_parse(first), dict)
        except (ValueError, RecursionError):
            is_lines = False
        if is_lines:
            return read_jsonl(path, options, log)
        message = f"{path}: not JSON ({_reason(error)}); expected a list of objects"
        raise UnreadableFileError(message) from None
    return documents(path, _listed_records(path, content, log), options, log)


def _listed_records(path: Path, content: object, log: ReadLog) -> Iterator[Record]:
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
        objects = [value for value in lists if value and all(isinstance(item, dict) for item in value)]
        if len(objects) == 1:
            content = objects[0]
        elif not objects and not lists and content and all(isinstance(v, dict) for v in content.values()):
            content = [{"_id": name, **value} for name, value in content.items()]
        else:
            content = [content]
    if not isinstance(content, list):
        message = f"{path}: holds one {type(content).__name__}; expected a list of objects"
        raise UnreadableFileError(message)
    for number, record in enumerate(content, 1):
        if isinstance(record, dict):
            yield number, _cleaned(record)
        else:
            log.skip("not a JSON object", f"{path}:{number}", repr(record)[:40])


def documents(path: Path, records: Iterator[Record], options: ReadOptions, log: ReadLog) -> Iterator[Document]:
    """Stream records as documents, the fields chosen by looking at the first ones."""
    first = list(islice(records, SAMPLE_RECORDS))
    if not first:
        return
    fields = choose_fields((record for _, record in first), options, str(path), log)
    for number, record in chain(first, records):
        document = to_document(record, fields, f"{path}:{number}", log)
        if document is not None:
            yield document


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): _cleaned(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        source = error.doc.rstrip()
        if "\n" in source:
            return f"{error.msg} at line {error.lineno} column {error.colno}"
        return f"{error.msg} at column {min(error.pos, len(source)) + 1}"
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:80]
