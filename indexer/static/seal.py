"""Whether files are still the ones that were written: a check cheap enough for every opening.

A file up to 2 MiB is hashed whole. Of a larger one the size and 64 blocks of 32 KiB are hashed, spread
evenly from its first to its last byte: another table in its place differs in nearly every block, a cut one
in size, and 2 MiB take a millisecond or two where hashing 600 MB would take half a second of every cold
query. A few bytes flipped between two blocks pass; `complete=True` reads everything, on request.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from indexer.errors import DamagedIndexError
from indexer.layout import inside

_WHOLE = 2 << 20
_BLOCK = 32 << 10
_BLOCKS = 64

#: file name -> "size:sampled digest:complete digest"
Seal = Mapping[str, str]


def seal(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the size and digests of each named file of a folder."""
    marks = {}
    for name in sorted(names):
        path = folder / name
        marks[name] = f"{path.stat().st_size}:{_digest(path)}:{_digest(path, complete=True)}"
    return marks


def check(folder: Path, expected: Seal, *, complete: bool = False) -> None:
    """Compare files with their seal.

    Raises
    ------
    DamagedIndexError
        If one is missing, or has another size or content.
    """
    for name, mark in expected.items():
        path = inside(folder, name)
        size, sampled, whole = mark.split(":")
        try:
            if path.stat().st_size != int(size):
                message = f"{path} has {path.stat().st_size} bytes, expected {size}; write the index again"
                raise DamagedIndexError(message)
            if _digest(path, complete=complete) != (whole if complete else sampled):
                message = f"{path} is not the file that was written here; write the index again"
                raise DamagedIndexError(message)
        except FileNotFoundError as error:
            message = f"{path} is missing; write the index again"
            raise DamagedIndexError(message) from error


def _digest(path: Path, *, complete: bool = False) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        if complete or size <= _WHOLE:
            return hashlib.file_digest(file, "sha256").hexdigest()
        digest = hashlib.sha256(size.to_bytes(8, "little"))
        for number in range(_BLOCKS):
            file.seek((size - _BLOCK) * number // (_BLOCKS - 1))
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()
