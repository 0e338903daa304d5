"""What an index would take, before anybody pays for it: seconds and bytes a retriever, within a factor of about two.

Forward passes are multiply-adds, so their time is told from the machine's own speed at multiplying matrices; the
other rates are those of one core. The ratios below were measured once (see docs/performance.md) and only ratios.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

#: Multiply-adds that all-MiniLM-L6-v2 takes for one word piece: 6 layers of 12 * 384^2.
MODEL_MULTIPLY_ADDS = 6 * 12 * 384**2
#: How fast a compiled encoder multiplies, against numpy's float32 on the same cores.
SPEED_OVER_FLOAT32: Mapping[str, float] = MappingProxyType({"int8": 1.6, "bf16": 1.2, "fp32": 0.7})

_CONTEXTUAL_DIMENSION, _STATIC_DIMENSION = 384, 50
_LEXICAL_WORDS_PER_SECOND, _STATIC_WORDS_PER_SECOND, _FIT_WORDS_PER_SECOND = 250_000, 4_000_000, 500_000
_LEXICAL_BYTES_PER_WORD = 4.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """About what one retriever would take."""

    seconds: float
    bytes: float


def multiply_adds_per_second(seconds: float = 0.1) -> float:
    """Return how many float32 multiply-adds this machine does a second, from a short product of matrices."""
    size = 768
    matrix = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    product = matrix @ matrix
    rounds, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        np.matmul(matrix, matrix, out=product)
        rounds += 1
    return rounds * size**3 / (time.perf_counter() - started)


def estimate(
    texts: int, words: int, pieces: int, *, precision: str = "int8", speed: float | None = None
) -> dict[str, Estimate]:
    """Return about what each retriever would take.

    Parameters
    ----------
    texts, words, pieces
        Passages, words and word pieces to be read, in all.
    precision
        Arithmetic of the contextual encoder.
    speed
        Float32 multiply-adds a second; measured where None.
    """
    speed = multiply_adds_per_second() if speed is None else speed
    encoding = pieces * MODEL_MULTIPLY_ADDS / (speed * SPEED_OVER_FLOAT32[precision])
    contextual_bytes = 4.0 * texts * _CONTEXTUAL_DIMENSION
    return {
        "bm25": Estimate(words / _LEXICAL_WORDS_PER_SECOND, words * _LEXICAL_BYTES_PER_WORD),
        "static": Estimate(words / _STATIC_WORDS_PER_SECOND, 4.0 * texts * _STATIC_DIMENSION),
        "fitted": Estimate(encoding + words / _FIT_WORDS_PER_SECOND, contextual_bytes),
        "contextual": Estimate(encoding, contextual_bytes),
        "whitened": Estimate(encoding, contextual_bytes),
    }
