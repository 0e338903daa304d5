"""The seam between texts and vectors: what every family of embeddings must offer."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from indexer.vectors import Vectors


class Role(StrEnum):
    """Which side of retrieval a text is on; some models prefix the two differently."""

    DOCUMENT = "document"
    QUERY = "query"


class Coverage(NamedTuple):
    """Which words of a text a table of vectors knows, in the order of the text."""

    known: tuple[str, ...]
    unknown: tuple[str, ...]


class Counted(NamedTuple):
    """Encoded texts, (n, d), and how many tokens were read of each, (n,) int32."""

    vectors: Vectors
    tokens: NDArray[np.int32]


class Encoder(Protocol):
    """Texts to vectors.

    An encoder that exists is ready: fitting and loading happen in the functions that make one.
    """

    @property
    def dimension(self) -> int:
        """Dimensions d of the vectors."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of all that decides the vectors: weights, layer, pooling, prompts, length, precision.

        Two encoders of one fingerprint share a space; any two others must not be compared.
        """

    def encode(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Vectors:
        """Return (n, d) float32 vectors of unit length; a text with nothing known is a row of zeros."""

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Return how many tokens of the texts the encoder reads, all texts together."""

    def save(self, folder: Path) -> None:
        """Write all that encoding queries needs into an existing empty folder (no pickle).

        `encoder.json` there holds at least `{"kind": ..., "fingerprint": ...}`;
        `indexer.encoders.open_encoder` finds the loader by `kind`.
        """


@runtime_checkable
class CountingEncoder(Encoder, Protocol):
    """An encoder whose work grows with the tokens of a text, and who says how many it has read."""

    def encode_counted(self, texts: Sequence[str], *, role: Role = Role.DOCUMENT) -> Counted:
        """Return what `encode` returns, and the tokens read of each text, special ones and prompts included."""


@runtime_checkable
class LoadingEncoder(Encoder, Protocol):
    """An encoder that loads what it needs when it is needed: no query's cost, and said apart."""

    @property
    def loading_seconds(self) -> float:
        """What loading has taken so far."""

    def hold(self) -> None:
        """Take hold of the files that encoding a query needs, which may be removed later."""


@runtime_checkable
class WordEncoder(Encoder, Protocol):
    """An encoder that is linear in the words: a text's vector is a weighted sum of word vectors."""

    def coverage(self, text: str) -> Coverage:
        """Return which of the text's words have a vector."""

    def word_weights(self, text: str) -> list[tuple[str, float, Vectors]]:
        """Return (word, weight, (1, d) vector) for each known word token.

        The weighted vectors sum to the text's vector before it is scaled to unit length.
        """
