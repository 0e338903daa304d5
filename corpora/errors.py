"""What can be wrong with a collection.

CorpusError
    CollectionNotFoundError     (FileNotFoundError)  no such path, no such built-in name
    UnreadableFileError         (ValueError)         a file is not what its name says
    DuplicateIdError            (ValueError)         two records with one id
    JudgementError              (ValueError)         queries or qrels that cannot be read
    OptionError                 (ValueError)         an option the reader does not take
"""


class CorpusError(Exception):
    """Root of all errors about collections."""


class CollectionNotFoundError(CorpusError, FileNotFoundError):
    """The path or name leads to no collection."""

    def __str__(self) -> str:
        """Return the message alone (FileNotFoundError would add an errno)."""
        return str(self.args[0]) if self.args else ""


class UnreadableFileError(CorpusError, ValueError):
    """A file does not hold what its name or place promises; the message names file and line."""


class DuplicateIdError(CorpusError, ValueError):
    """Two records carry the same id."""


class JudgementError(CorpusError, ValueError):
    """Queries or relevance judgements cannot be read."""


class OptionError(CorpusError, ValueError):
    """A reader option is unknown, or has a value that the reader cannot use."""
