"""NumPy files, read by one thread at a time."""

import struct
import threading
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

#: What reading a damaged .npy or .npz file raises: NumPy parses its header as Python, zipfile has errors of its own.
UNREADABLE_ARRAYS: tuple[type[Exception], ...] = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)

#: The parser that NumPy reads headers with counts its depth for all threads together: where garbage is collected in the
#: midst of it and another thread comes in, it raises SystemError (Python 3.11, and later ones as far as is known).
_PARSING = threading.Lock()


def read_array(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    """Return the array of a `.npy` file, `mapped` read-only into memory where asked.

    Raises
    ------
    One of UNREADABLE_ARRAYS
        If it is missing or damaged.
    """
    mode: Literal["r"] | None = "r" if mapped else None
    # Opened here where it can be: numpy leaves a file that it cannot read open.
    with path.open("rb") as file, _PARSING:
        found: NDArray[Any] = np.load(path if mapped else file, mmap_mode=mode, allow_pickle=False)
    return found


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a `.npz` file by name; its checksums cover every byte of them.

    Raises
    ------
    One of UNREADABLE_ARRAYS
        If it is missing or damaged.
    """
    with path.open("rb") as file, _PARSING, np.load(file, allow_pickle=False) as held:
        return dict(held)
