"""Whether a fastText `.bin` file is whole, before gensim reads it.

gensim reads a word up to its zero byte, and in a file that ends inside a word that loop has no end; a count in
a damaged header makes it allocate whatever the count says. So the file's structure is walked first: header,
words, and a matrix that must lie inside the file. Layout: fastText's args.cc, dictionary.cc and matrix.cc.
"""

import mmap
import struct
from pathlib import Path

from indexer.errors import ModelError

MAGIC = struct.pack("<i", 793712314)
_WORD_TAIL = 9  # count (int64) and type (int8) after a word's zero byte


def check_fasttext(path: Path) -> None:
    """Walk the file's structure.

    Raises
    ------
    ModelError
        If the file ends early, its counts cannot be, or it is a kind that gensim does not read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            end = _end_of_vectors(path, data)
        except (struct.error, OverflowError):  # the counts lead outside the file
            end = len(data) + 1
        if end > len(data):
            message = f"{path} is no fastText file, or is cut ({len(data):,} bytes, more expected); fetch it again"
            raise ModelError(message)


def _end_of_vectors(path: Path, data: mmap.mmap) -> int:
    """Return the offset after the input matrix, which may lie beyond the file's end."""
    new_format = data[:4] == MAGIC
    # before the magic number came in, the file began with dimension and window; 10 int32 and a double follow
    position = 8 + (12 if new_format else 10) * 4 + 8
    size, n_words, n_labels = struct.unpack_from("<3i", data, position)
    position += 12 + 8
    if n_labels > 0:
        message = f"{path} is a fastText classifier with {n_labels} labels; expected word vectors"
        raise ModelError(message)
    n_pruned = 0
    if new_format:
        (n_pruned,) = struct.unpack_from("<q", data, position)
        position += 8
    if size != n_words or size <= 0:
        raise struct.error
    for _ in range(size):
        zero = data.find(b"\0", position)
        if zero < 0:
            raise struct.error
        position = zero + 1 + _WORD_TAIL
    position += 8 * max(n_pruned, 0)
    if new_format:
        (quantized,) = struct.unpack_from("<?", data, position)
        if quantized:
            message = f"{path} holds quantized vectors (.ftz); expected the full .bin file"
            raise ModelError(message)
        position += 1
    rows, columns = struct.unpack_from("<2q", data, position)
    if rows < size or columns <= 0:
        raise struct.error
    return position + 16 + 4 * int(rows) * int(columns)
