"""Where a word stands in a text, and the window around it that a model can read."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from indexer.contextual.states import Place, Span, StateReader
from search.diagnostics.words import WORD
from search.errors import DiagnosisError

_JOINED_SCRIPTS = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


class Occurrence(NamedTuple):
    """One occurrence of a word, in a window of its text that the model reads whole.

    `number` counts from 1, of `total` occurrences in the whole text; `cut` says that the window is not all of it.
    """

    place: Place
    number: int
    total: int
    cut: bool


def occurrences(word: str, text: str) -> Iterator[Span]:
    """Yield where a word stands in a text as a word of its own, upper and lower case being equal."""
    edges = [
        r"(?<!\w)" if word[0].isalnum() and not _JOINED_SCRIPTS.match(word[0]) else "",
        r"(?!\w)" if word[-1].isalnum() and not _JOINED_SCRIPTS.match(word[-1]) else "",
    ]
    for match in re.finditer(edges[0] + re.escape(word) + edges[1], text, re.IGNORECASE):
        yield Span(*match.span())


def choose(word: str, text: str, reader: StateReader, *, number: int = 1, name: str = "the context") -> Occurrence:
    """Return one occurrence of a word, the first unless told otherwise.

    Raises
    ------
    DiagnosisError
        If the text is empty or lacks the word or that occurrence of it, or the model cannot read the word whole.
    """
    if not text.strip():
        message = f"{name} is empty; give a text with {word!r} in it"
        raise DiagnosisError(message)
    spans = list(occurrences(word, text))
    if not spans:
        message = f"{word!r} does not stand in {name} ({_short(text)!r}) as a word of its own"
        raise DiagnosisError(message)
    if not 1 <= number <= len(spans):
        message = f"{word!r} stands {len(spans)} times in {name}, asked for occurrence {number}"
        raise DiagnosisError(message)
    place, cut = window(Place(text, spans[number - 1]), reader)
    return Occurrence(place, number, len(spans), cut)


def window(place: Place, reader: StateReader) -> tuple[Place, bool]:
    """Return the place in as much text around it as the model reads, and whether that is less than all.

    Raises
    ------
    DiagnosisError
        If the word alone is longer than what the model reads, or has no piece.
    """
    text, span = place
    budget = reader.tokenizer.max_length - reader.tokenizer.special_tokens
    offsets = reader.tokenizer.piece_offsets([text])[0]
    held = [row for row, (start, end) in enumerate(offsets) if end > span.start and start < span.end and end > start]
    word = text[span.start : span.end]
    if not held:
        message = f"{reader.name} has no piece for {word!r}"
        raise DiagnosisError(message)
    if len(held) > budget:
        message = f"{word[:40]!r} alone has {len(held)} pieces, {reader.name} reads at most {budget}"
        raise DiagnosisError(message)
    if len(offsets) <= budget:
        return place, False
    # A piece may be cut anew at the window's ends, hence a few less than fit.
    size = max(len(held), budget - 4)
    first = min(max(0, held[0] - (size - len(held)) // 2), len(offsets) - size)
    last = first + size - 1
    start = min(int(offsets[first][0]), span.start)
    end = max(int(offsets[last][1]), span.end)
    return Place(text[start:end], Span(span.start - start, span.end - start)), True


def neighbours(place: Place) -> list[Span]:
    """Return the other words of a text."""
    return [
        Span(*match.span())
        for match in WORD.finditer(place.text)
        if match.end() <= place.span.start or match.start() >= place.span.end
    ]


def _short(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def line_around(place: Place, most: int = 100) -> str:
    """Return a line of text with the word in it, cut to a length."""
    text, span = place
    room = max(0, most - (span.end - span.start)) // 2
    start, end = max(0, span.start - room), min(len(text), span.end + room)
    middle = " ".join(text[start:end].split())
    return ("..." if start else "") + middle + ("..." if end < len(text) else "")


def distinct(texts: Sequence[str]) -> list[str]:
    """Return the texts without repetitions, in order."""
    return list(dict.fromkeys(texts))
