"""Files to decoded lines: compressed or not, in any encoding, with bounded memory."""

import gzip
import io
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from corpora.encodings import (
    bom_encoding,
    clean,
    decode_guessed,
    guess_encoding,
    is_binary,
    known_encoding,
)
from corpora.errors import UnreadableFileError
from corpora.limits import MEBIBYTE, Limits
from corpora.options import ReadOptions
from corpora.read_log import ReadLog


class _Inflating(io.RawIOBase):
    """A gzip file that stops when it has grown out of proportion."""

    def __init__(self, path: Path, limits: Limits) -> None:
        super().__init__()
        self._path = path
        self._limits = limits
        self._raw = path.open("rb")
        self._inflated = gzip.GzipFile(fileobj=self._raw)
        self._grown = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            data = self._inflated.read(min(len(buffer), MEBIBYTE))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            message = f"{self._path}: damaged gzip file ({error}); fetch or compress it again"
            raise UnreadableFileError(message) from None
        self._grown += len(data)
        taken = max(1, self._raw.tell())
        if self._grown > self._limits.inflated_bytes and self._grown / taken > self._limits.inflated_ratio:
            message = (
                f"{self._path}: {taken:,} compressed bytes have grown to over {self._grown:,}, more than "
                f"{self._limits.inflated_ratio:.0f} to 1; unpack it yourself if you trust it"
            )
            raise UnreadableFileError(message)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._inflated.close()
        self._raw.close()
        super().close()


def open_bytes(path: Path, limits: Limits) -> BinaryIO:
    """Open a file for reading bytes, inflating it if its name ends in `.gz`.

    Raises
    ------
    UnreadableFileError
        While reading, if a `.gz` file is damaged or grows beyond `limits`.
    """
    if path.suffix.lower() == ".gz":
        return io.BufferedReader(_Inflating(path, limits), MEBIBYTE)
    return path.open("rb", buffering=MEBIBYTE)


def read_head(path: Path, limits: Limits) -> bytes:
    """Return the first bytes of a file, inflated, to tell what it is."""
    with open_bytes(path, limits) as stream:
        return stream.read(limits.header_bytes)


def read_lines(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[tuple[int, str]]:
    r"""Stream (number from 1, text) of a file's lines, ends of line included.

    Lines end at `\n` only. UTF-8 (with or without its mark) and UTF-16 or UTF-32 with theirs are read as
    such; from the first line that is not UTF-8 on, lines that are not are read in a guessed encoding, which
    is announced. A line longer than `limits.record_bytes` is skipped.

    Raises
    ------
    UnreadableFileError
        If the file is binary, or is not in the encoding that the options name.
    """
    head = read_head(path, options.limits)
    encoding = known_encoding(options.encoding) if options.encoding else bom_encoding(head)
    if encoding is None and is_binary(head):
        message = f"{path}: binary, where text was expected; name a text file"
        raise UnreadableFileError(message)
    if encoding in {None, "utf-8-sig"}:
        yield from _utf8_lines(path, options, log)
    else:
        yield from _encoded_lines(path, str(encoding), options, log)


def _utf8_lines(path: Path, options: ReadOptions, log: ReadLog) -> Iterator[tuple[int, str]]:
    limit = options.limits.record_bytes
    guessed = ""
    with open_bytes(path, options.limits) as stream:
        read_line = partial(stream.readline, limit + 1)
        for number, line in enumerate(iter(read_line, b""), 1):
            if len(line) > limit:
                while not line.endswith(b"\n") and line:
                    line = stream.readline(limit)  # noqa: PLW2901
                log.skip(f"line longer than {limit:,} bytes", f"{path}:{number}")
                continue
            try:
                text = line.decode()
            except UnicodeDecodeError:
                if not guessed:
                    guessed = guess_encoding(line + _lines_beyond_ascii(path, options.limits))
                    log.announce(
                        f"{path}:{number} is not UTF-8: such lines are read as {guessed} (a guess; --encoding decides)"
                    )
                text = decode_guessed(line, guessed)
            yield number, text.removeprefix("\ufeff") if number == 1 else text


def _lines_beyond_ascii(path: Path, limits: Limits) -> bytes:
    """Return the lines of the first megabytes that are not ASCII: what a detector can tell something from."""
    with open_bytes(path, limits) as stream:
        return b"\n".join(line for line in stream.read(4 * MEBIBYTE).split(b"\n") if not line.isascii())


def _encoded_lines(path: Path, encoding: str, options: ReadOptions, log: ReadLog) -> Iterator[tuple[int, str]]:
    limit = options.limits.record_bytes
    number = 0
    with open_bytes(path, options.limits) as stream:
        text = io.TextIOWrapper(stream, encoding=encoding, newline="\n")
        read_line = partial(text.readline, limit + 1)
        try:
            for number, line in enumerate(iter(read_line, ""), 1):
                if len(line) > limit:
                    while not line.endswith("\n") and line:
                        line = text.readline(limit)  # noqa: PLW2901
                    log.skip(f"line longer than {limit:,} bytes", f"{path}:{number}")
                    continue
                yield number, clean(line.removeprefix("\ufeff") if number == 1 else line)
        except UnicodeError as error:
            message = (
                f"{path}: not {encoding} after line {number} ({error.__class__.__name__}: "
                f"{str(error)[:120]}); give another --encoding or none"
            )
            raise UnreadableFileError(message) from None


def read_whole(path: Path, options: ReadOptions, log: ReadLog, most_bytes: int) -> str:
    """Return all text of a file of at most `most_bytes` (inflated) bytes, decoded as `read_lines` does.

    Raises
    ------
    UnreadableFileError
        If the file is larger, binary, or not in the encoding that the options name.
    """
    with open_bytes(path, options.limits) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        message = f"{path}: larger than {most_bytes:,} bytes, the most read of such a file; split it"
        raise UnreadableFileError(message)
    head = data[: options.limits.header_bytes]
    encoding = known_encoding(options.encoding) if options.encoding else bom_encoding(head)
    if encoding is None and is_binary(head):
        message = f"{path}: binary, where text was expected"
        raise UnreadableFileError(message)
    try:
        return clean(data.decode(encoding or "utf-8").removeprefix("\ufeff"))
    except UnicodeError as error:
        if encoding is not None:
            message = f"{path}: not {encoding} ({error.__class__.__name__}: {str(error)[:120]}); give another"
            raise UnreadableFileError(message) from None
    guessed = guess_encoding(data)
    log.announce(f"{path} is not UTF-8: read as {guessed} (a guess; --encoding decides)")
    return decode_guessed(data, guessed)
