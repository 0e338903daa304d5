"""How long work reports that it moves: a small seam, so that the library itself never prints."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Receives the state of one piece of long work after another."""

    def start(self, task: str, total: int | None, unit: str) -> None:
        """Begin a task of `total` units (None: unknown)."""

    def advance(self, amount: int = 1) -> None:
        """Say that `amount` more units of the current task are done."""

    def finish(self) -> None:
        """End the current task."""

    def note(self, message: str) -> None:
        """Pass on one line that the user should read."""


class Silent:
    """A Progress that tells nobody; `notes` keeps the lines for whoever wants them."""

    def __init__(self) -> None:
        """Start with no notes."""
        self.notes: list[str] = []

    def start(self, task: str, total: int | None, unit: str) -> None:
        """Ignore the beginning of a task."""

    def advance(self, amount: int = 1) -> None:
        """Ignore the advance."""

    def finish(self) -> None:
        """Ignore the end of a task."""

    def note(self, message: str) -> None:
        """Keep the line."""
        self.notes.append(message)


def tracked(items: Iterable[T], progress: Progress, task: str, total: int | None, unit: str) -> Iterator[T]:
    """Yield the items, reporting each as one unit of the task."""
    progress.start(task, total, unit)
    try:
        for item in items:
            yield item
            progress.advance()
    finally:
        progress.finish()
