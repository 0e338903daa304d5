"""What was read, what was skipped and why: nothing is lost in silence."""

from dataclasses import dataclass, field

from corpora.errors import UnreadableFileError

#: Examples kept of each reason.
EXAMPLES = 5

#: Announcements shown in a summary.
NOTES = 12


@dataclass(frozen=True, slots=True)
class Skipped:
    """What one reason cost: how many files or records, and the first of them.

    `by_rule` says that these are not bad, only not what is read: other types of file, links.
    """

    reason: str
    count: int
    examples: tuple[str, ...]
    by_rule: bool = False


@dataclass(frozen=True, slots=True)
class ReadSummary:
    """A finished reading: counts of documents and files, what was skipped, and what was guessed."""

    documents: int
    files: int
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]

    @property
    def skipped_count(self) -> int:
        """How many bad files and records were left out."""
        return sum(skipped.count for skipped in self.skipped if not skipped.by_rule)

    def lines(self) -> list[str]:
        """Return the summary as lines for a reader: counts first, then reasons, then guesses."""
        files = f" from {self.files:,} files" if self.files > 1 else ""
        lines = [f"read {self.documents:,} document{'' if self.documents == 1 else 's'}{files}"]
        for skipped in self.skipped:
            more = ", ..." if skipped.count > len(skipped.examples) else ""
            verb = "passed over" if skipped.by_rule else "skipped"
            examples = ", ".join(skipped.examples)
            lines.append(f"{verb} {skipped.count:,}: {skipped.reason} ({examples}{more})")
        shown = self.notes[:NOTES]
        unshown = [f"... and {len(self.notes) - NOTES:,} more notes"] if len(self.notes) > NOTES else []
        return [*lines, *shown, *unshown]


@dataclass(slots=True)
class ReadLog:
    """Collects what happens while a collection is read; `strict` turns the first skip into an error."""

    strict: bool = False
    documents: int = 0
    files: int = 0
    _counts: dict[str, int] = field(default_factory=dict)
    _examples: dict[str, list[str]] = field(default_factory=dict)
    _by_rule: set[str] = field(default_factory=set)
    _notes: dict[str, None] = field(default_factory=dict)

    def skip(self, reason: str, where: str, detail: str = "") -> None:
        """Count one file or record that is left out.

        Parameters
        ----------
        reason
            What is wrong, in words that many cases share.
        where
            The file, or `file:line`.
        detail
            What is particular to this case.

        Raises
        ------
        UnreadableFileError
            In strict mode.
        """
        example = f"{where}: {detail}" if detail else where
        if self.strict:
            message = f"{example}: {reason}; leave out --strict to skip what cannot be read"
            raise UnreadableFileError(message)
        self._count(reason, example)

    def pass_over(self, reason: str, example: str) -> None:
        """Count one file that is left out by rule, not because it is bad: strict mode does not mind."""
        self._by_rule.add(reason)
        self._count(reason, example)

    def _count(self, reason: str, example: str) -> None:
        self._counts[reason] = self._counts.get(reason, 0) + 1
        examples = self._examples.setdefault(reason, [])
        if len(examples) < EXAMPLES:
            examples.append(example)

    def announce(self, message: str) -> None:
        """Keep one line that the user should see; the same line twice is kept once."""
        self._notes[message] = None

    @property
    def notes(self) -> list[str]:
        """The announcements so far."""
        return list(self._notes)

    def summary(self) -> ReadSummary:
        """Return what has happened so far: what is bad first, the commonest reason first."""
        skipped = [
            Skipped(reason, count, tuple(self._examples[reason]), reason in self._by_rule)
            for reason, count in self._counts.items()
        ]
        skipped.sort(key=lambda entry: (entry.by_rule, -entry.count))
        return ReadSummary(self.documents, self.files, tuple(skipped), tuple(self._notes))
