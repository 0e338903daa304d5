"""The part of a passage that is worth showing: where the words that decided stand."""

import re
from collections.abc import Sequence

#: Letters of scripts that put no blanks between words: a term of theirs may stand inside a run.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_WORD_START = re.compile(r"\S+")


def word_spans(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where words stand in a text, as whole words in any case: (start, end) in order, none overlapping."""
    if not words:
        return []
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    forms = (
        re.escape(word) if _UNSPACED.search(word) else rf"(?<!\w){re.escape(word)}(?!\w)" for word in longest_first
    )
    return [found.span() for found in re.finditer("|".join(forms), text, re.IGNORECASE)]


def snippet(passage: str, words: Sequence[str] = (), length: int = 160) -> str:
    """Return about `length` characters of a passage: those that hold most of the words, earlier words counting more.

    Blanks and line breaks become one blank each; where the passage goes on an ellipsis says so. Without any of the
    words it is the beginning.

    Examples
    --------
    >>> snippet("The bank closed. Later the river rose over its banks.", ["river"], 24)
    '…the river rose over…'
    """
    text = " ".join(passage.split())
    if len(text) <= length:
        return text
    start = _best_start(text, words, length - 2)
    # An ellipsis on either side takes the place of a character.
    end = min(len(text), start + length - (1 if start == 0 else 2))
    if end == len(text) - 1:
        end = len(text)
    cut = text[start:end]
    if end < len(text) and not text[end].isspace() and " " in cut:
        cut = cut[: cut.rindex(" ")]
    return ("…" if start else "") + cut.rstrip() + ("…" if end < len(text) else "")


def _best_start(text: str, words: Sequence[str], length: int) -> int:
    """Return where a window of `length` characters begins best: at a word, a little before the first that counts."""
    spans = word_spans(text, words)
    if not spans or spans[-1][1] <= length:
        return 0
    weights = {word.casefold(): 1.0 / place for place, word in enumerate(words, start=1)}
    found = [(start, end, text[start:end].casefold()) for start, end in spans]
    best, most = 0, 0.0
    for first, _, _ in [(0, 0, ""), *found]:
        held = {word for start, end, word in found if first <= start and end <= first + length}
        worth = sum(weights.get(word, 0.0) for word in held)
        if worth > most + 1e-9:
            best, most = first, worth
    last = max((end for start, end, _ in found if best <= start and end <= best + length), default=best)
    # What room is left goes to both sides, so that the words stand in their sentence.
    room = max(0, length - (last - best)) // 2
    wanted = max(0, min(best - room, len(text) - length))
    # Text without blanks has no start of a word there, and may begin anywhere.
    return next(
        (found.start() for found in _WORD_START.finditer(text, wanted, best + 1) if _starts(text, found)), wanted
    )


def _starts(text: str, found: "re.Match[str]") -> bool:
    return found.start() == 0 or text[found.start() - 1].isspace()
