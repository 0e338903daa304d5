"""What is asked, and what a correct answer is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

#: query id -> document id -> grade. Grades are integers; 0 and below mean not relevant.
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Query:
    """A question with its id; `metadata` carries whatever the collection says of it."""

    query_id: str
    text: str
    metadata: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
