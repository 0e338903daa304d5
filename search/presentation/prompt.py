"""Where queries come from: a prompt with a history, or a stream of lines."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path


def prompt_lines(prompt: str = "query> ") -> Iterator[str]:
    """Yield what the user types, until end of file; arrows recall earlier lines, also of earlier sessions."""
    history = _history_file()
    try:
        import readline
    except ImportError:  # Windows has no readline; the prompt works without a history
        readline = None  # type: ignore[assignment]
    if readline is not None and history.exists():
        readline.read_history_file(history)
    try:
        while True:
            try:
                line = input(prompt).strip()
            except EOFError:
                sys.stdout.write("\n")
                return
            if line in {"exit", "quit", ":q"}:
                return
            if line:
                yield line
    finally:
        if readline is not None:
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.set_history_length(1000)
            readline.write_history_file(history)


def _history_file() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "twindex" / "history"


def query_stream(stream: Iterable[str]) -> Iterator[str]:
    """Yield the queries of a stream, one a line, as they come; blank lines are left out."""
    for line in stream:
        text = line.strip().removeprefix("\ufeff")
        if text:
            yield text
