"""Documents to passages: windows that fit an encoder, so that nothing is cut in silence.

An encoder reads a bounded number of pieces (its tokens). A longer text becomes several windows, which
overlap so that a sentence at a border stands whole in one of them; the document scores as its best window.

Windows are balanced: 300 pieces at a budget of 256 become two windows of about equal length, not 256 and a
rest. A vector of a 20-piece rest is a short text's vector, and short texts score higher against short
queries than long ones do, whatever they say. Balancing also encodes fewer pieces than moving the last window
back until it is full. Borders fall between words where one is near: a word cut in two is
tokenised anew, into other and perhaps more pieces.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.document import Document, Passage
from corpora.errors import OptionError

#: texts -> for each, an integer (t, 2) array: where in the text its t pieces begin and end, without special
#: tokens, without truncation.
PieceOffsets = Callable[[Sequence[str]], Sequence[NDArray[np.integer]]]

#: Characters given to the tokeniser at once: a 50 MB text must not become one list of pieces.
_CHUNK_CHARACTERS = 1 << 16


@dataclass(frozen=True, slots=True)
class Window:
    """How texts are cut for an encoder.

    Attributes
    ----------
    budget
        Pieces that the encoder reads of one text, special tokens not counted.
    overlap
        Pieces that neighbouring windows share, at least.
    whole
        One passage a document, cut at the budget and counted as cut: `--window off`.
    title_prefix
        Whether later windows repeat the title in front (windows are then that much shorter).
    """

    budget: int
    overlap: int = 0
    whole: bool = False
    title_prefix: bool = False

    def __post_init__(self) -> None:
        """Refuse windows that cannot move forward."""
        if self.budget < 1:
            message = f"a window of {self.budget} pieces holds no text; give at least 1"
            raise OptionError(message)
        if not 0 <= self.overlap < self.budget:
            message = (
                f"windows of {self.budget} pieces cannot overlap by {self.overlap}; "
                f"give an overlap from 0 to {self.budget - 1}"
            )
            raise OptionError(message)


class Split(NamedTuple):
    """The passages of one document.

    `over_budget` says that the text is longer than one window; `cut` that pieces were left out for it.
    """

    passages: list[Passage]
    over_budget: bool
    cut: bool


def split_passages(document: Document, window: Window, piece_offsets: PieceOffsets) -> Split:
    """Cut a document's searchable text into passages; every document has at least one.

    Parameters
    ----------
    document
        The document; its passages' `start` and `end` are offsets into its `searchable_text`.
    window
        Budget and overlap in pieces.
    piece_offsets
        The encoder's tokeniser.

    Returns
    -------
    Split
        Passages that together cover the whole text (unless `window.whole`), each within the budget.
    """
    text = document.searchable_text
    # No piece is shorter than a byte, and a tokeniser may put one more in front.
    if len(text.encode("utf-8", "surrogatepass")) < window.budget:
        return Split([Passage(document.doc_id, 0, 0, len(text), text)], over_budget=False, cut=False)
    offsets = _all_offsets(text, piece_offsets)
    pieces = len(offsets)
    if pieces <= window.budget:
        return Split([Passage(document.doc_id, 0, 0, len(text), text)], over_budget=False, cut=False)
    if window.whole:
        end = _fitting_end(text, offsets, 0, window.budget, window.budget, piece_offsets)
        stop = int(offsets[end][0])
        return Split([Passage(document.doc_id, 0, 0, stop, text[:stop])], over_budget=True, cut=True)
    prefix, reserved = _title_prefix(document, window, piece_offsets)
    spans = _spans(text, offsets, window, window.budget - reserved, piece_offsets)
    passages = [
        Passage(document.doc_id, number, start, stop, (prefix if number else "") + text[start:stop])
        for number, (start, stop) in enumerate(spans)
    ]
    return Split(passages, over_budget=True, cut=False)


def _all_offsets(text: str, piece_offsets: PieceOffsets) -> NDArray[np.integer]:
    """Return the (t, 2) offsets of a text of any length, tokenised in chunks that end between words."""
    if len(text) <= _CHUNK_CHARACTERS:
        return piece_offsets([text])[0]
    parts = []
    start = 0
    while start < len(text):
        stop = min(start + _CHUNK_CHARACTERS, len(text))
        if stop < len(text):
            space = max(text.rfind(" ", start + 1, stop), text.rfind("\n", start + 1, stop))
            stop = space if space > 0 else stop
        parts.append(np.asarray(piece_offsets([text[start:stop]])[0]).reshape(-1, 2) + start)
        start = stop
    return np.concatenate(parts)


def _title_prefix(document: Document, window: Window, piece_offsets: PieceOffsets) -> tuple[str, int]:
    """Return what later windows begin with, and how many pieces that takes."""
    if not window.title_prefix or not document.title or not document.text:
        return "", 0
    prefix = f"{document.title} "
    reserved = len(piece_offsets([prefix])[0])
    # A title that would take a quarter of the window, or leave no room beside the overlap, is not repeated.
    if reserved * 4 > window.budget or window.budget - reserved <= window.overlap:
        return "", 0
    return prefix, reserved


def _spans(
    text: str, offsets: NDArray[np.integer], window: Window, budget: int, piece_offsets: PieceOffsets
) -> list[tuple[int, int]]:
    """Return the (start, stop) characters of balanced windows over all pieces of a text."""
    spans: list[tuple[int, int]] = []
    pieces = len(offsets)
    first = 0
    while True:
        start = int(offsets[first][0]) if first else 0
        left = pieces - first
        step = budget - window.overlap
        # The least number of windows that hold what is left, and the least even size for so many.
        count = 1 if left <= budget else -(-(left - window.overlap) // step)
        size = -(-(left + (count - 1) * window.overlap) // count)
        end = _fitting_end(text, offsets, first, first + size, first + budget, piece_offsets)
        if end >= pieces:
            spans.append((start, len(text)))
            return spans
        spans.append((start, int(offsets[end][0])))
        following = _word_start_at_or_before(text, offsets, end - window.overlap, first + 1)
        first = max(following, first + 1)


def _fitting_end(
    text: str,
    offsets: NDArray[np.integer],
    first: int,
    wanted: int,
    most: int,
    piece_offsets: PieceOffsets,
) -> int:
    """Return where (as a piece) a window from piece `first` ends: near `wanted`, between words, fitting."""
    end = _border_near(text, offsets, first, wanted, most)
    whole_words = first == 0 or _begins_word(text, offsets, first)
    if whole_words and (end == len(offsets) or _begins_word(text, offsets, end)):
        return end
    # A word longer than the reach, or a script without spaces, is cut inside: see that it still fits.
    start = int(offsets[first][0]) if first else 0
    while end > first + 1:
        stop = len(text) if end == len(offsets) else int(offsets[end][0])
        if len(piece_offsets([text[start:stop]])[0]) <= most - first:
            break
        end -= max(1, (end - first) // 16)
    return end


def _border_near(text: str, offsets: NDArray[np.integer], first: int, wanted: int, most: int) -> int:
    """Return the border between words nearest after `wanted`, or else before it, or `wanted` itself."""
    pieces = len(offsets)
    if wanted >= pieces:
        return pieces
    reach = max(1, (most - first) // 8)
    for end in range(wanted, min(most, wanted + reach) + 1):
        if end >= pieces or _begins_word(text, offsets, end):
            return min(end, pieces)
    for end in range(wanted - 1, max(first, wanted - reach), -1):
        if _begins_word(text, offsets, end):
            return end
    return wanted


def _word_start_at_or_before(text: str, offsets: NDArray[np.integer], piece: int, least: int) -> int:
    """Return the nearest piece at or before `piece` that begins a word, looking back a little."""
    for candidate in range(piece, max(least, piece - 16) - 1, -1):
        if _begins_word(text, offsets, candidate):
            return candidate
    return piece


def _begins_word(text: str, offsets: NDArray[np.integer], piece: int) -> bool:
    """Return whether a border before this piece cuts no word and no character."""
    start = int(offsets[piece][0])
    if start < int(offsets[piece - 1][1]) or start == 0:
        return start == 0
    return not (text[start - 1].isalnum() and text[start].isalnum())
