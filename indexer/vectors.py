"""Arrays of vectors as they cross borders: float32, C-contiguous, (n, d)."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vectors = NDArray[np.float32]


def as_float32(values: ArrayLike) -> Vectors:
    """Return `values` as a C-contiguous float32 (n, d) array.

    Raises
    ------
    ValueError
        If the values do not form a two-dimensional array.
    """
    array = np.ascontiguousarray(values, dtype=np.float32)
    if array.ndim != 2:
        message = f"vectors must be an (n, d) array, found shape {array.shape}"
        raise ValueError(message)
    return array


def normalize(values: NDArray[Any]) -> Vectors:
    """Scale each row of an (n, d) array to unit length; rows of zeros stay zeros."""
    array = as_float32(values)
    lengths = np.sqrt(np.einsum("nd,nd->n", array, array, dtype=np.float64))
    lengths[lengths < 1e-30] = 1.0
    return as_float32(array / lengths[:, None])
