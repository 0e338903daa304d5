"""Bytes to text: UTF-8 first, then a detector, and never a character that cannot be written again."""

import codecs

from corpora.errors import OptionError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

#: Bytes shown to the detector.
SAMPLE_BYTES = 1 << 16

#: Bytes beyond ASCII below which a detector guesses at random among dozens of code pages.
_ENOUGH_FOR_A_GUESS = 24

REPLACEMENT = "\ufffd"


def bom_encoding(head: bytes) -> str | None:
    """Return the encoding that a byte order mark at the head of a file names, if there is one."""
    return next((encoding for bom, encoding in _BOMS if head.startswith(bom)), None)


def is_binary(head: bytes) -> bool:
    """Return whether the head of a file is no text: zero bytes, and no UTF-16 or UTF-32 mark."""
    return b"\0" in head and bom_encoding(head) is None


def known_encoding(name: str) -> str:
    """Return an encoding's canonical name.

    Raises
    ------
    OptionError
        If Python knows no text encoding of this name.
    """
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        message = f"unknown encoding {name!r}; give one such as utf-8, latin-1, cp1252 or utf-16"
        raise OptionError(message) from None
    if not getattr(found, "_is_text_encoding", True):
        message = f"{name!r} turns bytes into bytes; give a text encoding such as utf-8, latin-1 or cp1252"
        raise OptionError(message)
    return found.name


def guess_encoding(data: bytes) -> str:
    """Return the likely encoding of bytes that are not UTF-8.

    A handful of bytes beyond ASCII says too little for a detector: such texts are read as cp1252, the
    commonest of the old encodings, which also reads latin-1 text; so are texts that it cannot place.
    """
    sample = data[:SAMPLE_BYTES]
    if sum(byte > 127 for byte in sample) >= _ENOUGH_FOR_A_GUESS:
        import charset_normalizer

        best = charset_normalizer.from_bytes(sample).best()
        if best is not None and best.encoding not in {"ascii", "utf_8"}:
            return str(best.encoding).replace("_", "-")
    return "cp1252"


def decode_guessed(data: bytes, encoding: str) -> str:
    """Decode bytes in a guessed encoding; what it has no character for becomes the replacement sign."""
    return clean(data.decode(encoding, errors="replace"))


def clean(text: str) -> str:
    r"""Return the text with surrogate pairs joined and lone surrogates replaced by U+FFFD.

    JSON may hold half a pair (`"\ud83e"`); it can be neither stored, printed nor hashed as UTF-8.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
