"""The layers of ELMo as the surveys of layers read them: 0 the tokens, then the LSTMs'."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.contextual.elmo import ElmoEncoder, tokenize

Floats = NDArray[np.float32]

_SENTENCES = 64


def is_elmo(folder: Path) -> bool:
    """Say whether a folder holds ELMo's published files."""
    return any(folder.glob("*options.json")) and any((*folder.glob("*weights.hdf5"), *folder.glob("*weights.h5")))


@dataclass(frozen=True, eq=False)
class ElmoLayers:
    """An ELMo model whose layers can be read, all of them from one pass; each text starts from zero states.

    Attributes
    ----------
    encoder
        The model.
    """

    encoder: ElmoEncoder

    def layer_states(self, texts: Sequence[str]) -> Floats:
        """Return the (1 + L, n, d) means over all tokens; zeros for a text without any."""
        return self.encoder.layer_states(texts)

    def words(self, text: str) -> list[str]:
        """Return the words of a text that the model reads, in small letters; marks are none."""
        return [token.lower() for token in self._read(text) if _is_word(token)]

    def word_states(self, texts: Sequence[str]) -> Iterator[tuple[int, Floats]]:
        """Yield each text's number and the (1 + L, w, d) states of its words."""
        starts = range(0, len(texts), _SENTENCES)
        blocks = [[self._read(text) for text in texts[start : start + _SENTENCES]] for start in starts]
        for start, sentences, found in zip(starts, blocks, self.encoder.sentence_states(blocks), strict=True):
            for row, (tokens, states) in enumerate(zip(sentences, found, strict=True)):
                yield start + row, states[:, [_is_word(token) for token in tokens]]

    def _read(self, text: str) -> list[str]:
        return tokenize(text)[: self.encoder.spec.max_tokens]


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"
