"""Clearing up what builds keep for the next one, once it is more than it is worth.

Kept encoders and encoded texts that the present build did not use may be wanted again (another precision, a document
that comes back), so they stay until they outgrow what is used: then the longest unused go first. Vectors of texts that
are gone are dropped from the blocks when they are more than those that are there.
"""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.encoded import EncodedTexts

#: Bytes of unused encoders and vectors that nobody minds.
SPARE_BYTES = 256 << 20


def clear_unused(kept: Path, used: Iterable[Path], *, spare: int = SPARE_BYTES) -> list[Path]:
    """Remove folders of encoders and of encoded texts that are not used, the longest unused first; return them.

    Parameters
    ----------
    kept
        Where builds keep encoders: a folder for each, with its `encoder` and its encoded texts in it.
    used
        The folders that the present build has used.
    spare
        Bytes of unused folders that may stay in any case.
    """
    wanted = {path.resolve() for path in used}
    sizes: dict[Path, int] = {}
    for encoder in kept.glob("*"):
        for folder in encoder.iterdir() if encoder.is_dir() else ():
            if folder.is_dir():
                sizes[folder] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    unused = sorted((path for path in sizes if path.resolve() not in wanted), key=lambda path: path.stat().st_mtime)
    allowed = max(spare, sum(sizes.values()) - sum(sizes[path] for path in unused))
    removed = []
    while unused and sum(sizes[path] for path in unused) > allowed:
        removed.append(unused.pop(0))
        shutil.rmtree(removed[-1], ignore_errors=True)
        if removed[-1].name == "encoder":
            (removed[-1].parent / "made.json").unlink(missing_ok=True)
    for encoder in kept.glob("*"):
        if encoder.is_dir() and not any(path.is_dir() for path in encoder.iterdir()):
            shutil.rmtree(encoder, ignore_errors=True)
    return removed


def drop_gone(encoded: Mapping[Path, EncodedTexts], digests: NDArray[np.void]) -> None:
    """Rewrite the encoded texts of which more are gone than are among the given digests."""
    for held in encoded.values():
        here = digests[held.find(digests) >= 0]
        if held.size > 2 * len(here):
            held.keep_only(here)
