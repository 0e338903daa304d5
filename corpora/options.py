"""How the user wants a collection read."""

from dataclasses import dataclass
from enum import StrEnum

from corpora.limits import DEFAULT_LIMITS, Limits


class Duplicates(StrEnum):
    """What to do when two records carry one id."""

    REFUSE = "refuse"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a reader is told; everything that is left out is guessed, and the guess announced.

    Attributes
    ----------
    id_field, title_field
        Names of fields (columns) of records.
    text_fields
        Names of the fields that hold the text; several are joined by a blank line.
    metadata_fields
        Names of the fields kept as metadata; None keeps all that are left.
    encoding
        Encoding of text files; None tries UTF-8, then a detector.
    duplicates
        What happens to a second record with an id that was there before.
    include, exclude
        Globs on the paths of files below a folder (`*.md`, `notes/**`); with `include`, files of any name
        that match are read as text.
    hidden
        Whether files and folders whose names begin with a dot are read.
    limits
        Bounds on what one file may cost.
    """

    id_field: str | None = None
    title_field: str | None = None
    text_fields: tuple[str, ...] = ()
    metadata_fields: tuple[str, ...] | None = None
    encoding: str | None = None
    duplicates: Duplicates = Duplicates.REFUSE
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    hidden: bool = False
    limits: Limits = DEFAULT_LIMITS


DEFAULT_OPTIONS = ReadOptions()
