"""One word tokenizer for indexing and querying, in plain Python and in bulk.

A word is a run of Unicode letters, digits and combining marks after NFKC and lower-casing. Inside a word
stay an apostrophe between word characters (`don't`) and a dot between single ASCII letters (`u.s`, from
"u.s.-based"). A decimal is two words (`3`, `5`): as one it would be unknown to most tables. The possessive
`'s` is dropped, hyphens and all else separate, accents are kept, and each Han or kana character is a word of
its own.

`words` is the plain form. `spans` does the same for many texts with NumPy on one buffer of bytes: a text
passes through Python's own `str.lower`, `unicodedata` and `re` in both forms (`fold`), after which every
byte outside ASCII belongs to a word and the rest of the rules look at ASCII only. So the two forms agree by
construction; Arrow's utf8_lower and RE2 classes would follow another Unicode version than Python's.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from indexer.static.vocabulary import Vocabulary

#: Changes whenever the same text may give other words; part of every fingerprint.
TOKENIZER_VERSION = 2

_APOSTROPHES = "\u2018\u2019\u201b\u02bc\uff07"
#: Spacing accents: NFKC would turn each into a space and a combining mark without a letter.
_SPACING_ACCENTS = re.compile(
    "[\u00a8\u00af\u00b4\u00b8\u02d8-\u02dd\u037a\u0384\u0385\u1fbd-\u1fc1\u1fcd-\u1fcf"
    "\u1fdd-\u1fdf\u1fed\u1fee\u1ffd\u1ffe\u2017\u203e\u309b\u309c\ufe49-\ufe4c\uffe3]"
)
_HAN_AND_KANA = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
#: Every character outside ASCII that is not simply a letter or digit of a spaced script.
_SPECIAL = re.compile(rf"[^\w\x00-\x7f]|[{_APOSTROPHES}{_HAN_AND_KANA}]")
_CHARACTER = r"[0-9a-z\x80-\U0010ffff]"
_POSSESSIVE = re.compile(rf"(?<={_CHARACTER})'s(?!{_CHARACTER})")
_WORD = re.compile(
    rf"{_CHARACTER}+(?:(?:'|(?<=[a-z])(?<!{_CHARACTER}[a-z])\.(?=[a-z](?!{_CHARACTER})))"
    rf"{_CHARACTER}+)*"
)

_LEAD = 2  # bytes before the first text, so that rules may look two bytes back
_TAIL = 16  # bytes after the last text, so that eight bytes may be read from any word's last byte

_SPACE, _WORD_BYTE = 0, 1
_BYTE_CLASS = np.full(256, _SPACE, dtype=np.uint8)
_BYTE_CLASS[[*range(ord("0"), ord("9") + 1), *range(ord("a"), ord("z") + 1), *range(128, 256)]] = _WORD_BYTE


class _FoldedCharacters(dict[str, str]):
    """What stands for a special character, worked out once for each."""

    def __missing__(self, character: str) -> str:
        self[character] = folded = _folded(character)
        return folded


def _folded(character: str) -> str:
    if character in _APOSTROPHES:
        return "'"
    category = unicodedata.category(character)
    if category[0] in "LN":
        return f" {character} "  # Han, kana: a word each
    if "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef":
        return ""  # variation selectors are marks that belong to pictures as often as to letters
    if category in {"Mn", "Mc"}:
        return character
    if category in {"Cf", "Me"} and character != "\u200b":
        return ""  # soft hyphens and joiners stand inside words; the zero-width space between them
    return " "


_FOLDED = _FoldedCharacters()


def fold(text: str) -> str:
    """Return the text lower-cased, with only word characters outside ASCII and plain apostrophes."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _SPACING_ACCENTS.sub(" ", text))
    text = text.replace("\u0130", "I").lower()  # Turkish capital dotted I would become two characters
    return _SPECIAL.sub(lambda found: _FOLDED[found[0]], text)


def words(text: str) -> list[str]:
    """Return the words of a text, in order.

    Examples
    --------
    >>> words("The U.S.-based bank’s naïve 3.5% rate: don't!")
    ['the', 'u.s', 'based', 'bank', 'naïve', '3', '5', 'rate', "don't"]
    """
    folded = fold(text)
    if "'s" in folded:
        folded = _POSSESSIVE.sub("  ", folded)
    return _WORD.findall(folded)


class Spans(NamedTuple):
    """The words of n texts as byte spans of one buffer.

    `data` is uint8, UTF-8, with spare bytes at both ends. Word w is `data[starts[w]:ends[w]]` (int64);
    text i holds words `offsets[i]` to `offsets[i + 1]` (int64, (n + 1,)).
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def word(self, number: int) -> str:
        """Return one word as a string."""
        return self.data[self.starts[number] : self.ends[number]].tobytes().decode()


def spans(texts: Sequence[str]) -> Spans:
    """Find the words of many texts at once; `words` says the same of one.

    Works on one buffer of all texts: hand over blocks of some hundred kilobytes to stay in the cache.
    """
    folded = [text.lower() if text.isascii() else fold(text) for text in texts]
    joined = "\0".join(folded)
    if joined.count("\0") >= len(folded) > 0:
        joined = "\0".join([text.replace("\0", " ") for text in folded])
    data = np.frombuffer(bytearray(b"\0" * _LEAD + joined.encode() + b"\0" * _TAIL), dtype=np.uint8)
    inside = _BYTE_CLASS[data].view(bool)
    _drop_possessives(data, inside)
    _join(data, inside)
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = edges[0::2], edges[1::2]
    ends_of_texts = np.flatnonzero(data[_LEAD : len(data) - _TAIL + 1] == 0) + _LEAD
    offsets = np.zeros(len(folded) + 1, dtype=np.int64)
    if folded:
        offsets[1:] = np.searchsorted(starts, ends_of_texts)
    return Spans(data, starts, ends, offsets)


def _drop_possessives(data: NDArray[np.uint8], inside: NDArray[np.bool_]) -> None:
    """Take `'s` at the end of words out of `inside`."""
    at = np.flatnonzero(data[:-2] == ord("'"))
    if at.size:
        at = at[inside[at - 1] & (data[at + 1] == ord("s")) & ~inside[at + 2]]
        inside[at + 1] = False
        data[at] = ord(" ")


def _join(data: NDArray[np.uint8], inside: NDArray[np.bool_]) -> None:
    """Put apostrophes and dots that belong to words into `inside`."""
    apostrophes = np.flatnonzero(data[:-2] == ord("'"))
    apostrophes = apostrophes[inside[apostrophes - 1] & inside[apostrophes + 1]]
    dots = np.flatnonzero(data[:-2] == ord("."))
    dots = dots[inside[dots - 1] & inside[dots + 1]]
    if dots.size:
        before, after = data[dots - 1], data[dots + 1]
        letters = (before >= ord("a")) & (before <= ord("z")) & (after >= ord("a")) & (after <= ord("z"))
        dots = dots[letters & ~inside[dots - 2] & ~inside[dots + 2]]
    inside[apostrophes] = True
    inside[dots] = True


class TokenIds(NamedTuple):
    """The words of n texts as vocabulary ids.

    `ids` is int32, -1 for a word that the vocabulary lacks; text i holds `ids[offsets[i]:offsets[i + 1]]`
    (`offsets` int64, (n + 1,)).
    """

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]


def token_ids(texts: Sequence[str], vocabulary: "Vocabulary") -> TokenIds:
    """Look up every word of many texts, in blocks, without a Python loop over words."""
    parts = [(vocabulary.ids_of_spans(found), found.offsets) for found in map(spans, blocks(texts))]
    lengths = [np.diff(offsets) for _, offsets in parts]
    counts = np.concatenate([np.zeros(1, dtype=np.int64), *lengths])
    ids = np.concatenate([np.empty(0, dtype=np.int32), *(ids for ids, _ in parts)])
    return TokenIds(ids, np.cumsum(counts))


def blocks(texts: Sequence[str], *, characters: int = 1 << 18) -> list[Sequence[str]]:
    """Cut a sequence of texts into runs of roughly that many characters (at least one text each)."""
    found: list[Sequence[str]] = []
    begin, size = 0, 0
    for number, text in enumerate(texts):
        size += len(text)
        if size >= characters:
            found.append(texts[begin : number + 1])
            begin, size = number + 1, 0
    if begin < len(texts):
        found.append(texts[begin:])
    return found
