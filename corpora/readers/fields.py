"""Records to documents: which field is the id, the title, the text."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpora.document import Document
from corpora.encodings import clean
from corpora.errors import UnreadableFileError
from corpora.options import ReadOptions
from corpora.read_log import ReadLog

Value = str | int | float | bool | None

#: Names that say what a field is, likeliest first; compared without case.
ID_NAMES = (
    "_id", "id", "doc_id", "docid", "docno", "document_id", "documentid", "pid", "passage_id", "uid", "uuid",
)  # fmt: skip
TITLE_NAMES = ("title", "headline", "subject", "heading")
TEXT_NAMES = (
    "text", "body", "content", "contents", "abstract", "document", "passage", "article", "description",
    "summary", "sentence", "review", "message", "comment", "question",
)  # fmt: skip

#: Records looked at before fields are guessed: the first one may lack some.
SAMPLE_RECORDS = 32


@dataclass(frozen=True, slots=True)
class Fields:
    """Which fields of a record are what; `metadata` None keeps all the others."""

    doc_id: str | None
    title: str | None
    text: tuple[str, ...]
    metadata: tuple[str, ...] | None


def choose_fields(records: Iterable[Mapping[str, Any]], options: ReadOptions, where: str, log: ReadLog) -> Fields:
    """Return what each field is: as the options say, else guessed by name and announced.

    Parameters
    ----------
    records
        The first records of the file.
    options
        Names of fields that the user gave.
    where
        The file, for messages.
    log
        Is told the guess.

    Raises
    ------
    UnreadableFileError
        If a field that the user named is in none of the records, or no field can be the text.
    """
    found: dict[str, list[Any]] = {}
    for record in records:
        for name, value in record.items():
            found.setdefault(name, []).append(value)
    _check_named(found, options, where)
    by_lower = {name.lower(): name for name in reversed(found)}
    doc_id = options.id_field or _named_like(by_lower, ID_NAMES)
    title = options.title_field or _named_like(by_lower, TITLE_NAMES)
    text = options.text_fields
    if not text:
        likely = _named_like(by_lower, TEXT_NAMES) or _longest_text(found, {doc_id, title})
        if likely is None and title is None:
            message = (
                f"{where}: no field of {_listed(found)} holds text (looked for {', '.join(TEXT_NAMES[:5])}, "
                "...); name it with --text-field"
            )
            raise UnreadableFileError(message)
        text = (likely,) if likely else ()
    fields = Fields(doc_id, None if title in text else title, text, options.metadata_fields)
    if _is_guess(fields, options):
        log.announce(
            f"{where}: id = {doc_id or 'file and line'}, title = {fields.title or 'none'}, "
            f"text = {' + '.join(text) or 'none'} (guessed; --id-field, --title-field, --text-field decide)"
        )
    return fields


def _check_named(found: Mapping[str, object], options: ReadOptions, where: str) -> None:
    wanted = (options.id_field, options.title_field, *options.text_fields, *(options.metadata_fields or ()))
    missing = [name for name in wanted if name is not None and name not in found]
    if missing and found:
        message = f"{where}: no field {missing[0]!r} among {_listed(found)}; name one of these"
        raise UnreadableFileError(message)


def _listed(found: Mapping[str, object]) -> str:
    names = ", ".join(repr(name[:40]) for name in list(found)[:12])
    return names + (", ..." if len(found) > 12 else "") if found else "none"


def _named_like(by_lower: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((by_lower[name] for name in names if name in by_lower), None)


def _longest_text(found: Mapping[str, list[Any]], taken: set[str | None]) -> str | None:
    """Return the field whose strings are longest on average, if they are longer than a word or two."""
    lengths = {
        name: sum(len(value) for value in values if isinstance(value, str)) / len(values)
        for name, values in found.items()
        if name not in taken
    }
    longest = max(lengths, key=lambda name: lengths[name], default=None)
    return longest if longest is not None and lengths[longest] >= 20 else None


def _is_guess(fields: Fields, options: ReadOptions) -> bool:
    usual = Fields("_id", "title", ("text",), options.metadata_fields)
    named = options.id_field and options.text_fields
    return not named and fields not in {usual, Fields("_id", None, ("text",), options.metadata_fields)}


def to_document(record: Mapping[str, Any], fields: Fields, where: str, log: ReadLog) -> Document | None:
    """Return a record as a document, or None if it was skipped (and logged).

    `where` is `path:line`; without an id field the id is `name:line`, the name that of the file.
    """
    if fields.doc_id is None:
        doc_id: str | None = Path(where).name
    else:
        doc_id = as_id(record.get(fields.doc_id))
        if doc_id is None:
            log.skip("record without an id", where, f"{fields.doc_id} = {record.get(fields.doc_id)!r:.60}")
            return None
    title = as_text(record.get(fields.title)) if fields.title is not None else ""
    if not title and not any(name in record for name in fields.text):
        log.skip("record without text", where, f"no field {' or '.join(fields.text) or 'with a title'}")
        return None
    if len(fields.text) == 1:
        text = as_text(record.get(fields.text[0]))
    else:
        text = "\n\n".join(filter(None, (as_text(record.get(name)) for name in fields.text)))
    return Document(str(doc_id), text, title, _metadata(record, fields), where)


def as_id(value: object) -> str | None:
    """Return an id as text; `1` and `"1"` are the same id. None if the value can be no id."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return str(value) if abs(value) < 10**18 else None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return None


def as_text(value: object) -> str:
    """Return a field's value as text: null is empty, paragraphs in a list are joined by line ends."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return _as_json(value) if isinstance(value, list | dict) else str(value)


def _metadata(record: Mapping[str, Any], fields: Fields) -> dict[str, Value]:
    taken = {fields.doc_id, fields.title, *fields.text}
    return {name: value for name, value in _flat(record, taken) if fields.metadata is None or name in fields.metadata}


def _flat(record: Mapping[str, Any], taken: set[str | None]) -> Iterator[tuple[str, Value]]:
    """Yield names and plain values; a `metadata` object (as in BEIR files) is taken apart."""
    for name, value in record.items():
        if name in taken:
            continue
        if name == "metadata" and isinstance(value, dict):
            yield from ((str(inner), plain_value(content)) for inner, content in value.items())
        else:
            yield name, plain_value(value)


def plain_value(value: object) -> Value:
    """Return a metadata value as text, number, boolean or None; anything nested as JSON text."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**63 else str(value) if abs(value) < 10**300 else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return _as_json(value) if isinstance(value, list | dict) else str(value)


def _as_json(value: object) -> str:
    try:
        return clean(json.dumps(value, ensure_ascii=False, default=str))
    except (ValueError, RecursionError):
        return ""
