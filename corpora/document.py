"""The units of text: a document as it was read, and a passage of it as it is encoded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Document:
    """One record of a collection.

    `source` says where it was read: a path, or `path:line` for records in a file.
    `metadata` values are strings, numbers, booleans or None; nested values are kept as JSON text.
    """

    doc_id: str
    text: str
    title: str = ""
    metadata: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    source: str = ""

    @property
    def searchable_text(self) -> str:
        """Title and text joined by one space: what every retriever reads."""
        return f"{self.title} {self.text}" if self.title and self.text else self.title or self.text


class Passage(NamedTuple):
    """A window of a document's searchable text that fits the encoder.

    `start` and `end` are character offsets into the searchable text; `number` counts from 0.
    """

    doc_id: str
    number: int
    start: int
    end: int
    text: str
